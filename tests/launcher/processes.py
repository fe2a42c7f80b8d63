"""Programs that run under `legate` while a test looks at their processes from outside.

Promises: every process of a job is found, whatever started it, and none is left after a test. What is read comes from the kernel's
own files, never from the program.
"""
import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from tests import candidate

# Prints when NumPy and the worker threads are there, and waits for its standard input to end.
WAITING = """
import sys
import numpy as np
x = np.ones(1 << 20)
y = float((x * 2 + x).sum())
print("ready", flush=True)
sys.stdin.read()
"""
# Variables that tell a process that it is a rank, and which.
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


def environ(process):
    """The environment that a process was started with; empty when it is gone."""
    try:
        rows = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(row.decode(errors="replace").split("=", 1) for row in rows if b"=" in row)


def below(process):
    """A process and all that it started, directly or not."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found


@contextlib.contextmanager
def running(*words, **variables):
    """Runs `legate words` with the waiting program; gives its ranks' processes by number once they are all ready."""
    process = subprocess.Popen([*candidate.command(), *words, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=candidate.environment(variables), start_new_session=True)
    members = []
    try:
        line = process.stdout.readline()
        assert line == "ready\n", line + process.stderr.read()
        members = below(process.pid)
        yield {rank: member for member in members if (rank := rank_of(member, process.pid)) is not None}
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=30)
        finally:
            left = [member for member in members if is_alive(member)]
            for member in left:
                os.kill(member, signal.SIGKILL)
            process.stdout.close()
            process.stderr.close()
    assert process.returncode == 0 and not left


def is_alive(process):
    """Whether a process runs, and still will in a moment."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state in "ZX":
            return False
        time.sleep(0.1)
    return True


def rank_of(process, first):
    """A rank's number; 0 for the process that was started where it has no ranks below it; none for others."""
    found = environ(process)
    for name in RANKS:
        if name in found and "mpi" not in Path(os.readlink(f"/proc/{process}/exe")).name:
            return int(found[name])
    return 0 if process == first and len(below(first)) == 1 else None


def masks(process):
    """The CPUs that each thread of a process may run on."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return {frozenset(numbers(field((task / "status").read_text(), "Cpus_allowed_list"))) for task in tasks}


def field(text, name):
    """A field of a process's status."""
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(name + ":"))


def numbers(text):
    """The numbers of `0-3,8`."""
    for item in text.split(","):
        first, _, last = item.partition("-")
        yield from range(int(first), int(last or first) + 1)


def policies(process):
    """The memory policies of a process's mappings, as the kernel shows them."""
    return {line.split()[1] for line in Path(f"/proc/{process}/numa_maps").read_text().splitlines()}
