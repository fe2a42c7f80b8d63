"""Where ranks run and take their memory from, read back from the kernel's files.

Promises: works on any number of CPUs; needs an MPI for more than one rank, and says so where there is none.
"""
import os
import re
import shutil

import pytest

from tests import candidate
from tests.launcher.processes import masks, policies, running

CPUS = sorted(os.sched_getaffinity(0))
PLUGINS = sorted((candidate.TOP / "site-packages" / "legate").glob("_mpi_*.so"))
RANKS = [pytest.param(ranks, marks=[] if PLUGINS or ranks == 1 else pytest.mark.skip("no MPI plugin")) for ranks in (1, 2, 4)]
needs_mpi = pytest.mark.skipif(not PLUGINS, reason="no MPI plugin")


@pytest.mark.parametrize("ranks", RANKS)
def test_cores_are_divided_and_bound(ranks):
    with running("--ranks-per-node", str(ranks)) as processes:
        assert sorted(processes) == list(range(ranks))
        found = [masks(processes[rank]) for rank in range(ranks)]
        assert all(len(threads) == 1 for threads in found), "threads of one rank run on the same CPUs"
        own = [set(next(iter(threads))) for threads in found]
        if 1 < ranks <= len(CPUS):
            assert sum(map(len, own)) == len(CPUS) and set.union(*own) == set(CPUS), "each CPU belongs to one rank"
        else:
            assert all(one == set(CPUS) for one in own), "nobody is bound"


@pytest.mark.parametrize("ranks", RANKS)
def test_named_cpus_and_nodes(ranks):
    cpus = [CPUS[rank % len(CPUS)] for rank in range(ranks)]
    with running("--ranks-per-node", str(ranks), "--cpu-bind", "/".join(map(str, cpus)), "--mem-bind", "0") as processes:
        for rank, process in processes.items():
            assert masks(process) == {frozenset([cpus[rank]])}
            assert "bind:0" in policies(process)


@needs_mpi
def test_what_mpirun_bound_stays():
    runner = shutil.which("mpirun.openmpi")
    if runner is None or len(CPUS) < 2:
        pytest.skip("needs Open MPI's mpirun and two CPUs")
    program = "import os; print('program')"
    words = [runner, "--allow-run-as-root", "-q", "--bind-to", "core", "-n", "2", *candidate.command(), "--bind-detail", "-c", program]
    outcome = candidate.run(words)
    assert outcome.code == 0 and outcome.stdout == "program\n", outcome.stderr
    assert outcome.stderr.count("who started it has bound it already") == 2


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_detail_is_told_by_each_rank(ranks):
    outcome = candidate.run([*candidate.command(), "--ranks-per-node", str(ranks), "--bind-detail", "-c", "print('program')"])
    assert outcome.code == 0 and outcome.stdout == "program\n"
    assert sorted(re.findall(r"rank (\d) of", outcome.stderr)) == [str(rank) for rank in range(ranks)]
    assert outcome.stderr.count("divided among") == 2 * ranks


@needs_mpi
def test_wrong_parts_are_refused_before_anything_starts():
    outcome = candidate.run([*candidate.command(), "--ranks-per-node", "2", "--cpu-bind", "0/0/0", "-c", "print('program')"])
    wanted = "legate: --cpu-bind: 3 parts for 2 ranks on a node: write one for each, or one for all\n"
    assert (outcome.code, outcome.stdout, outcome.stderr) == (2, "", wanted)


@pytest.mark.parametrize("ranks", RANKS)
def test_blas_keeps_to_its_rank(ranks):
    program = """
import ctypes, glob, os, numpy as np
a = np.ones((300, 300)) @ np.ones((300, 300))
library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(np.__path__[0]), "numpy.libs", "libscipy_openblas64_*"))[0])
print(library.scipy_openblas_get_num_threads64_())
"""
    outcome = candidate.run([*candidate.command(), "--ranks-per-node", str(ranks), "-c", program], env={"OMP_NUM_THREADS": "64"})
    assert outcome.code == 0, outcome.stderr
    assert int(outcome.stdout) == max(1, len(CPUS) // ranks)
