"""Which interpreter is the oracle and which command is under test, and how either is run.

Promises: works from any clone (`.venv` at the top, or LEGATE_TEST_PYTHON / LEGATE_TEST_COMMAND), and a time limit on every
process, ended together with its children. Does not judge what the process printed.
"""
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent

# One row per stage: the environment that makes the candidate split, fuse and defer differently. Results never differ.
STAGES = {
    "plain": {},
    "tiny": {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_PROCESSORS": "3"},
    "unfused": {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_PROCESSORS": "2", "LEGATE_FUSION": "0"},
    "narrow": {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_PROCESSORS": "5", "LEGATE_CPUS": "1", "LEGATE_WINDOW_SIZE": "3"},
}
# Further ones that make a difference with several ranks alone.
STAGES_OF_RANKS = {**STAGES, "blocks": {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_PROCESSORS": "2", "LEGATE_BLOCKS": "1"}}


@dataclass(frozen=True)
class Outcome:
    """What a finished process left: its output texts and its exit code (None: stopped at the time limit)."""

    stdout: str
    stderr: str
    code: int | None

    @property
    def last_error_line(self) -> str:
        """The last line written to stderr: for a traceback, the exception."""
        lines = self.stderr.strip().splitlines()
        return lines[-1] if lines else ""


def python() -> list[str]:
    """The oracle: a plain interpreter with NumPy installed."""
    if named := os.environ.get("LEGATE_TEST_PYTHON"):
        return shlex.split(named)
    beside = TOP / ".venv" / "bin" / "python"
    return [str(beside) if beside.exists() else sys.executable]


def command() -> list[str]:
    """The command under test, without options but the number of ranks where the test run asks for several."""
    ranks = ["--ranks-per-node", os.environ["LEGATE_TEST_RANKS"]] if os.environ.get("LEGATE_TEST_RANKS") else []
    if named := os.environ.get("LEGATE_TEST_COMMAND"):
        return [*shlex.split(named), *ranks]
    return [str(TOP / ".venv" / "bin" / "legate"), *ranks]


def environment(extra: dict[str, str]) -> dict[str, str]:
    """This process's environment without its own LEGATE settings, plus `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEGATE_") or "TEST" in name}
    return {**kept, **extra}


def run(words: list[str], *, env: dict[str, str] | None = None, cwd: Path | str | None = None, limit_s: float = 300,
        stdin: str = "") -> Outcome:
    """Runs `words` to its end or to the limit, in a process group of its own."""
    process = subprocess.Popen(words, cwd=cwd, env=environment(env or {}), text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        stdout, stderr = process.communicate(stdin, timeout=limit_s)
        return Outcome(stdout, stderr, process.returncode)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return Outcome(stdout or "", stderr or "", None)
