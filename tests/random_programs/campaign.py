"""Drives worker processes over many random programs, and shrinks each failing one to the statements that matter.

Promises: a crash or a hang of the candidate is a finding like any other and never ends the campaign. Does not judge results.
"""
import json
import re
import selectors
import subprocess
from dataclasses import dataclass

from tests import candidate
from tests.random_programs.program import SCALES, grow

PROGRAM_LIMIT_S = 20


@dataclass(frozen=True)
class Task:
    """One program and how it is judged: after each statement or at the end, with warnings compared or not."""

    seed: int
    statements: tuple[str, ...]
    eager: bool
    warned: bool


@dataclass(frozen=True)
class Failure:
    """A program that differs: where and how."""

    task: Task
    statement: int
    text: str

    @property
    def kind(self) -> str:
        """What failures of one cause have in common: the operation of the failing statement and the difference without numbers."""
        last = self.task.statements[min(self.statement, len(self.task.statements) - 1)] if self.task.statements else ""
        words = re.findall(r"[a-zA-Z_.]+|[-+*/%&|^<>=@~]+", re.sub(r"\bv\d+\b", "v", last))
        return " ".join(words)[:60] + " :: " + re.sub(r"[-\d.]+", "#", self.text)[:60]


class Worker:
    """A process that judges programs; started again after each end."""

    def __init__(self, env: dict[str, str]):
        self.env = env
        self.process = None

    def start(self):
        """A fresh process."""
        path = {"PYTHONPATH": f"{candidate.TOP}:{candidate.TOP / 'site-packages'}"}
        start = [*candidate.command(), "--intercept", "none"] if "LEGATE_RANKS_PER_NODE" in self.env else candidate.python()
        self.process = subprocess.Popen([*start, "-m", "tests.random_programs.worker"], text=True, cwd=candidate.TOP,
                                        env=candidate.environment({**path, **self.env}), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def stop(self):
        """Ends the process."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def judge(self, task: Task) -> Failure | None:
        """Runs one program in both worlds."""
        if self.process is None:
            self.start()
        line = json.dumps({"statements": task.statements, "eager": task.eager, "warned": task.warned}) + "\n"
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
            answer = self.read_line()
        except BrokenPipeError:
            answer = ""
        if answer:
            verdict = json.loads(answer)
            return verdict and Failure(task, *verdict)
        if answer is None:
            self.stop()
            return Failure(task, len(task.statements), f"no answer in {PROGRAM_LIMIT_S} s")
        _, errors = self.process.communicate()
        code, self.process = self.process.returncode, None
        return Failure(task, len(task.statements), f"process ended with {code}: {errors.strip()[-700:]}")

    def read_line(self) -> str | None:
        """The answer; empty when the process ended, None when it took too long."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return self.process.stdout.readline() if selector.select(PROGRAM_LIMIT_S) else None


def task_of(seed: int, scale: str, length: int) -> Task:
    """The program of a seed: half are looked at only at the end, a few with their warnings."""
    return Task(seed, tuple(grow(seed, SCALES[scale], length)), eager=seed % 2 == 0, warned=seed % 7 == 0)


def shrink(worker: Worker, failure: Failure, most_tries: int = 200) -> Failure:
    """Removes statements while the program still fails in a like way."""
    tries = 0
    start = failure
    chunk = max(1, len(failure.task.statements) // 2)
    while chunk and tries < most_tries:
        position = len(failure.task.statements) - chunk
        while position >= 0 and tries < most_tries:
            kept = failure.task.statements[:position] + failure.task.statements[position + chunk:]
            tries += 1
            smaller = worker.judge(Task(failure.task.seed, kept, failure.task.eager, failure.task.warned)) if kept else None
            if smaller and alike(start, smaller):
                failure = smaller
                position = min(position, len(kept)) - (0 if position <= len(kept) - chunk else chunk)
            else:
                position -= chunk
        chunk //= 2
    return failure


def alike(one: Failure, two: Failure) -> bool:
    """Whether two failures are of one sort: both crash, both raise, or both differ; a name lost by shrinking is no failure."""
    def sort(text):
        return next((word for word in ("process ended", "no answer", "raised", "warnings", "strides", "flags") if word in text), "value")
    return sort(one.text) == sort(two.text) and "NameError" not in two.text


def campaign(seeds, env: dict[str, str], scale: str, length: int, report) -> list[Failure]:
    """Judges the program of each seed; `report` is called with each failing one, shrunk."""
    worker, failures, kinds = Worker(env), [], {}
    try:
        for seed in seeds:
            if failure := worker.judge(task_of(seed, scale, length)):
                small = shrink(worker, failure) if kinds.get(failure.kind, 0) < 2 else failure
                kinds[failure.kind] = kinds.get(failure.kind, 0) + 1
                failures.append(small)
                report(small)
    finally:
        worker.stop()
    return failures
