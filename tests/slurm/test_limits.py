"""Jobs that have no time left, or are cancelled: they end cleanly and say so.

Promises that the one job that has to wait for its time limit waits while other tests run.
"""
import re

import numpy as np
import pytest

from tests.shards.ranks import needs_mpi
from tests.slurm.batch import Batch

pytestmark = needs_mpi


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_program_saves_before_its_time_limit(nodes, cluster, tmp_path):
    """Slurm's own early signal, sent by hand: a limit of minutes is too long for a test."""
    job = Batch(cluster, tmp_path, "time_limit.sh", "saves.py", options=[f"--nodes={nodes}"])
    assert job.has_begun(), job.output()
    cluster.run("scancel", "--batch", "--signal=TERM", job.number)
    assert job.end() == ("FAILED", 5), job.output()
    assert job.output() == f"start\njob {job.number}: its time is nearly over, stopping the program\nsaved True\n"
    assert np.load(tmp_path / "saved.npy").shape == (100_000,)


def test_a_program_without_a_handler_is_stopped_before_its_time_limit(cluster, tmp_path):
    job = Batch(cluster, tmp_path, "time_limit.sh", "waits.py", options=["--nodes=2"])
    assert job.has_begun(), job.output()
    cluster.run("scancel", "--batch", "--signal=TERM", job.number)
    assert job.end() == ("FAILED", 143), job.output()
    told = r"was told to end, \d+ s before its time limit of 00:30:00: all ranks are stopped\n"
    expected = rf"start\njob {job.number}: its time is .*\nlegate: Slurm job {job.number} {told}"
    assert re.fullmatch(expected, job.output()), job.output()


def test_a_cancelled_job_says_so(cluster, tmp_path):
    job = Batch(cluster, tmp_path, "several_nodes.sh", "waits.py")
    assert job.has_begun(), job.output()
    cluster.run("scancel", "--full", job.number)
    assert job.end()[0] == "CANCELLED"
    assert job.output() == f"start\nlegate: Slurm job {job.number} was cancelled or preempted: all ranks are stopped\n"


def test_the_time_limit(over_time):
    assert over_time.end(within_s=120)[0] == "TIMEOUT"
    told = "reached its time limit of 00:01:00: all ranks are stopped\n"
    assert over_time.output() == f"start\nlegate: Slurm job {over_time.number} {told}"
