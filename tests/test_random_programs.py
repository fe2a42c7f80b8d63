"""Thousands of random programs, bit by bit against NumPy, in each stage; the programs are new with every seed base.

Promises: the printed failing program is shrunk and runs again by its seed. LEGATE_TEST_SEED moves to other programs.
"""
import os

import pytest

from tests.candidate import STAGES
from tests.random_programs.campaign import campaign
from tests.random_programs.known import reason

# stage, size of arrays, statements, programs
RUNS = [("tiny", "small", 14, 1500), ("unfused", "small", 14, 400), ("narrow", "small", 20, 400), ("tiny", "middle", 12, 300),
        ("plain", "large", 12, 150)]
SEED = int(os.environ.get("LEGATE_TEST_SEED", "1"))


@pytest.mark.parametrize(("stage", "scale", "length", "count"), RUNS)
def test_random_programs_are_alike(stage, scale, length, count):
    shown = []

    def report(failure):
        if len(shown) < 5 and not reason(failure):
            shown.append("\n".join([f"seed {failure.task.seed}, statement {failure.statement}: {failure.text}", *failure.task.statements]))

    failures = campaign(range(SEED, SEED + count), STAGES[stage], scale, length, report)
    failures = [failure for failure in failures if not reason(failure)]
    assert not failures, f"{len(failures)} of {count} differ\n\n" + "\n\n".join(shown)


def test_numpy_is_like_itself():
    failures = campaign(range(SEED, SEED + 200), {"SUITE_SELF": "1"}, "small", 14, lambda failure: None)
    assert not failures, failures[0]
