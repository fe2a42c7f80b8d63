"""The private Slurm that all tests here share: up for the run, left out where Slurm is not installed.

Promises that the run ends with none of its processes left, and fails where one was. Tests nothing else.
"""
import pytest

from tests import hosts
from tests.shards.ranks import FAMILIES
from tests.slurm.batch import Batch
from tests.slurm.cluster import Cluster, missing
from tests.slurm.programs import PROGRAMS


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if lacks := missing():
        pytest.skip(f"Slurm is not installed (no {', '.join(lacks)}): apt-get install slurm-wlm")
    if not hosts.may_name():
        pytest.skip("no process may be given a host name here, so that nodes could not be told apart")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"), nodes=4)
    for name, text in PROGRAMS.items():
        (cluster.folder / name).write_text(text)
    cluster.start()
    yield cluster
    left = cluster.stop()
    assert not left, left


@pytest.fixture(scope="session", autouse=True)
def over_time(cluster, tmp_path_factory):
    """A job on the last two nodes that will reach its time limit: a minute, Slurm's shortest, and up to half a minute more."""
    options = ["--time=1", "--nodelist=n3,n4"]
    yield Batch(cluster, tmp_path_factory.mktemp("limit"), "several_nodes.sh", "waits.py", options=options) if FAMILIES else None
