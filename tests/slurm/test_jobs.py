"""`legate` inside of Slurm: how many ranks it starts on which nodes, and that a job ends as the program does.

Promises the same of every MPI family that has a plugin, and of srun and mpirun.
"""
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import candidate
from tests.shards.ranks import FAMILIES, needs_mpi
from tests.slurm.batch import until

pytestmark = needs_mpi
ALLOCATE = ("salloc", "--quiet")
TOTAL = "499999500000.0"


def said(nodes, arguments=(), stdin=""):
    """What nodes.py prints."""
    return f"{' '.join(nodes)}\n{TOTAL} {list(arguments)} {stdin!r}\n"


def left(cluster, text):
    """Processes of the cluster's users with that in their command lines."""
    return [line for line in cluster.processes().values() if text in line]


@pytest.mark.parametrize("launcher", ["auto", "mpirun"])
@pytest.mark.parametrize("family", FAMILIES)
def test_four_ranks_on_two_nodes(family, launcher, cluster):
    asked = ["--mpi", family, "--launcher", launcher, "--nodes", "2", "--ranks-per-node", "2"]
    seen = cluster.run(*ALLOCATE, "-N2", "legate", *asked, "nodes.py", "a", "3", stdin="one\ntwo\n")
    assert (seen.stdout, seen.stderr, seen.code) == (said(["n1", "n1", "n2", "n2"], ["a", "3"], "one\ntwo\n"), "", 3)


@pytest.mark.parametrize("asked, options, nodes", [
    (["-N2"], [], ["n1", "n2"]),
    (["-N2", "--ntasks-per-node=2"], [], ["n1", "n1", "n2", "n2"]),
    (["-N2", "-n3"], [], ["n1", "n1", "n2"]),
    (["-N2", "--ntasks-per-node=2"], ["--nodes", "1"], ["n1", "n1"]),
    (["-N2", "--ntasks-per-node=2"], ["--ranks-per-node", "1"], ["n1", "n2"]),
    (["-N1"], ["--ranks-per-node", "3"], ["n1", "n1", "n1"]),
])
def test_what_is_not_said_is_as_the_allocation_has_it(asked, options, nodes, cluster):
    seen = cluster.run(*ALLOCATE, *asked, "legate", *options, "nodes.py")
    assert (seen.stdout, seen.stderr, seen.code) == (said(nodes), "", 0)


def test_more_nodes_than_there_are(cluster):
    seen = cluster.run(*ALLOCATE, "-N1", "legate", "--nodes", "2", "nodes.py")
    assert re.fullmatch(r"legate: asked for 2 nodes, but Slurm job \d+ has 1 node\n", seen.stderr)
    assert (seen.stdout, seen.code) == ("", 2)


@pytest.mark.parametrize("family, plugin", [("openmpi", "pmix"), ("mpich", "pmi2")])
def test_ranks_that_srun_started_start_nothing(family, plugin, cluster):
    if family not in FAMILIES:
        pytest.skip(f"no plugin for {family}")
    seen = cluster.run("srun", "--quiet", "-N2", "--ntasks-per-node=2", f"--mpi={plugin}", "legate", "nodes.py")
    assert (seen.stdout, seen.stderr, seen.code) == (said(["n1", "n1", "n2", "n2"]), "", 0)


def test_one_task_is_one_process_unless_ranks_are_asked_for(cluster):
    seen = cluster.run("srun", "--quiet", "-N1", "-n1", "legate", "nodes.py")
    assert (seen.stdout, seen.stderr, seen.code) == (said(["n1"]), "", 0)
    # What the task's own launcher says of it is not its ranks'.
    for outer, family in (("pmi2", "openmpi"), ("pmix", "mpich")):
        if family in FAMILIES:
            words = ["--mpi", family, "--ranks-per-node", "2", "nodes.py"]
            seen = cluster.run("srun", "--quiet", "-N1", "-n1", f"--mpi={outer}", "legate", *words)
            assert (seen.stdout, seen.stderr, seen.code) == (said(["n1", "n1"]), "", 0)


def test_tasks_without_mpi_are_refused(cluster):
    seen = cluster.run("srun", "--quiet", "-N2", "-n2", "--mpi=none", "legate", "nodes.py")
    refusal = "legate: srun started 2 ranks without an MPI, so they cannot see each other: use srun --mpi=pmix or --mpi=pmi2\n"
    assert seen.stderr.count("legate:") == 1 and refusal in seen.stderr
    assert (seen.stdout, seen.code) == ("", 2)


def test_an_exception_is_seen_once(cluster):
    seen = cluster.run(*ALLOCATE, "-N2", "legate", "--ranks-per-node", "2", "raises.py")
    assert re.fullmatch(r"Traceback(?s:.*)line 4, in <module>\n(?s:.*)IndexError: .*\n", seen.stderr), seen.stderr
    assert seen.stderr.count("Traceback") == 1
    assert (seen.stdout, seen.code) == ("", 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_dead_rank_ends_the_job(family, cluster):
    began = time.monotonic()
    seen = cluster.run(*ALLOCATE, "-N2", "legate", "--mpi", family, "--ranks-per-node", "2", "dies.py", limit_s=40)
    assert (seen.stdout, seen.code) == ("start 2.0\n", 137), seen.stderr
    assert re.fullmatch(r"(legate: shard 1 has gone without a word\n)?legate: a rank was ended by signal 9 \(Killed\)\n", seen.stderr)
    assert time.monotonic() - began < 30
    assert until(lambda: not left(cluster, "dies.py"), 10)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_job_as_they_end_python(sent, cluster):
    words = [*ALLOCATE, "-N2", "sh", "-c", 'echo $$; exec legate "$@"', "sh", "waits.py", "signalled"]
    job = subprocess.Popen(words, cwd=cluster.folder, env=candidate.environment(cluster.variables), text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        legate = job.stdout.readline().strip()
        assert job.stdout.readline() == "start\n"
        subprocess.run(["kill", f"-{int(sent)}", legate], check=True)
        stdout, stderr = job.communicate(timeout=30)
    finally:
        job.kill()
    expected = r"Traceback(?s:.*)KeyboardInterrupt\n" if sent == signal.SIGINT else ""
    assert re.fullmatch(expected, stderr), stderr
    assert stdout == ""
    assert until(lambda: not left(cluster, "signalled"), 10)


@pytest.mark.skipif("openmpi" not in FAMILIES, reason="Open MPI starts through PMIx")
def test_a_rank_that_starts_late_gets_no_message_before_it_is_ready(cluster, tmp_path):
    late = tmp_path / "late.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", late, Path(__file__).parent / "late.c", "-ldl"], check=True)
    words = [*ALLOCATE, "-N2", "--ntasks-per-node=2", "srun", "--mpi=pmix", "legate", "nodes.py"]
    seen = cluster.run(*words, LD_PRELOAD=str(late))
    assert (seen.stdout, seen.stderr, seen.code) == (said(["n1", "n1", "n2", "n2"]), "", 0)
