"""How the tests start several ranks, and look for processes that are left.

Promises that a run ends within its limit with all its processes, and that what it leaves behind is found by the job's folder.
"""
import os
import time
from pathlib import Path

import pytest

from tests import candidate
from tests.candidate import TOP
from tests.shards.programs import END, START

FAMILIES = sorted(path.stem.removeprefix("_mpi_") for path in (TOP / "site-packages" / "legate").glob("_mpi_*.so"))
needs_mpi = pytest.mark.skipif(not FAMILIES, reason="no MPI plugin is built")


def write(folder, text):
    """A program of the test's own in a file; its path."""
    path = folder / "app.py"
    path.write_text(START.lstrip("\n") + text + "\n" + END)
    return path


def words(family, ranks, *more):
    """The command for that many ranks."""
    return [*candidate.command(), "--mpi", family, "--ranks-per-node", str(ranks), *map(str, more)]


def left(path):
    """Processes that run a program in this file, or were forked by one."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and int(process.name) != os.getpid() and str(path) in (process / "cmdline").read_text():
                found.append(process.name)
        except OSError:
            continue
    return found


def nothing_is_left(path, within_s=3.0):
    """Whether all processes of the program are gone, soon."""
    until = time.monotonic() + within_s
    while left(path) and time.monotonic() < until:
        time.sleep(0.05)
    return not left(path)
