"""The cases that users' reports boil down to: the candidate prints exactly what `python` prints, in every stage.

Promises: same stdout, last line of stderr and exit code. Does not look at speed.
"""
import functools

import pytest

from tests import candidate

CASES = candidate.TOP / "tests" / "cases"


def outcome(words, name, where, stage):
    where.mkdir(exist_ok=True)
    return candidate.run([*words, name], env={"CASE_DIR": str(where / "files"), **candidate.STAGES[stage]}, cwd=CASES,
                         stdin="hello\n", limit_s=300)


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    return functools.cache(lambda name: outcome(candidate.python(), name, tmp_path_factory.mktemp("oracle"), "plain"))


@pytest.mark.parametrize("stage", candidate.STAGES)
@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.py")))
def test_case_prints_what_python_prints(name, stage, expected, tmp_path):
    oracle, ours = expected(name), outcome(candidate.command(), name, tmp_path, stage)
    assert ours.stdout == oracle.stdout, ours.stderr[-2000:]
    assert ours.last_error_line == oracle.last_error_line
    assert ours.code == oracle.code
