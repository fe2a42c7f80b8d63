"""Profiles, logs, and stopping at an error.

Promises: what is written is read back with the tools that it is for (json, pstats); frozen programs are told to go on, and none is left.
"""
import json
import os
import pstats
import re
import signal
import subprocess
import time

import pytest

from tests import candidate
from tests.launcher.processes import below, is_alive
from tests.launcher.test_binding import RANKS

COMPUTING = """
import numpy as np
def compute():
    a = np.ones((2000, 400))
    for _ in range(5):
        a[1:-1] = 0.5 * (a[2:] + a[:-2])
    return float(a.sum())
print(compute())
"""


def legate(*words, **options):
    return candidate.run([*candidate.command(), *map(str, words)], **options)


@pytest.mark.parametrize("ranks", RANKS)
def test_profile(ranks, tmp_path):
    outcome = legate("--ranks-per-node", ranks, "--profile", "--logdir", tmp_path / "logs", "-c", COMPUTING)
    assert outcome.code == 0 and outcome.stdout == "800000.0\n", outcome.stderr
    found = {path.name: json.loads(path.read_text())["traceEvents"] for path in (tmp_path / "logs").iterdir()}
    assert sorted(found) == [f"profile-{rank}.json" for rank in range(ranks)]
    for rank in range(ranks):
        spans = [event for event in found[f"profile-{rank}.json"] if event["ph"] == "X"]
        assert {span["pid"] for span in spans} == {rank}
        assert sum(span["args"]["operations"] for span in spans) >= 5
        assert any("multiply" in span["name"] for span in spans)
        assert all(one["ts"] + one["dur"] <= other["ts"] for one, other in zip(spans, spans[1:])), "groups run one after the other"
    names = {tuple(event["name"] for event in events if event["ph"] == "X") for events in found.values()}
    assert len(names) == 1, "shards run the same groups"


@pytest.mark.parametrize("ranks", RANKS)
def test_cprofile(ranks, tmp_path):
    outcome = legate("--ranks-per-node", ranks, "--cprofile", "--logdir", tmp_path, "-c", COMPUTING)
    assert outcome.code == 0 and outcome.stdout == "800000.0\n", outcome.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"legate-{rank}.cprof" for rank in range(ranks)]
    for path in tmp_path.iterdir():
        functions = {key[2] for key in pstats.Stats(str(path)).stats}
        assert "compute" in functions


def test_a_folder_that_cannot_be_written():
    outcome = legate("--profile", "--cprofile", "--logdir", "/proc/none", "-c", COMPUTING)
    assert outcome.code == 0 and outcome.stdout == "800000.0\n"
    first, second = sorted(outcome.stderr.splitlines())
    assert first.startswith("legate: --cprofile: ") and second.startswith("legate: --profile: ")


def test_logging_tells_what_was_decided_and_done():
    outcome = legate("--logging", "info,runtime=debug", "--cpus", "1", "-c", COMPUTING)
    assert outcome.stdout == "800000.0\n" and outcome.code == 0
    assert "legate: info: launcher: " in outcome.stderr and "  cpus    1: --cpus" in outcome.stderr
    assert "legate: debug: runtime: settings in force: cpus 1," in outcome.stderr
    assert re.search(r"legate: info: runtime: \d+ operations in \d+ groups of \d+ tiles; \d+ results never stored", outcome.stderr)
    assert legate("--logging", "none", "-c", COMPUTING).stderr == ""


def frozen(program, *words):
    """A program that has frozen; its process, and what it has said."""
    process = subprocess.Popen([*candidate.command(), *words, "--freeze-on-error", "-c", program], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=candidate.environment({}))
    said, ranks = "", int(words[1]) if words else 1
    while said.count("to go on: kill -CONT") < ranks:
        line = process.stderr.readline()
        assert line, f"it did not freeze: {said}"
        said += line
    return process, said


@pytest.mark.parametrize("sent", [signal.SIGCONT, signal.SIGINT, signal.SIGTERM])
def test_an_exception_freezes(sent):
    process, said = frozen("import numpy as np\n1 / 0")
    assert "ZeroDivisionError: division by zero\nlegate: frozen after this ZeroDivisionError: process" in said
    time.sleep(0.5)
    assert process.poll() is None
    os.kill(int(re.search(r"gdb -p (\d+)", said)[1]), sent)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, errors) == (1, "", "")


def test_a_crash_freezes():
    process, said = frozen("import ctypes; ctypes.string_at(8)")
    assert said.startswith("legate: frozen at a crash: process")
    time.sleep(0.5)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGSEGV


def test_nothing_freezes_without_an_error():
    for program, code in [("print(1)", 0), ("raise SystemExit(3)", 3), ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass", 0)]:
        outcome = legate("--freeze-on-error", "-c", program, limit_s=60)
        assert (outcome.code, outcome.stderr) == (code, "")


@pytest.mark.parametrize("ranks", RANKS[1:])
@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 1), (signal.SIGTERM, -signal.SIGTERM)])
def test_all_ranks_freeze_and_go_on_together(ranks, sent, code):
    process, said = frozen("import numpy as np\nx = np.ones(300_000)\n1 / 0", "--ranks-per-node", str(ranks))
    assert sorted(re.findall(r"rank (\d) of", said)) == [str(rank) for rank in range(ranks)]
    assert said.count("division by zero") == 1
    members = below(process.pid)
    process.send_signal(sent)
    process.communicate(timeout=30)
    assert process.returncode == code
    assert not [member for member in members if is_alive(member)]
