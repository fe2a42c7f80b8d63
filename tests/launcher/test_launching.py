"""Which command starts the ranks, as text, and that it starts them: every job launcher, every batch system.

Promises: the texts in `transcripts/launching` are made with stand-ins for all commands that start ranks and an environment that holds
nothing else; `scripts/bless` rewrites them. What runs, runs real ranks; a Slurm of its own is `tests/slurm`'s.
"""
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests import candidate, hosts
from tests.launcher import stand_ins
from tests.launcher.test_transcripts import BLESS, commands
from tests.shards.ranks import FAMILIES, needs_mpi

FOLDER = Path(__file__).parent / "transcripts" / "launching"
ALL = {"openmpi", "mpich"}
LEGATE = Path(candidate.command()[0])
HERE = socket.gethostname()
NODES = """
import ctypes, os, sys
import numpy as np
from legate import _core
name = ctypes.create_string_buffer(64)
ctypes.CDLL(None).gethostname(name, 64)
nodes = sorted(node.decode() for node in _core.collect(name.value))
print(len(nodes), *sorted({node for node in nodes if node in ("n1", "n2")}), np.arange(100_000.0).sum(), sys.argv[1:])
print(os.path.basename(os.getcwd()), np.__name__, sys.stdin.read())
sys.exit(3)
"""


def shown(command, folder):
    """What a shell prints for a command, where nothing but stand-ins can be started."""
    path = f"{folder / 'bin'}:{LEGATE.parent}:/usr/bin:/bin"
    found = subprocess.run(["env", "-i", f"PATH={path}", "bash", "-c", command], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    text = found.stdout.replace(str(folder), "FOLDER").replace(str(LEGATE), "LEGATE").replace(candidate.python()[0], "PYTHON")
    text = re.sub(r"[^\s=]+/legate/boot", "PACKAGE/boot", text)
    text = re.sub(r"\bLEGATE_(?:CPUS|SYSMEM)=\d+", lambda row: row[0].split("=")[0] + "=N", text)
    return text + (f"exit code {found.returncode}\n" if found.returncode else "")


@pytest.mark.skipif(set(FAMILIES) != ALL, reason="needs the plugins of both MPI families")
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_transcript(name, tmp_path):
    srun = stand_ins.SRUN.replace("PLUGINS", "pmix pmi2")
    stand_ins.place(tmp_path / "bin", srun=srun, scontrol=stand_ins.SCONTROL, mpirun_openmpi=stand_ins.OPENMPI,
                    mpirun_mpich=stand_ins.MPICH)
    stand_ins.place(tmp_path / "ibm", jsrun=stand_ins.NOTHING)
    stand_ins.place(tmp_path / "cray", aprun=stand_ins.NOTHING)
    stand_ins.place(tmp_path / "old", srun=stand_ins.SRUN.replace("PLUGINS", "none"))
    (tmp_path / "app.py").touch()
    (tmp_path / "places").write_text("n1\nn1\nn2\nn2\n")
    expected = (FOLDER / name).read_text()
    head = expected[: expected.index("$ ")]
    found = head + "\n".join(f"$ {command}\n{shown(command, tmp_path)}" for command in commands(expected))
    if BLESS:
        (FOLDER / name).write_text(found)
    assert found == (FOLDER / name).read_text(), "to accept: scripts/bless"


@needs_mpi
@pytest.mark.skipif(not hosts.may_name(), reason="no process may be given a host name here")
@pytest.mark.parametrize("first, variables", [
    (HERE, {"PBS_NODEFILE": "places", "PBS_JOBID": "5.server"}),
    (HERE, {"LSB_JOBID": "5", "LSB_HOSTS": f"{HERE} {HERE} n2 n2"}),
    ("n1", {"LSB_JOBID": "5", "LSB_DJOB_HOSTFILE": "places"}),
    ("n1", {"LSB_JOBID": "5", "LSB_MCPU_HOSTS": "n1 2 n2 2"}),
], ids=["PBS", "LSF", "LSF, places in a file", "LSF, numbers of places"])
@pytest.mark.parametrize("family", FAMILIES)
def test_mpirun_reaches_the_nodes_of_a_job(family, first, variables, tmp_path):
    """Through a stand-in for ssh that gives a rank nothing but another host's name; the first node is this machine or another."""
    job = tmp_path / "job"
    job.mkdir()
    (job / "nodes.py").write_text(NODES)
    (job / "places").write_text(f"{first}\n{first}\nn2\nn2\n")
    path = f"{stand_ins.place(tmp_path / 'bin', ssh=stand_ins.SSH)}:{LEGATE.parent}:/usr/bin:/bin"
    # Hydra knows LSF by itself, and would start ranks with LSF's own commands.
    hydra = {"HYDRA_LAUNCHER": "ssh", "HYDRA_RMK": "user"}
    words = [*candidate.command(), "--mpi", family, "--ranks-per-node", "2", "nodes.py", "a b"]
    seen = candidate.run(words, env={**variables, **hydra, "PATH": path, "TMPDIR": str(tmp_path)}, cwd=job, limit_s=30,
                         stdin="typed" if first == HERE else "")
    expected = f"4 {'n2' if first == HERE else 'n1 n2'} 4999950000.0 ['a b']\njob numpy {'typed' if first == HERE else ''}\n"
    assert (seen.stdout, seen.stderr, seen.code) == (expected, "", 3)
    assert set((tmp_path / "reached").read_text().split()) == {first, "n2"} - {HERE}


@pytest.mark.parametrize("command, family, text, variables", [
    ("jsrun", "openmpi", stand_ins.JSRUN, {"LSB_JOBID": "5", "LSB_MCPU_HOSTS": "batch1 1 a 40 b 40"}),
    ("aprun", "mpich", stand_ins.APRUN, {"PBS_NODEFILE": "places", "PBS_JOBID": "5"}),
])
def test_launchers_of_other_machines(command, family, text, variables, tmp_path):
    if family not in FAMILIES:
        pytest.skip(f"no plugin for {family}")
    (tmp_path / "places").write_text("a\na\nb\n")
    (tmp_path / "nodes.py").write_text(NODES)
    path = f"{stand_ins.place(tmp_path / 'bin', **{command: text})}:{LEGATE.parent}:/usr/bin:/bin"
    seen = candidate.run([*candidate.command(), "--ranks-per-node", "2", "nodes.py"], env={**variables, "PATH": path}, cwd=tmp_path,
                         limit_s=30, stdin="typed")
    assert seen.stdout == f"4 4999950000.0 []\n{tmp_path.name} numpy typed\n"
    assert (seen.stderr, seen.code) == ("", 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_ranks_that_mpirun_started_start_nothing(family, tmp_path):
    runner = shutil.which(f"mpirun.{family}") or pytest.skip(f"needs mpirun.{family}")
    (tmp_path / "nodes.py").write_text(NODES)
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    seen = candidate.run([runner, "-n", "4", *candidate.command(), "nodes.py"], env=as_root, cwd=tmp_path, limit_s=60, stdin="typed")
    assert seen.stdout == f"4 4999950000.0 []\n{tmp_path.name} numpy typed\n"
    assert seen.code == 3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("option", ["--version", "--help", "--info", "--dry-run"])
def test_ranks_that_are_asked_for_a_text_give_it_once(family, option, tmp_path):
    runner = shutil.which(f"mpirun.{family}") or pytest.skip(f"needs mpirun.{family}")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    one, two = (candidate.run([runner, "-n", ranks, *candidate.command(), option, "app.py"], env=as_root, cwd=tmp_path, limit_s=60)
                for ranks in ("1", "2"))
    assert one.code == two.code == 0
    begins = one.stdout.split()[0]
    assert two.stdout.count(begins) == one.stdout.count(begins) > 0, two.stdout
