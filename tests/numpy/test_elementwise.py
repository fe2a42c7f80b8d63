"""Element-wise operations: every ufunc over operands of every kind, operators, `out=`, `where=`, `casting=`, chains that fuse.

Promises: NumPy's bits, dtypes, memory order and exceptions. The list of ufuncs is NumPy's own.
"""
import numpy as host
import pytest

from tests.numpy.oracle import check, rows

UFUNCS = sorted({getattr(host, name).__name__ for name in dir(host) if isinstance(getattr(host, name), host.ufunc)} & set(dir(host)))
UNARY = [name for name in UFUNCS if getattr(host, name).nin == 1]
BINARY = [name for name in UFUNCS if getattr(host, name).nin == 2 and not getattr(host, name).signature]
OPERANDS = "a i j u c h m f s n x t d e z p".split()
PAIRS = ["a, b", "a, 2", "2.5, a", "i, j", "u, u", "u, 3", "j, np.int64(5)", "c, a", "h, b", "m, m", "m, i", "f, a", "a.T, f.T", "s, 1.5", "n, x",
         "a, a[0]", "a, a[:, :1]", "i, abs(k)[:, None]", "t, t", "d, t", "t, 2", "e, e", "z, a", "p, p", "a, i[::-1]", "h, np.float32(2)"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>"]
CHAINS = rows(r"""
0.5 * (a[2:] + a[:-2])
a * b + a - f / 3
np.where(m, a, i) * 2
np.sqrt(abs(a)) + np.exp(-a * a)
(a > 0) & (i < 5) | m
((a[:, None, :4] - a[None, :5, :4]) ** 2).sum(2)
np.clip(a, -1, 1.5)
np.round(a, 1)
a.T - f.T
a + a.mean(1, keepdims=True)
np.exp(a - a.max(1, keepdims=True)) / np.exp(a - a.max(1, keepdims=True)).sum(1, keepdims=True)
np.nan_to_num(x)
abs(c) + c.real
a.astype('f4') * b
(u + u).astype('i4') - j
np.interp(a, [-1, 0, 2], [3, 4, 1])
np.select([a > 1, a < -1], [i, 0], 7)
np.piecewise(a, [a < 0, a >= 0], [-1, lambda v: v * 2])
a.conj().imag
np.real(c) * np.imag(c)
np.angle(c)
np.isclose(a, f / 1.5)
divmod(i, 4)
np.maximum.outer(k, k)
np.add.outer(k, b)
abs(a)
round(a, 1)
~m
-i
+a
np.vectorize(lambda v: v + 1)(p)
np.frompyfunc(lambda v: v, 1, 1)(k).dtype
a.clip(0)
np.ldexp(a, 2)
np.copysign(1.0, x)
np.sinc(a)
np.unwrap(a)
(a + 1) * (a + 1) - (a - 1) * (a - 1)
a * 2.0 + np.arange(COLUMNS)
np.arange(ROWS)[:, None] * np.arange(COLUMNS) - a
(i * 2 + 1) // 3 % 5
a.T * k
np.hypot(a, f) < 3
""")
STATEMENTS = rows(r"""
a += 1
a *= b
a -= a[::-1]
np.greater(a, a[:1], out=a, where=a > 1)
np.greater(a, a[::-1], out=a, where=m)
np.add(a, a[:1], out=a, where=m, dtype='f4', casting='unsafe')
v, w = np.zeros(ROWS * COLUMNS // 16 * 16), -np.zeros(ROWS * COLUMNS // 16 * 16); result = [np.signbit(u(*pair)) for u in (np.fmax, np.fmin) for pair in ((v, w), (w, v))]
v, w = np.zeros(ROWS * COLUMNS // 16 * 16, 'f4'), -np.zeros(ROWS * COLUMNS // 16 * 16, 'f4'); result = [np.signbit(u(*pair)) for u in (np.fmax, np.fmin) for pair in ((v, w), (w, v))]
i //= 2
u += 250
m &= a > 0
a[1:] += a[:-1]
a[:-1] += a[1:]
a[::2] *= 3
a.T[1:3] *= 2
np.add(a, b, out=f)
np.multiply(a, 2, out=a, where=m)
np.abs(c) <= 2
np.abs(c) < abs(complex(c[1, 1]))
np.abs(c.astype('c8')) > 3
abs(c[::2, ::-1]) >= 2.5
np.abs(c / 0) <= 2
np.abs(c * 1e-200) <= 1e-199
np.abs(c) > np.nan
np.abs(c).view('i8') <= 4
(np.abs(c * 1e200) <= 2) | (np.abs(c) <= 0)
np.sqrt(abs(a), out=a[::-1])
np.add(a, 1, out=i, casting='unsafe')
np.add(i, 1, out=a)
np.subtract(a[1:], a[:-1], out=a[1:])
result = np.divmod(i, 3, out=(i, None))
np.less(a, 0, out=m)
np.exp(a, out=f, where=a > 0)
i += 1.5
u += 300
a += c
m -= m
a **= 2
i **= 2
h += a
c *= 1j
c.real += 1
c.imag[...] = a
y = a; y += 1; result = y is a
a[...], f[...] = f.copy(), a.copy()
np.add.at(k, [0, 0, 1], 2)
np.subtract.at(a, (slice(None), 0), 1)
a -= a.mean(0); a /= a.std(0)
for _ in range(5):\n    a[1:-1] = 0.25 * (a[2:] + a[:-2]) + 0.5 * a[1:-1]
for _ in range(3):\n    a[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
v = a + 1; a[0] = 9; result = v
v = a * 2; del a; result = v + 1
v = host.ones(COLUMNS); result = a + v; v[0] = 7
v = host.zeros((ROWS, COLUMNS)); np.add(a, 1, out=v); result = v
v = a + 1\nfor _ in range(40):\n    v = v * 1.01 - a\nresult = v
v, w = a + 1, a - 1; v += w; w *= v; result = v - w
""")


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, operand):
    check(f"np.{name}({operand})")


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, pair):
    check(f"np.{name}({pair})")


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.count(", ") == 1])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator, pair):
    check(pair.replace(", ", f" {operator} "))


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "?", "g", "S4", "U3", "M8[s]", "m8[s]", "O", ">f8"])
@pytest.mark.parametrize("operand", ["abs(a[:, :3])", "i", "abs(i)", "u", "h", "m", "abs(f)", "abs(s)", "t", "d", "e", "z"])
def test_casts(operand, dtype):
    check(f"{operand}.astype({dtype!r})")


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("operand", ["a", "f", "a.T", "s"])
def test_cast_options(operand, order, casting):
    check(f"{operand}.astype('f4', order={order!r}, casting={casting!r})")


@pytest.mark.parametrize("text", CHAINS)
def test_chains(text):
    check(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text):
    check(text)
