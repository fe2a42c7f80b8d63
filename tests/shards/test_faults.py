"""Ranks that are killed, frozen or slow, and jobs that are interrupted: no hang, no orphan, and a word about why.

Promises: each fault strikes while the ranks compute and meet in a loop, at a moment drawn from a fixed seed.
"""
import random
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

from tests import candidate
from tests.shards.ranks import FAMILIES, left, needs_mpi, nothing_is_left, words, write

pytestmark = needs_mpi
LOOP = "while True:\n    a = a + 1\n    _core.collect(b'')"
# Seconds within which a job must have ended after what strikes it.
END_S = 10


class Job:
    """A running job whose program has begun its loop."""

    def __init__(self, family, ranks, folder, *more, text=LOOP):
        self.path = write(folder, text)
        environment = candidate.environment({})
        self.process = subprocess.Popen(words(family, ranks, *more, self.path), env=environment, text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.first = self.process.stdout.readline()

    def ranks(self):
        """Process numbers of the ranks: those that hold Python, not their starter or what stands between."""
        found = []
        for number in left(self.path):
            with open(f"/proc/{number}/maps") as maps:
                if "_mpi_" in maps.read():
                    found.append(int(number))
        return found

    def end(self):
        """Waits for the job's end; exit code, what it said, and seconds."""
        began = time.monotonic()
        try:
            stdout, stderr = self.process.communicate(timeout=END_S * 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"still there: {left(self.path)}")
        return self.process.returncode, stdout, stderr, time.monotonic() - began


@pytest.mark.parametrize("family", FAMILIES)
def test_a_killed_rank_ends_the_job(family, tmp_path):
    chance = random.Random(family)
    for _ in range(3):
        job = Job(family, 3, tmp_path)
        assert job.first == "start 2.0\n"
        time.sleep(chance.random() * 0.5)
        ranks = job.ranks()
        assert len(ranks) == 3
        subprocess.run(["kill", "-9", str(chance.choice(ranks))], check=True)
        code, _, stderr, seconds = job.end()
        assert code == 137, stderr
        assert re.fullmatch(r"legate: rank \d was ended by signal 9 \(Killed\)\n", stderr), stderr
        assert seconds < END_S
        assert nothing_is_left(job.path)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_job_as_they_end_python(family, sign, tmp_path):
    job = Job(family, 2, tmp_path)
    time.sleep(0.2)
    job.process.send_signal(sign)
    code, _, stderr, seconds = job.end()
    assert code == -sign, stderr
    expected = r"Traceback(?s:.*)KeyboardInterrupt\n" if sign == signal.SIGINT else ""
    assert re.fullmatch(expected, stderr), stderr
    assert seconds < END_S
    assert nothing_is_left(job.path)


def test_an_interrupt_in_a_loop_over_arrays_shows_the_programs_lines_only(tmp_path):
    job = Job(FAMILIES[0], 2, tmp_path, text="while True:\n    a = a + 1")
    time.sleep(1)
    job.process.send_signal(signal.SIGINT)
    code, _, stderr, _ = job.end()
    assert code == -signal.SIGINT
    assert stderr.startswith("Traceback") and stderr.endswith("KeyboardInterrupt\n") and stderr.count("  File ") == 1, stderr


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("options", [[], ["--all-output"]], ids=["plain", "all-output"])
def test_an_interrupt_reaches_what_rank_0_waits_for(family, options, tmp_path):
    """`os.system` ignores the interrupt and leaves it to the command, which gets it once; the program goes on, as in Python."""
    command = tmp_path / "command.py"
    command.write_text("import signal, sys, time\nsignal.signal(2, lambda *_: print('once', flush=True))\ntime.sleep(4)\nsys.exit(3)\n")
    line = "exec " + shlex.join([sys.executable, str(command)])
    job = Job(family, 2, tmp_path, *options, text=f"import os\nprint('ended by', os.system({line!r}) >> 8, flush=True)")
    time.sleep(1)
    job.process.send_signal(signal.SIGINT)
    code, stdout, stderr, _ = job.end()
    prefix = "[0] " if options else ""
    told = [line for line in stdout.splitlines() if line in (f"{prefix}once", f"{prefix}ended by 3")]
    assert (code, told) == (0, [f"{prefix}once", f"{prefix}ended by 3"]), stdout + stderr
    assert nothing_is_left(job.path)


def test_a_killed_starter_takes_its_ranks_along(tmp_path):
    for family in FAMILIES:
        job = Job(family, 2, tmp_path)
        job.process.kill()
        job.process.wait()
        assert nothing_is_left(job.path, within_s=END_S)


def test_a_frozen_rank_is_reported_and_goes_on(tmp_path):
    text = "for i in range(200):\n    a = a + 0\n    _core.collect(b'')\n    time.sleep(0.01)"
    for family in FAMILIES:
        job = Job(family, 2, tmp_path, "--patience", "1", text=text)
        frozen = max(job.ranks())
        subprocess.run(["kill", "-STOP", str(frozen)], check=True)
        report = job.process.stderr.readline()
        subprocess.run(["kill", "-CONT", str(frozen)], check=True)
        code, stdout, _, _ = job.end()
        assert re.fullmatch(r"legate: shard \d has waited \d s for shard \d \(collect at .*\); shard \d does not answer .*\n", report)
        assert (code, stdout) == (0, "end 4.0\n")


def test_a_slow_rank_is_reported_with_its_line(tmp_path):
    job = Job(FAMILIES[0], 2, tmp_path, "--patience", "1", text="if mine == 1:\n    time.sleep(3)")
    code, stdout, stderr, _ = job.end()
    assert (code, stdout) == (0, "end 4.0\n")
    line = r"legate: shard 0 has waited 1 s for shard 1 \(collect at .*\); shard 1 runs; its latest: .* at .*app.py:\d+\n"
    assert re.match(line, stderr), stderr
