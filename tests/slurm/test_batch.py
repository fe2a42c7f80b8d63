"""The scripts of `scripts/batch`, submitted as users submit them: output and exit codes.

Promises nothing about jobs that are stopped (see test_limits).
"""
import re

import pytest

from tests.shards.ranks import needs_mpi
from tests.slurm.batch import Batch
from tests.slurm.test_jobs import said


def test_one_node(cluster, tmp_path):
    job = Batch(cluster, tmp_path, "one_node.sh", "nodes.py", "7")
    assert job.end() == ("FAILED", 7)
    assert job.outputs() == {f"legate-{job.number}.out": said(["n1"], ["7"])}


@needs_mpi
@pytest.mark.parametrize("options, nodes", [([], ["n1", "n2"]), (["--ntasks-per-node=2"], ["n1", "n1", "n2", "n2"])])
def test_several_nodes(options, nodes, cluster, tmp_path):
    job = Batch(cluster, tmp_path, "several_nodes.sh", "nodes.py", "4", options=options)
    assert job.end() == ("FAILED", 4)
    assert job.outputs() == {f"legate-{job.number}.out": said(nodes, ["4"])}


@needs_mpi
def test_an_exception_in_a_batch_job(cluster, tmp_path):
    job = Batch(cluster, tmp_path, "several_nodes.sh", "raises.py")
    assert job.end() == ("FAILED", 1)
    assert re.fullmatch(r"Traceback(?s:.*)line 4, in <module>\n(?s:.*)IndexError: .*\n", job.output())


def test_array(cluster, tmp_path):
    job = Batch(cluster, tmp_path, "array.sh", "nodes.py", "x")
    assert job.end() == ("FAILED", 3)
    outputs = job.outputs()
    assert set(outputs) == {f"legate-{job.number}_{task}.out" for task in range(4)}
    for task in range(4):
        assert re.fullmatch(rf"n\d\n.* \['x', '{task}'\] ''\n", outputs[f"legate-{job.number}_{task}.out"])
