"""Exact counts of the example programs: operations, groups, what is never stored, bytes of memory touched, blocks of fresh memory.

Promises: the counts are a pure function of the program and the settings given here, so that a fusion that is lost fails a test and not only
a timing. One process; LEGATE_TEST_BLESS=1 rewrites the table (`counts.txt` beside the programs).
"""
import json
import os

import pytest

from tests import candidate
from tests.test_programs import PROGRAMS, TABLE

COUNTS = PROGRAMS / "counts.txt"
SETTINGS = {"LEGATE_CPUS": "1", "LEGATE_PROCESSORS": "2", "LEGATE_RUN_AHEAD": "0"}
COLUMNS = ("launches", "groups", "unstored", "read_bytes", "written_bytes", "fresh_blocks")
PROGRAM = """
import json, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
from legate import _core
print(json.dumps(_core.counters()))
"""


def counts(name):
    arguments = TABLE[name][1].split()
    words = [*candidate.command(), "-c", PROGRAM, f"{name}.py", *arguments]
    outcome = candidate.run(words, env=SETTINGS, cwd=PROGRAMS, limit_s=120)
    assert outcome.code == 0, outcome.stderr
    counters = json.loads(outcome.stdout.splitlines()[-1])
    return [str(counters[column]) for column in COLUMNS]


def table():
    rows = [line.split() for line in COUNTS.read_text().splitlines() if not line.startswith("#")]
    return {row[0]: row[1:] for row in rows}


def rewrite(name, found):
    known = table() | {name: found}
    lines = ["# " + " ".join(("program", *COLUMNS)), *(" ".join((program, *known[program])) for program in sorted(known))]
    COUNTS.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", TABLE)
def test_counts(name):
    found = counts(name)
    if os.environ.get("LEGATE_TEST_BLESS") == "1":
        rewrite(name, found)
    assert dict(zip(COLUMNS, found)) == dict(zip(COLUMNS, table()[name]))
