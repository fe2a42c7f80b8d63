"""A private Slurm with several nodes on this machine: no service, no account, nothing outside of one folder.

Promises: up in seconds, ports of its own, and after `stop` none of its processes is left. Each node has a host name of its own where
the kernel lets it, and files of its own for PMIx, so that ranks of Open MPI and of MPICH see two machines. Runs no test.
"""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests import candidate, hosts

COMMANDS = ("slurmctld", "slurmd", "srun", "sbatch", "salloc", "sinfo", "squeue", "scancel", "scontrol")
# Where Debian keeps daemons, which is not on everybody's PATH.
DAEMONS = "/usr/local/sbin:/usr/sbin:/sbin"
START_S = 30
CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=15
"""
NODE = "NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} Boards=1 SocketsPerBoard=1 " \
       "CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN\n"


def missing():
    """Commands of Slurm that are not installed."""
    path = f"{os.environ['PATH']}:{DAEMONS}"
    return [name for name in COMMANDS if shutil.which(name, path=path) is None]


def free_ports(number):
    """Ports that nobody listens at now."""
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    """The daemons, and commands inside of their Slurm."""

    def __init__(self, folder, nodes=2, cpus=4):
        self.folder = Path(folder)
        self.nodes = [f"n{number + 1}" for number in range(nodes)]
        self.has_host_names = hosts.may_name()
        self.daemons = []
        port, *ports = free_ports(nodes + 1)
        user = pwd.getpwuid(os.geteuid()).pw_name
        text = CONFIGURATION.format(host=socket.gethostname().split(".")[0], port=port, user=user, folder=self.folder)
        text += "".join(NODE.format(name=name, port=port, cpus=cpus) for name, port in zip(self.nodes, ports))
        text += f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP\n"
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(text)
        (self.folder / "cgroup.conf").write_text("")
        for name in ["state", *(f"{room}.{node}" for room in ("spool", "tmp") for node in self.nodes)]:
            (self.folder / name).mkdir()

    @property
    def variables(self):
        """What makes a command one of this cluster's users: `legate` and Slurm on PATH."""
        path = f"{Path(candidate.command()[0]).parent}:{os.environ['PATH']}:{DAEMONS}"
        return {"SLURM_CONF": str(self.configuration), "PATH": path}

    def start(self):
        """Starts the daemons and waits until all nodes are idle."""
        self._daemon("slurmctld", "-D", "-c", "-f", str(self.configuration))
        for node in self.nodes:
            words = ["slurmd", "-D", "-N", node, "-f", str(self.configuration)]
            named = hosts.named(node) if self.has_host_names else []
            self._daemon(*named, *words)
        until = time.monotonic() + START_S
        while len(self._idle()) < len(self.nodes):
            if time.monotonic() > until:
                logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
                self.stop()
                raise TimeoutError(f"Slurm's nodes are not up after {START_S} seconds:\n{logs}")
            time.sleep(0.1)

    def _daemon(self, *words):
        with open(self.folder / f"daemon-{len(self.daemons)}.out", "w") as output:
            self.daemons.append(subprocess.Popen(words, env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL,
                                                 stdout=output, stderr=output, start_new_session=True))

    def _idle(self):
        seen = self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.split()
        return set(seen)

    def run(self, *words, limit_s=60.0, stdin="", cwd=None, **variables):
        """Runs a command to its end or its limit."""
        return candidate.run([str(word) for word in words], env={**self.variables, **variables}, limit_s=limit_s, stdin=stdin,
                             cwd=cwd or self.folder)

    def _has_jobs(self):
        return bool(self.run("squeue", "-h").stdout)

    def stop(self):
        """Ends all jobs and daemons; gives the command lines of processes that are left."""
        self.run("scancel", "--full", "--user", pwd.getpwuid(os.geteuid()).pw_name)
        until = time.monotonic() + 20
        while self._has_jobs() and time.monotonic() < until:
            time.sleep(0.1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        until = time.monotonic() + 5
        while (found := self.processes()) and time.monotonic() < until:
            time.sleep(0.1)
        for process in found:
            os.kill(process, signal.SIGKILL)
        return list(found.values())

    def processes(self):
        """Processes with this cluster's configuration in their environment: number -> command line."""
        found = {}
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and str(self.configuration).encode() in (process / "environ").read_bytes():
                    found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ").strip()
            except OSError:
                continue
        return found
