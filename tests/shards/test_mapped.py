"""Mapped files on several ranks: each touches the pages of its own rows.

Promises: what is counted is what of the file is in the memory of rank 0 after an operation on all of it, and what that rank sent.
"""
import pytest

from tests import candidate
from tests.shards.ranks import FAMILIES, needs_mpi, words

pytestmark = needs_mpi
PROGRAM = """
import numpy as np
from legate import _core

ROWS, COLUMNS = 1024, 2048
np.ones((ROWS, COLUMNS)).tofile("rows.bin")
other = np.zeros((ROWS, COLUMNS)) + 1
_core.flush()
before = _core.counters()["messages"]
rows = np.memmap("rows.bin", "f8", "r", shape=(ROWS, COLUMNS))
result = {text}
_core.flush()
with open("/proc/self/smaps") as maps:
    lines = iter(maps)
    while not next(lines).rstrip().endswith("/rows.bin"):
        pass
    resident = next(line for line in lines if line.startswith("Rss:"))
print(int(resident.split()[1]) * 1024 / rows.nbytes, _core.counters()["messages"] - before)
"""
# Linux brings in some pages around one that is touched.
AROUND = 0.05


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("text", ["rows * 2", "np.array(rows)", "other + rows", "other.__iadd__(rows)", "other.__setitem__(..., rows)", "np.where(other > 0, rows, 3)"])
def test_pages(text, ranks, tmp_path):
    path = tmp_path / "app.py"
    path.write_text(PROGRAM.format(text=text))
    seen = candidate.run(words(FAMILIES[0], ranks, path), cwd=tmp_path, limit_s=60)
    assert seen.code == 0, seen.stderr
    share, messages = map(float, seen.stdout.split())
    assert abs(share - 1 / ranks) < AROUND
    assert messages == 0
