"""Programs on several ranks end as one program: output, exit code and traceback once, under every MPI family.

Promises that a shard which ends alone or goes another way stops the others within seconds, with one text that names it and the
lines, and leaves no process.
"""
import re
import time

import pytest

from tests import candidate
from tests.shards.programs import DIVERGE, ENDS, LONE, OFFSET
from tests.shards.ranks import FAMILIES, needs_mpi, nothing_is_left, words, write

pytestmark = needs_mpi
# Seconds for a run: starting ranks, ending them.
LIMIT_S = 60


def pattern(row):
    """The row's patterns as one, with line numbers of the file for those of its text."""
    return re.sub(r"\{(\d+)\}", lambda found: str(OFFSET - 1 + int(found[1])), "".join(row.stderr))


def run(row, family, ranks, folder):
    path = write(folder, row.text)
    began = time.monotonic()
    seen = candidate.run(words(family, ranks, path), limit_s=LIMIT_S)
    assert seen.code == row.code, (seen.stdout, seen.stderr)
    assert re.fullmatch(pattern(row), seen.stderr), seen.stderr
    assert nothing_is_left(path)
    return seen, time.monotonic() - began


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("row", ENDS, ids=lambda row: row.name)
def test_one_end_is_seen(row, family, tmp_path):
    seen, _ = run(row, family, 2, tmp_path)
    assert seen.stdout == row.stdout


@pytest.mark.parametrize("ranks", [3, 4])
def test_more_ranks_than_cores(ranks, tmp_path):
    for family in FAMILIES:
        seen, _ = run(ENDS[0], family, ranks, tmp_path)
        assert seen.stdout == ENDS[0].stdout


@pytest.mark.parametrize("row", LONE + DIVERGE, ids=lambda row: row.name)
def test_a_shard_on_its_own_way_stops_all(row, tmp_path):
    for family, ranks in zip(FAMILIES, (2, 3)):
        seen, seconds = run(row, family, ranks, tmp_path)
        assert seen.stdout.startswith(row.stdout)
        assert seconds < 20
