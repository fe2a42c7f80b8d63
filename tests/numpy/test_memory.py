"""The limit on array memory: MemoryError at the line that asks too much, and a runtime that stays usable.

Promises: each program runs in a process of its own under LEGATE_SYSMEM. Does not measure what the process really holds.
"""
import pytest

from tests import candidate

LIMIT = 64 << 20
LARGE = "np.ones((1000, 2000))"  # 16 MB

# Each program prints ok at its end; within the limit unless it says otherwise.
PROGRAMS = {
    "a loop of temporaries needs little": f"""
v = {LARGE}
for _ in range(60):
    v = v * 0.5 + 1
assert abs(float(v.sum()) - 4e6) < 1
""",
    "dropped arrays are given back": f"""
for _ in range(60):
    kept = [{LARGE} for _ in range(3)]
    kept[0][0, 0] = 2
    assert kept[0].sum() == 2000001
    del kept
""",
    "too large an array is refused at its line and the rest goes on": f"""
v = {LARGE}
try:
    w = np.ones((5000, 5000))
    raise SystemExit("no MemoryError")
except MemoryError as error:
    text = str(error)
    assert "(5000, 5000)" in text and "float64" in text, text
assert v.sum() == 2e6
w = v + 1
assert w.sum() == 4e6
""",
    "too many arrays are refused": f"""
kept = []
try:
    for _ in range(20):
        kept.append({LARGE} + len(kept))
    raise SystemExit("no MemoryError")
except MemoryError:
    pass
assert 2 <= len(kept) <= 4, len(kept)
assert [float(v[0, 0]) for v in kept] == [1.0 + k for k in range(len(kept))]
kept.clear()
assert ({LARGE} + 1).sum() == 4e6
""",
    "a result that does not fit leaves its operands alone": f"""
v = np.ones(3000)
try:
    w = v[:, None] * np.ones(4000)
    raise SystemExit("no MemoryError")
except MemoryError:
    pass
assert (v * 2).sum() == 6000
""",
    "a reduction of what need not be stored": f"""
v = {LARGE}
assert float(((v - 1) ** 2 + v * 2 - v / 4).sum()) == 3.5e6
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory(name):
    path = f"{candidate.TOP / 'site-packages'}"
    program = "import legate.numpy as np\n" + PROGRAMS[name] + "print('ok')\n"
    outcome = candidate.run([*candidate.python(), "-c", program], env={"LEGATE_SYSMEM": str(LIMIT), "PYTHONPATH": path}, limit_s=60)
    assert outcome.stdout.strip() == "ok", outcome.stderr[-1500:]
    assert outcome.code == 0


def test_an_impossible_array_is_refused_as_numpy_does():
    program = "np.zeros((10**7, 10**7))"
    path = f"{candidate.TOP / 'site-packages'}"
    oracle = candidate.run([*candidate.python(), "-c", "import numpy as np; " + program])
    ours = candidate.run([*candidate.python(), "-c", "import legate.numpy as np; " + program], env={"PYTHONPATH": path})
    assert oracle.last_error_line.split(":")[0] == ours.last_error_line.split(":")[0]
    assert ours.code == oracle.code
