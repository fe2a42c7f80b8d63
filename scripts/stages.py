"""The stages of the test run, as a table, and the loop that runs them.

usage: stages.py [--quick] [--only check|quick|all|NAME...] [--list]
Promises: every stage runs even where an earlier one failed, each within its time limit, with its time printed; the last line is
`N passed, N failed`, and the exit code is 1 when anything failed. Does not set anything up (scripts/setup does).
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
# What stages of their own run.
ELSEWHERE = [f"--ignore=tests/{name}" for name in ("house", "launcher", "replicate", "shards", "prompt", "slurm", "test_programs.py", "test_cases.py",
                                            "test_counts.py")]
PROGRAMS = ["tests/test_programs.py", "tests/test_cases.py"]
ARRAYS_4 = [f"tests/numpy/test_{noun}.py" for noun in ("views", "indexing", "reductions")]
RANDOM = [sys.executable, "-m", "tests.random_programs"]
# Tests that run inside of several ranks, each of which runs all of pytest; a stage's settings must be there when they start.
LEGATE = str(Path(sys.executable).with_name("legate"))
RANKS = [LEGATE, "--ranks-per-node"]
IN_RANKS = ["-m", *PYTEST[2:], "--stage", "tiny"]
TINY = {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_PROCESSORS": "3"}
# The MPI plugin builds only where there is an MPI.
NO_MPI = ["--exclude", "legate-mpi"]
CRATES = ["-p", "legate-launcher", "-p", "legate-runtime", "-p", "legate-kernels"]


@dataclass(frozen=True)
class Stage:
    """One command of the run: the smallest set it belongs to (check < quick < all), its limit, and what it adds to the environment."""

    name: str
    words: list[str]
    within: str
    limit_s: int
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def lacks(self) -> str:
        """The MPI plugin that the stage needs and the machine has not (scripts/setup said so); empty where nothing lacks."""
        family = "mpich" if "mpich" in self.words else "*" if "--ranks" in self.words or self.words[:len(RANKS)] == RANKS else ""
        return family if family and not list((TOP / "site-packages" / "legate").glob(f"_mpi_{family}.so")) else ""


STAGES = [
    Stage("format", ["cargo", "fmt", "--check"], "check", 60),
    Stage("lints", ["cargo", "clippy", "--quiet", "--workspace", *NO_MPI, "--all-targets", "--", "-D", "warnings"], "check", 600),
    Stage("docs", ["cargo", "doc", "--quiet", "--no-deps", "--workspace", *NO_MPI, "--document-private-items"], "check", 300,
          {"RUSTDOCFLAGS": "-D warnings -A rustdoc::private_intra_doc_links"}),
    Stage("house", [*PYTEST, "tests/house"], "check", 60),
    # Optimised, since the tests go through millions of elements, but with overflow checks and assertions.
    Stage("rust", ["cargo", "test", "--quiet", "--no-fail-fast", *CRATES], "check", 900, {"CARGO_PROFILE_DEV_OPT_LEVEL": "3"}),
    Stage("launcher", [*PYTEST, "tests/launcher"], "check", 300),
    Stage("arrays, tiny tiles", [*PYTEST, "tests", *ELSEWHERE, "--stage", "tiny"], "check", 900),
    Stage("one program on several shards", [*PYTEST, "tests/replicate"], "quick", 900),
    Stage("arrays, as users run", [*PYTEST, "tests/numpy", "--stage", "plain"], "quick", 600),
    Stage("arrays, not fused", [*PYTEST, "tests/numpy", "--stage", "unfused"], "quick", 600),
    Stage("arrays, narrow window", [*PYTEST, "tests/numpy", "--stage", "narrow"], "all", 600),
    Stage("programs and cases", [*PYTEST, *PROGRAMS, "tests/test_counts.py"], "quick", 900),
    Stage("jobs of several ranks", [*PYTEST, "tests/shards"], "quick", 600),
    Stage("jobs of Slurm", [*PYTEST, "tests/slurm"], "quick", 300),
    Stage("prompts and notebooks", [*PYTEST, "tests/prompt"], "quick", 900),
    Stage("arrays, 2 ranks", [*RANKS, "2", *IN_RANKS, "tests/numpy"], "quick", 900, TINY),
    Stage("arrays, 4 ranks of MPICH", [*RANKS, "4", "--mpi", "mpich", *IN_RANKS, *ARRAYS_4], "all", 900, TINY),
    Stage("programs and cases, 2 ranks", [*PYTEST, *PROGRAMS, "--ranks", "2", "-k", "tiny or plain"], "all", 900),
    Stage("programs, 4 ranks", [*PYTEST, PROGRAMS[0], "--ranks", "4", "-k", "tiny"], "all", 900),
    Stage("second Python and NumPy", ["scripts/second-python"], "all", 600),
    Stage("random programs, tiny tiles", [*RANDOM, "--stage", "tiny", "--count", "4000"], "all", 600),
    Stage("random programs, not fused", [*RANDOM, "--stage", "unfused", "--count", "2000", "--seed", "100001"], "all", 600),
    Stage("random programs, narrow window", [*RANDOM, "--stage", "narrow", "--count", "2000", "--seed", "200001"], "all", 600),
    Stage("random programs, large arrays", [*RANDOM, "--stage", "plain", "--scale", "large", "--count", "100", "--seed", "300001"],
          "all", 600),
    Stage("random programs, 3 shards", [*RANDOM, "--stage", "tiny", "--ranks", "3", "--count", "300", "--seed", "400001"],
          "all", 600),
    Stage("random programs, 4 shards in blocks", [*RANDOM, "--stage", "blocks", "--ranks", "4", "--count", "200", "--seed", "500001"],
          "all", 600),
    Stage("NumPy's tests, as users run", ["tests/numpy_suite/run", "--subset", "4"], "all", 1800),
    Stage("NumPy's tests, forced", ["tests/numpy_suite/run", "--forced", "--subset", "4"], "all", 1800),
]
SETS = ("check", "quick", "all")

# Lines that a runner closes with, and how many passed and failed in them; all such lines of a stage are added up.
COUNTS = {
    "cargo": re.compile(r"^test result: .*?(?P<passed>\d+) passed; (?P<failed>\d+) failed"),
    "pytest": re.compile(r"^(?=.* in [\d.]+s)(?:.*?(?P<failed>\d+) failed)?(?:.*?(?P<passed>\d+) passed)?(?:.*?(?P<errors>\d+) error)?"),
    "random_programs": re.compile(r"^(?P<passed>\d+) of (?P<total>\d+) programs alike"),
    "numpy_suite": re.compile(r"^\w+: (?P<passed>\d+) of \d+ cases.*; (?P<failed>\d+) functions fail outside"),
}


def counts(lines, code):
    """How many tests passed and failed in what a stage printed; a stage without such lines is one test."""
    passed = failed = 0
    for line in lines:
        for pattern in COUNTS.values():
            if found := pattern.match(line):
                groups = found.groupdict()
                passed += int(groups["passed"] or 0)
                total = int(groups.get("total") or 0)
                failed += int(groups.get("failed") or 0) + int(groups.get("errors") or 0) + max(total - int(groups["passed"] or 0), 0)
    if code != 0:
        return passed, max(failed, 1)
    return max(passed, 1), failed


def end(process):
    """Ends a stage's process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(stage):
    """Runs one stage, showing its output; its lines and exit code, None when it was stopped at its limit."""
    process = subprocess.Popen(stage.words, cwd=TOP, env={**os.environ, **stage.environment}, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    stopped = threading.Event()
    timer = threading.Timer(stage.limit_s, lambda: (stopped.set(), end(process)))
    timer.start()
    lines = []
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        code = process.wait()
    finally:
        timer.cancel()
        end(process)
    return lines, None if stopped.is_set() else code


def chosen(options):
    """The stages that the options ask for, in the table's order."""
    wanted = ["quick"] if options.quick else options.only or ["all"]
    names = {stage.name for stage in STAGES}
    if unknown := [name for name in wanted if name not in SETS and name not in names]:
        sys.exit(f"no stage {unknown[0]!r}; there are: {', '.join(sorted(names))}; and the sets {', '.join(SETS)}")
    reach = max((SETS.index(name) for name in wanted if name in SETS), default=-1)
    return [stage for stage in STAGES if stage.name in wanted or SETS.index(stage.within) <= reach]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the long stages")
    parser.add_argument("--only", nargs="+", default=[], metavar="STAGE", help="stages or sets to run")
    parser.add_argument("--list", action="store_true", help="print the stages and their sets")
    options = parser.parse_args()
    if options.list:
        print(*(f"{stage.within:6} {stage.name}" for stage in STAGES), sep="\n")
        return 0
    rows = []
    for stage in chosen(options):
        print(f"\n=== {stage.name}", flush=True)
        if stage.lacks:
            print("left out: no MPI plugin is built here", flush=True)
            continue
        began = time.monotonic()
        lines, code = run(stage)
        if code is None:
            print(f"{stage.name}: stopped after {stage.limit_s} seconds", flush=True)
        rows.append((stage.name, time.monotonic() - began, *counts(lines, code)))
    print("\n=== in all")
    for name, seconds, passed, failed in rows:
        print(f"{'FAILED' if failed else 'ok':6} {name:30} {seconds:6.0f} s  {passed} passed, {failed} failed")
    passed, failed = sum(row[2] for row in rows), sum(row[3] for row in rows)
    print(f"{sum(row[1] for row in rows):.0f} seconds")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
