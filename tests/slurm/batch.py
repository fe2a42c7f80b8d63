"""Submitting a job as users do, and waiting for what becomes of it.

Promises a folder of its own for each job, and no wait without an end. Knows no test.
"""
import re
import time

from tests.candidate import TOP

SCRIPTS = TOP / "scripts" / "batch"
THEIRS = re.compile(r"^(slurmstepd|srun: ).*\n|^-{70,}\nAn MPI communication peer(?s:.*?)\n-{70,}\n", re.M)


def until(holds, within_s):
    """Waits until something holds; what it came to."""
    end = time.monotonic() + within_s
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.1)
    return held


class Batch:
    """A job that was submitted."""

    def __init__(self, cluster, folder, script, *arguments, options=()):
        self.cluster, self.folder = cluster, folder
        for path in cluster.folder.glob("*.py"):
            (folder / path.name).write_text(path.read_text())
        seen = cluster.run("sbatch", "--parsable", *options, SCRIPTS / script, *arguments, cwd=folder)
        self.number = seen.stdout.strip()
        assert self.number.isdigit(), seen.stderr

    def outputs(self):
        """Texts by file name, without what Slurm and Open MPI say of ranks that Slurm ends."""
        texts = {path.name: path.read_text() for path in self.folder.glob("*.out")}
        return {name: THEIRS.sub("", text) for name, text in texts.items()}

    def output(self):
        """The text of a job that is no array."""
        return self.outputs().get(f"legate-{self.number}.out")

    def has_begun(self):
        """Whether waits.py or saves.py has begun to wait, soon."""
        return until(lambda: self.output() == "start\n", 30)

    def end(self, within_s=60):
        """Waits for the end; state and exit code of the job, of the last task where it is an array."""
        assert until(lambda: not self.cluster.run("squeue", "-h", "-j", self.number).stdout, within_s), self.outputs()
        seen = self.cluster.run("scontrol", "--oneliner", "show", "job", self.number).stdout
        codes = [int(code) for code in re.findall(r" ExitCode=(\d+):", seen)]
        return re.search(r"JobState=(\S+)", seen)[1], max(codes)
