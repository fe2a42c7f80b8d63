"""Runs pieces of NumPy's own tests, each in a process of its own, and gathers what the plugin wrote down.

Promises: a crash, a hang or an import error costs only the test it happened in: the piece is started again without the tests already
known, until all have an outcome. Does not compare outcomes.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests import candidate
from tests.numpy_suite.nodes import Piece, unwanted

PIECE_LIMIT_S = 900
MOST_RESTARTS = 60


@dataclass
class Findings:
    """Case -> (outcome, seconds, message); what broke outside of cases; operations by how they ran; wall seconds of each piece."""

    cases: dict[str, tuple[str, float, str]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    ran: Counter = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, other: "Findings") -> None:
        """Takes over another piece's findings."""
        self.cases.update(other.cases)
        self.broken.update(other.broken)
        self.ran.update(other.ran)
        for file, seconds in other.seconds.items():
            self.seconds[file] = self.seconds.get(file, 0) + seconds


def packages() -> str:
    """The folder that holds the oracle's installed numpy."""
    script = "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))"
    return subprocess.run([*candidate.python(), "-c", script], text=True, capture_output=True, check=True).stdout.strip()


def run_piece(words: list[str], env: dict[str, str], piece: Piece, where: str, test_limit_s: float, slow: bool) -> Findings:
    """All outcomes of one piece, restarted after each crash or hang."""
    findings, began = Findings(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(MOST_RESTARTS):
            results, choice = Path(folder, "results"), Path(folder, "choice")
            results.write_text("")
            choice.write_text(json.dumps({"wanted": piece.wanted, "unwanted": unwanted(), "slow": slow, "done": list(findings.cases),
                                          "part": [piece.part, piece.parts]}))
            ended = run_once(words, env, piece, where, results, choice, folder, test_limit_s)
            if absorb(findings, results, ended, piece):
                break
        else:
            findings.broken[piece.file] = f"gave up after {MOST_RESTARTS} starts"
    findings.seconds[piece.file] = time.monotonic() - began
    return findings


def run_once(words, env, piece, where, results, choice, folder, test_limit_s) -> candidate.Outcome:
    """One process over what is left of the piece."""
    # Tests in folders that are no packages have their packages' names all the same: interception goes by names.
    pytest = ["-m", "pytest", "-q", "-o", "consider_namespace_packages=true", "-p", "no:cacheprovider", "-p", "tests.numpy_suite.plugin", "--tb=short", "--rootdir", where,
              "--basetemp", str(Path(folder, "temp")), "-c", os.devnull, piece.file]
    path = os.pathsep.join([str(candidate.TOP), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {"SUITE_RESULTS": str(results), "SUITE_CHOICE": str(choice), "SUITE_TEST_LIMIT_S": str(test_limit_s),
                "PYTHONHASHSEED": "0", "LEGATE_REPORT": "1", "PYTHONPATH": path, "NPY_AVAILABLE_MEM": "4 GB", **env}
    return candidate.run([*words, *pytest], env=settings, cwd=where, limit_s=PIECE_LIMIT_S)


def absorb(findings: Findings, results: Path, ended: candidate.Outcome, piece: Piece) -> bool:
    """Reads one process's events; False when tests are left because a test ended the process."""
    running = None
    collected = finished = False
    before = len(findings.cases)
    for line in results.read_text().splitlines():
        kind, *rest = json.loads(line)
        if kind == "start":
            running = rest[0]
        elif kind == "end":
            findings.cases[rest[0]] = (rest[1], rest[2], rest[3])
            running = None
        elif kind == "broken":
            findings.broken[rest[0]] = rest[1]
        elif kind == "collected":
            collected = True
        elif kind == "ran":
            findings.ran[rest[0]] += rest[1]
    finished = running is None and ended.code in (0, 1, 5)
    if finished:
        return True
    how = "no answer in time" if ended.code is None else f"process ended with {ended.code}"
    if running is not None:
        findings.cases[running] = ("crashed", 0.0, f"{how}: {ended.stderr.strip()[-400:]}")
        return False
    tail = (ended.stderr.strip() or ended.stdout.strip())[-600:]
    findings.broken[piece.file] = f"{how}: {tail}"
    return not collected or len(findings.cases) == before


def run_all(words: list[str], env: dict[str, str], work: list[Piece], jobs: int, test_limit_s: float, slow: bool,
            cost: dict[str, float], verbose: bool = False) -> Findings:
    """Every piece, the costliest first, `jobs` at a time."""
    where, total = packages(), Findings()
    order = sorted(work, key=lambda piece: -cost.get(piece.file, 1.0) / piece.parts)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(run_piece, words, env, piece, where, test_limit_s, slow) for piece in order]
        for done in concurrent.futures.as_completed(waiting):
            found = done.result()
            total.add(found)
            if verbose:
                worst = sum(outcome[0] in ("failed", "crashed") for outcome in found.cases.values())
                print(*(f"{file}: {seconds:.0f} s, {len(found.cases)} cases, {worst} not passed" for file, seconds in found.seconds.items()), flush=True)
            if sys.stdout.isatty():
                print(f"\r{sum(future.done() for future in waiting)}/{len(waiting)} pieces, {len(total.cases)} cases", end="", flush=True)
    print(f"{len(total.cases)} cases in {len(waiting)} pieces")
    return total
