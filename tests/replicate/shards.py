"""Runs a program as several shards joined by the stand-in, and gives back what the world saw.

Promises to keep the output of each shard apart: the launcher throws that of the others away, here it must be that of shard 0.
"""
import os
import signal
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.candidate import TOP, environment, python

STAND_IN = Path(__file__).parent / "stand_in"


@dataclass(frozen=True)
class Seen:
    """What one run left: shard 0's output, errors and exit code, and the same of each of the others."""

    stdout: str
    stderr: str
    code: int
    others: list


def run(words, shards, *, cwd, elsewhere=None, stdin="", env=None, limit_s=60):
    """Runs `python *words` as this many shards; those other than 0 in the folder `elsewhere`, as where they see no common files."""
    pairs = [socket.socketpair() for _ in range(shards - 1)]
    processes = []
    for shard in range(shards):
        own = [pair[0] for pair in pairs] if shard == 0 else [pairs[shard - 1][1]]
        site_packages = str(TOP / "site-packages")
        variables = environment({
            **(env or {}), "PYTHONHASHSEED": "7", "STAND_IN_SITE_PACKAGES": site_packages,
            "PYTHONPATH": os.pathsep.join((str(STAND_IN), site_packages)),
            "STAND_IN": " ".join(map(str, (shard, shards, *(end.fileno() for end in own)))),
            "OMPI_COMM_WORLD_RANK": str(shard), "OMPI_COMM_WORLD_SIZE": str(shards), "SLURM_PROCID": str(shard),
            "OF_THIS_NODE": f"node{shard}",
        })
        processes.append(subprocess.Popen(
            [*python(), *words], cwd=elsewhere if shard and elsewhere else cwd, env=variables, text=True, start_new_session=True, pass_fds=[end.fileno() for end in own],
            stdin=subprocess.PIPE if shard == 0 else subprocess.DEVNULL, stderr=subprocess.PIPE,
            stdout=subprocess.PIPE))
    for pair in pairs:
        pair[0].close()
        pair[1].close()
    try:
        stdout, stderr = processes[0].communicate(stdin, timeout=limit_s)
        others = [(*process.communicate(timeout=limit_s), process.returncode) for process in processes[1:]]
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return Seen(stdout, stderr, processes[0].returncode, others)
