"""The prompt over two nodes of a private Slurm, in an allocation that salloc made.

Promises that the session ends with nothing left of it or of Slurm.
"""
import pytest

from tests.prompt.terminal import CTRL_C, After, talk
from tests.prompt.test_console import legate
from tests.shards.ranks import FAMILIES, needs_mpi
from tests.slurm.cluster import Cluster, missing


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if lacks := missing():
        pytest.skip(f"Slurm is not installed (no {', '.join(lacks)})")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    cluster.start()
    yield cluster
    left = cluster.stop()
    assert not left, left


@needs_mpi
@pytest.mark.parametrize("family", FAMILIES)
def test_two_nodes(family, cluster, tmp_path):
    """Rank 0 is on another machine than the terminal, by the machines' names."""
    words = ["salloc", "--quiet", "-N2", *legate(1, "--nodes", "2", "--ranks-per-node", "2", "--mpi", family)]
    steps = [(">>> ", "import numpy as np; from legate import _core; a = np.arange(1_200_000); i = 0\n"), (">>> ", "_core.shards()\n"),
             ("4\n", "a.sum()\n"), ("719999400000)\n", "while True: i += 1\n"), ("... ", "\n"), ("\n", After(1.5, CTRL_C)),
             ("KeyboardInterrupt\n", "float((a * 0 + i).std())\n"), ("0.0\n", "1 / 0\n"), ("ZeroDivisionError: division by zero\n", "exit(6)\n")]
    shown, code = talk(words, tmp_path, steps, cluster.variables)
    assert code == 6 and shown.count("Traceback") == 2 and "legate:" not in shown
