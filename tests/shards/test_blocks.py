"""Arrays that several ranks cut into blocks: what neighbours send, and that everything else finds them in rows.

Promises: messages and bytes are those of rank 0, exactly; what is printed is what python prints.
"""
import pytest

from tests import candidate
from tests.shards.ranks import FAMILIES, needs_mpi, words

pytestmark = needs_mpi
SIDE = 1024
COUNTS = f"""
import numpy as np
from legate import _core

grid = np.zeros(({SIDE}, {SIDE}))
grid[0] = 1

def counted(what):
    names = ("in_blocks", "messages", "message_bytes")
    before = _core.counters()
    what()
    after = _core.counters()
    print(*(after[name] - before[name] for name in names))

def sweep():
    grid[1:-1, 1:-1] = 0.2 * (grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])

counted(sweep)
counted(sweep)
counted(sweep)
counted(lambda: grid.__setitem__((slice(None), -1), 5))
counted(lambda: grid.__setitem__((0, slice(None)), grid[-1] * 2))
counted(lambda: grid.sum())
"""
SCRIPT = """
import numpy as np

def sweep(u, rounds):
    for _ in range(rounds):
        inner = u[1:-1, 1:-1]
        inner[:] = 0.2 * (inner + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[:, -1] = u[:, -2]
        u[-1] = u[-2] * 0.5

np.random.seed(3)
u = np.random.rand(121, 90)
sweep(u, 4)
np.save("u.npy", u)
print(u.sum(), u.mean(0)[:5], u[7, 3], u[-1, -3:], u.T[2, :4], np.sort(u, axis=1)[5, :3])
v = np.load("u.npy")
sweep(v, 2)
sweep(u, 2)
print(np.array_equal(u, v), float((u * u).max()), u[::2, ::3].sum(), np.cumsum(u, axis=0)[-1, :2])
w = np.ones((31, 40, 12)) * np.arange(12.0)
w[1:-1, 1:-1, 1:-1] = (w[2:, 1:-1, 1:-1] + w[:-2, 1:-1, 1:-1] + w[1:-1, 2:, 1:-1] + w[1:-1, 1:-1, 2:]) / 4
w[:, 0, :] = w[:, 1, :]
w[0] = 3
w[:, :, -1] = 7
w[1:-1, 1:-1] += w[2:, 1:-1]
print(w.sum(), w[3, 0, :4], w[:, 5].sum(0)[:3], w[:, 2:5, 3].sum())
u.tofile("u.bin")
print(np.array_equal(np.fromfile("u.bin").reshape(u.shape), u))
"""


def test_messages(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(COUNTS)
    seen = candidate.run(words(FAMILIES[0], 4, "--blocks", path), cwd=tmp_path, limit_s=60)
    assert seen.code == 0, seen.stderr
    first, second, third, column, row, total = (tuple(map(int, line.split())) for line in seen.stdout.splitlines())
    # Of a grid of 2 x 2 blocks rank 0 has one to the right and one below, which read the last column and row of its inner part.
    assert second == third == (1, 2, 2 * (SIDE // 2 - 1) * 8)
    # Its own ends are up to date everywhere at first.
    assert first == (1, 2, 2 * (SIDE // 2 - 1) * 8)
    assert column == (1, 0, 0)
    # Rank 0 runs its half of the first row, for which it gets the last row's from below.
    assert row == (1, 0, 0)
    # The sum is in NumPy's order, of whole rows: each rank sends half of its block to the one with the other half of these.
    assert total[:1] == (0,) and total[2] >= SIDE * SIDE * 8 / 8


@pytest.mark.parametrize("ranks", [3, 4, 6])
@pytest.mark.parametrize("settings", [{}, {"LEGATE_MIN_CPU_CHUNK": "1"}, {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_FUSION": "0"}], ids=str)
def test_results(ranks, settings, tmp_path):
    path = tmp_path / "app.py"
    path.write_text(SCRIPT)
    wanted = candidate.run([*candidate.python(), path], cwd=tmp_path, limit_s=60)
    seen = candidate.run(words(FAMILIES[0], ranks, "--blocks", path), env=settings, cwd=tmp_path, limit_s=60)
    assert (seen.code, seen.stdout) == (0, wanted.stdout), seen.stderr
