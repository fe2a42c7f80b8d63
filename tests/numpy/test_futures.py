"""Futures in computations: what a reduction to one element gives, and arithmetic on it, wait for nothing and agree with NumPy.

Promises: each text is evaluated with fresh futures and with NumPy's scalars; results, types and exceptions agree. The texts of `AHEAD`
wait for nothing. Warnings are silenced in this process, since recorded ones make an operation finish at its line; those of `WARNED` are
printed by processes of their own. `test_scalars` looks at futures in all other ways.
"""
import numpy as host
import pytest

from legate import _core
from tests import candidate as candidate_process
from tests.difference import difference
from tests.numpy.oracle import candidate, rows, world

# Futures, by the letters that texts use, made of the operands of `oracle`: floats, a short float, whole numbers, a complex one.
FUTURES = {
    "F": "a.sum()", "G": "(a * a).sum()", "S": "b.sum()", "H": "h.sum()", "I": "i.sum()", "K": "a.argmax()", "U": "u.sum()",
    "C": "c.sum()", "Z": "(a * 0).sum()", "O": "(i * 0).sum()", "N": "n.sum()", "B": "np.bitwise_or.reduce(i, axis=None)",
}
PREPARE = "import copy, math, cmath, operator, pickle, struct, fractions, decimal, numbers, random, statistics, array, itertools\nb = (a * 2).astype('f4')\n"
# What was waited for already is folded at once.
PREPARE += "a, h, i, u, c, n = (y.copy() for y in (a, h, i, u, c, n))\n"

AHEAD = rows(r"""
F
I
C
F + 1
1 + F
F - 2.5
2.5 - F
F * G
F / G
I / 3
I / G
F / I
F + I
-F
+F
abs(F)
np.sqrt(G)
np.add(F, G)
np.divide(F, 3)
np.negative(F)
F * np.float64(2)
F * np.float32(2)
np.float64(2) * F
np.int8(2) * F
F + True
S + S
S * np.float32(2)
S + G
a * F
F * a
a + I
a - G / F
a / S
b * S
b * F
i * F
i + I
np.multiply(a, F)
np.multiply(F, a)
np.where(a > 0, F, a)
np.where(a > 0, F, G)
a.mean()
np.mean(a)
b.mean()
a.mean() - np.mean(b)
i.ravel() @ i.ravel()
i.ravel().dot(i.ravel())
np.dot(i.ravel(), j.ravel().astype('i8'))
np.dot(i.ravel() * 1.0, i.ravel() * 2.0)
np.inner(i.ravel(), i.ravel() + 1)
np.vdot(i.ravel() * 0.5, i.ravel() * 2.0)
(i * 1.0).ravel()[::2] @ (i * 1.0).ravel()[1::2]
(i.ravel() * 1.0).astype('f4') @ (i.ravel() * 1.0).astype('f4')
np.linalg.norm(i * 1.0)
np.linalg.norm(i.ravel() * 1.0)
a / np.linalg.norm(i * 1.0)
""")

STATEMENTS = rows(r"""
result = F\nresult += 1
result = F\nresult *= a
result = 2\nresult += F
result = 2\nresult -= I
result = p.copy()\nresult += F
result = p.copy()\nresult[0] = F
result = p.copy()\nresult[0, 1] = I
result = p.copy()\nresult[K % 3] = G
result = p.astype('i4')\nresult += F
result = a.copy()\nresult += F
result = a.copy()\nresult -= F * a
result = a.copy()\nresult *= I
result = a.copy()\nresult[0] = F
result = a.copy()\nresult[1:, 2] = I
result = a.copy()\nresult[0, 0] = F\nresult = result + 1
result = a.copy()\nresult[K % 7, K % 5] = G
result = a.copy()\nresult.fill(F)
result = a.copy()\nresult[a > 0] = F
result = i.copy()\nresult += F
result = i.copy()\nresult[...] = F
result = np.empty(3, object)\nresult[0] = F\nresult = float(result[0])
result = np.zeros(3)\nnp.add(F, p[0, :3], out=result)
result = a.copy()\nnp.add(a, F, out=result)
result = a[K % 7]
result = a[K % 7, K % 5]
result = a[K % 7:, :K % 5]
result = a[:, K % 5]
result = a.clip(Z, F)
result = a > F
result = F > a
result = F == a
result = a ** Z
result = F ** np.abs(a)
result = a // F
result = F % a
result = divmod(F, a)[1]
result = np.maximum(a, F)
result = np.sqrt(np.abs(a) * G)
result = a.sum(initial=F)
result = np.full(a.shape, F)
result = np.full(a.shape, I)
result = np.full_like(a, F)
result = np.zeros(a.shape) + F
result = np.where(m, F, I)
result = np.clip(a, F, G)
result = np.isclose(a, F)
result = np.linspace(F, G, ROWS * COLUMNS)
result = np.arange(ROWS * COLUMNS) * F
result = (a - a.mean()) / a.std()
result = a / np.linalg.norm(i * 1.0)
result = a.dot(w.T) * F
result = 0.0\nfor row in a[:5]:\n    result += row.sum()
result = F\nfor _ in range(5):\n    result = result / 2 + G
before = F + 1\na[...] = 0\nresult = before
before = a.sum()\na += 1\nresult = [before, a.sum()]
total = a.sum()\ndel a\nresult = total / 2
result = [row.sum() for row in i[:9]]
result = np.array([row.sum() for row in a[:9]])
result = {'s': F, 'k': I}['s']
result = sorted([a.sum(), (a * 2).sum(), Z], reverse=True)
try:\n    result = F.nothing\nexcept AttributeError as error:\n    result = str(error)
match F:\n    case float():\n        result = 1\n    case _:\n        result = 2
assert F != G, F
""")


# Programs whose warnings must name the same lines.
WARNED = rows(r"""
s = a.sum()\nprint(s * 1e300 * 1e300)
s = a.sum()\nt = s * 1e300 * 1e300\nu = t - t\nprint(1)\nprint(u)
s = a.sum()\nt = s / 0\nb = a * t\nprint(b[3])
s = a.sum()\nt = s / (s - s)\nif t > 0: print('yes')
k = (a > 0).sum()\nt = k / 0\nprint(t)
s = a.sum()\nt = np.divide(s, 0)\nprint(t)
s = a.sum()\nt = np.sqrt(-s)\nprint(t)
s = a.sum()\nfor _ in range(3):\n    t = s / 0\nprint(t)
s = a.sum()\nwith np.errstate(all='ignore'):\n    t = s / 0\nprint(t)
s = a.sum()\ntry:\n    with np.errstate(divide='raise'):\n        t = s / 0\nexcept FloatingPointError as error:\n    print(error)
import warnings\nwarnings.simplefilter('error')\ns = a.sum()\ntry:\n    t = s / 0\nexcept RuntimeWarning as error:\n    print(error)
s = a.sum()\nt = s / 0\ndel t\nprint('end')
s = a.sum()\nt = s * np.float32(1e38) * 1e300\nprint(t)
def f(v):\n    return v / 0\nprint(f(a.sum()))
""")


def outcome(module, text: str):
    """(names after the text with fresh futures, exception text)."""
    values = world(module, PREPARE)
    error = None
    with module.errstate(all="ignore"):
        for name, made in FUTURES.items():
            values[name] = eval(made, values)
        try:
            try:
                values["result"] = eval(compile(text, "text", "eval"), values)
            except SyntaxError:
                exec(compile(text, "text", "exec"), values)
        except Exception as raised:  # noqa: BLE001 - any exception is a result to compare
            error = f"{type(raised).__name__}: {raised}"
    return values, error


def agree(text: str) -> dict:
    """Asserts that both worlds agree about a text; gives the names of ours."""
    oracle, oracle_error = outcome(host, text)
    ours, our_error = outcome(candidate(), text)
    assert our_error == oracle_error, f"{text}: raised {our_error}, not {oracle_error}"
    found = difference(oracle.get("result"), ours.get("result"))
    assert found is None, f"{text}: {found}"
    return ours


@pytest.mark.parametrize("text", AHEAD)
def test_runs_ahead(text):
    values = world(candidate(), PREPARE)
    with candidate().errstate(all="ignore"):
        for name in set(FUTURES) & set(text):
            values[name] = eval(FUTURES[name], values)
        result = eval(text, values)
        assert _core.is_pending(result) or _core.is_deferred(result)
        assert all(_core.is_pending(values[name]) for name in set(FUTURES) & set(text))
    agree(text)


CONJUGATE_GRADIENTS = """
x, r = np.zeros_like(a), a.copy()
p, total = r.copy(), (r * r).sum()
for _ in range(3):
    q = 2.0 * p
    q[1:] -= 0.5 * p[:-1]
    q[:-1] -= 0.5 * p[1:]
    step = total / (p * q).sum()
    x += step * p
    r -= step * q
    before, total = total, (r * r).sum()
    p = r + (total / before) * p
result = x, r, total
"""


def test_whole_iterations_run_ahead():
    ours = agree(CONJUGATE_GRADIENTS)
    with candidate().errstate(all="ignore"):
        exec(CONJUGATE_GRADIENTS, ours)
    assert _core.is_pending(ours["total"]) and _core.is_pending(ours["step"])


@pytest.mark.parametrize("text", STATEMENTS)
def test_in_statements(text):
    agree(text)


@pytest.mark.parametrize("name", FUTURES)
def test_is_a_future(name):
    with candidate().errstate(all="ignore"):
        values = world(candidate(), PREPARE)
        value = eval(FUTURES[name], values)
    assert _core.is_pending(value)
    assert not _core.is_pending(value + 0) or value.dtype.char in "df"


@pytest.mark.parametrize("text", WARNED)
def test_warned(text, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import numpy as np\na = np.arange(1.0, 50_001)\n{text}\n")
    oracle = candidate_process.run([*candidate_process.python(), str(program)])
    ours = candidate_process.run([*candidate_process.command(), str(program)])
    assert (ours.stdout, ours.stderr, ours.code) == (oracle.stdout, oracle.stderr, oracle.code)
