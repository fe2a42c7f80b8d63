"""The same programs as ranks of an MPI job that the launcher starts.

Promises that each runs once with two ranks and that the world sees one. Skipped where no MPI plugin was built.
"""
import pytest

from tests import candidate
from tests.candidate import TOP
from tests.replicate.programs import ANEW
from tests.replicate.test_programs import INPUT, INPUTS, PROGRAMS, folders, place, tree

pytestmark = pytest.mark.skipif(not list((TOP / "site-packages" / "legate").glob("_mpi_*.so")), reason="no MPI plugin is built")
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(script, ranks, here, output, stdin=INPUT):
    words = [*candidate.command(), "--ranks-per-node", str(ranks), "--rank-output", str(output), script]
    return candidate.run(words, cwd=here, stdin=stdin, env=ROOT, limit_s=90)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_world_sees_one(tmp_path, name):
    script, here = place(tmp_path, name, PROGRAMS[name])
    there = tmp_path / "there"
    there.mkdir()
    expected = candidate.run([*candidate.python(), script], cwd=there, stdin=INPUTS.get(name, INPUT))
    seen = run(script, 2, here, tmp_path / "output", INPUTS.get(name, INPUT))
    assert seen.stdout == expected.stdout, seen.stderr
    assert (seen.code, seen.last_error_line) == (expected.code, expected.last_error_line)
    assert (tree(here), folders(here)) == (tree(there), folders(there))


@pytest.mark.parametrize("name", sorted(ANEW))
def test_all_ranks_are_one(tmp_path, name):
    script, here = place(tmp_path, name, ANEW[name])
    seen = run(script, 3, here, tmp_path / "output")
    assert seen.code == 0, seen.stderr
    for rank in (1, 2):
        assert (tmp_path / "output" / f"rank-{rank}.out").read_text() == seen.stdout


def test_threads_are_refused_what_all_shards_must_do(tmp_path):
    script, here = place(tmp_path, "thread", """
import numpy as np, threading
from concurrent.futures import ThreadPoolExecutor
shared = np.ones(2_000_000)
with ThreadPoolExecutor(1) as pool:
    try:
        pool.submit(lambda: float((shared * 2).sum())).result()
    except RuntimeError as error:
        print(error)
print(shared.sum())
""")
    seen = run(script, 2, here, tmp_path / "output")
    assert seen.stdout.splitlines()[-1] == "2000000.0", seen.stderr
    assert "by the main thread only" in seen.stdout
