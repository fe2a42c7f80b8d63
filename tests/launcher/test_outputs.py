"""What ranks print, where it goes, and what is around them: --all-output, --log-to-file, --timing, debuggers, wrappers.

Promises: output is taken as a user's shell would take it, from one pipe or one terminal. Bindings have their own tests.
"""
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests import candidate
from tests.launcher.test_binding import RANKS, needs_mpi

# Every rank writes long lines from Python, from C and with the bare system call, and a last one without an end.
TALKING = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for number in range(200):
    print("python", number, "x" * 9000)
    sys.stdout.flush()
    libc.puts(b"c %d %s" % (number, b"y" * 5000))
    libc.fflush(None)
    os.write(2, b"error %d %s\\n" % (number, b"z" * 3000))
os.write(1, b"last")
"""
EXPECTED = [line for number in range(200) for line in (f"python {number} {'x' * 9000}", f"c {number} {'y' * 5000}")] + ["last"]


def legate(*words, **options):
    return candidate.run([*candidate.command(), *map(str, words)], **options)


@pytest.mark.parametrize("ranks", RANKS)
def test_all_output_keeps_lines_whole(ranks):
    outcome = legate("--ranks-per-node", ranks, "--all-output", "-c", TALKING)
    assert outcome.code == 0, outcome.stderr[-500:]
    lines = outcome.stdout.splitlines()
    for rank in range(ranks):
        assert [line[4:] for line in lines if line.startswith(f"[{rank}] ")] == EXPECTED
    assert len(lines) == ranks * len(EXPECTED)
    assert len(outcome.stderr.splitlines()) == 200 * ranks and all(re.match(r"\[\d\] error \d+ z+$", line) for line in outcome.stderr.splitlines())


@pytest.mark.parametrize("ranks", RANKS)
def test_a_log_file_for_each_rank(ranks, tmp_path):
    outcome = legate("--ranks-per-node", ranks, "--log-to-file", "--logdir", tmp_path / "logs", "-c", TALKING)
    assert outcome.code == 0 and outcome.stdout.splitlines() == EXPECTED, "rank 0 is seen as ever"
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == [f"rank-{rank}.log" for rank in range(ranks)]
    for path in (tmp_path / "logs").iterdir():
        lines = path.read_text().splitlines()
        assert [line for line in lines if not line.startswith("error")] == EXPECTED
        assert len(lines) == len(EXPECTED) + 200


@needs_mpi
def test_all_output_under_a_runner_of_the_users():
    runner = shutil.which("mpirun.openmpi")
    if runner is None:
        pytest.skip("needs Open MPI's mpirun")
    words = [runner, "--allow-run-as-root", "--oversubscribe", "-q", "-n", "2", *candidate.command(), "--all-output", "-c", "print('here')"]
    outcome = candidate.run(words)
    assert outcome.code == 0 and sorted(outcome.stdout.splitlines()) == ["[0] here", "[1] here"], outcome.stderr


def test_colours():
    assert legate("--color", "--all-output", "-c", "print(1)").stdout == "\x1b[31m[0]\x1b[0m 1\n"
    assert legate("--color=never", "--all-output", "-c", "print(1)").stdout == "[0] 1\n"
    assert "\x1b[" in legate("--color=always", "--help").stdout and "\x1b[" not in legate("--help").stdout


def test_a_log_that_cannot_be_written():
    outcome = legate("--log-to-file", "--logdir", "/proc/none", "-c", "1")
    assert outcome.code == 2 and outcome.stderr.startswith("legate: --log-to-file: /proc/none/rank-0.log: ")


@pytest.mark.parametrize("flag", ["--all-output", "--timing", "--log-to-file"])
def test_ends_as_the_program_does(flag, tmp_path):
    assert legate(flag, "-c", "raise SystemExit(7)", cwd=tmp_path).code == 7
    assert legate(flag, "-c", "import os; os.kill(os.getpid(), 11)", cwd=tmp_path).code == -signal.SIGSEGV
    failed = legate(flag, "-c", "1 / 0", cwd=tmp_path)
    assert failed.code == 1 and "ZeroDivisionError: division by zero" in failed.stderr


@pytest.mark.parametrize("sent, code", [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM)])
def test_signals_reach_the_program(sent, code):
    # Short sleeps: Python itself sleeps on where a signal comes just before a long one.
    program = "import time; print('ready', flush=True)\nfor _ in range(300): time.sleep(0.1)"
    words = [*candidate.command(), "--all-output", "-c", program]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=candidate.environment({}))
    assert process.stdout.readline() == "[0] ready\n"
    process.send_signal(sent)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert ("KeyboardInterrupt" in errors) == (sent == signal.SIGINT)


@pytest.mark.parametrize("ranks", RANKS)
def test_a_terminal_stays_one(ranks):
    program = "import os, sys; print(os.isatty(1), sys.stdout.isatty(), os.get_terminal_size().columns, flush=True)"
    reader, writer = pty.openpty()
    words = [*candidate.command(), "--ranks-per-node", str(ranks), "--all-output", "-c", program]
    process = subprocess.Popen(words, stdout=writer, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=candidate.environment({}))
    os.close(writer)
    text = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(reader)
    assert process.wait(30) == 0
    lines = text.decode().splitlines()
    assert len(lines) == ranks and all("True True" in line for line in lines), lines


@pytest.mark.parametrize("ranks", RANKS)
def test_timing(ranks):
    outcome = legate("--ranks-per-node", ranks, "--timing", "-c", "import time; time.sleep(0.5); print('program')")
    assert outcome.stdout == "program\n" and outcome.code == 0
    whose = "the program" if ranks == 1 else "the job"
    found = re.fullmatch(rf"legate: {whose} took (\d+\.\d\d) s, (\d+\.\d\d) CPU seconds in programs and (\d+\.\d\d) in the kernel; "
                         r"a process had at most [\d.]+ MiB of memory\n", outcome.stderr)
    assert found, outcome.stderr
    assert float(found[1]) >= 0.5


@pytest.mark.parametrize("ranks", RANKS)
def test_a_wrapper_around_each_rank(ranks):
    program = "import os, sys; print(os.environ['NUMBER'], sys.argv, [name for name in os.environ if name.startswith('LEGATE_') and 'TEST' not in name])"
    words = ["--ranks-per-node", ranks, "--wrapper-inner", "env NUMBER=%%LEGATE_GLOBAL_RANK%%", "-c", program, "x y"]
    outcome = legate(*words)
    assert (outcome.stdout, outcome.code) == ("0 ['-c', 'x y'] []\n", 0), outcome.stderr


@needs_mpi
def test_a_wrapper_around_what_starts_the_ranks():
    outcome = legate("--ranks-per-node", 2, "--wrapper", "env OUTER=1", "-c", "import os; print(os.environ['OUTER'])")
    assert (outcome.stdout, outcome.code) == ("1\n", 0), outcome.stderr
    shown = legate("--dry-run", "--ranks-per-node", 2, "--wrapper", "env OUTER=1", "-c", "1").stdout
    assert re.search(r"env OUTER=1 \S*mpi\S+ .*legate -c 1$", shown), shown


def test_a_wrapper_that_is_a_python_program(tmp_path):
    """It is no legate itself, though it is started with what makes Python one."""
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text("import os, sys\nprint([name for name in sys.modules if 'legate' in name], flush=True)\nos.execv(sys.argv[1], sys.argv[1:])\n")
    outcome = legate("--wrapper-inner", f"{sys.executable} {wrapper}", "-c", "import numpy as np, sys; print('legate' in sys.modules)")
    assert (outcome.stdout, outcome.stderr, outcome.code) == ("[]\nTrue\n", "", 0)


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_gdb():
    outcome = legate("--gdb", "-c", "import numpy as np; print(float((np.ones(100_000) + 1).sum()))", stdin="run\nquit\n")
    assert "200000.0" in outcome.stdout and "exited normally" in outcome.stdout, outcome.stdout + outcome.stderr


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
def test_valgrind():
    outcome = legate("--valgrind", "-c", "print('program')", limit_s=280)
    assert outcome.stdout == "program\n" and "ERROR SUMMARY" in outcome.stderr


def test_no_rank_is_left(tmp_path):
    """A job that is ended while it prints leaves neither ranks nor what stands before them."""
    if not RANKS[1].marks:
        words = [*candidate.command(), "--ranks-per-node", "2", "--all-output", "-c", "while True: print('x' * 1000)"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=candidate.environment({"MARK": str(tmp_path)}))
        time.sleep(3)
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM
        mark = f"MARK={tmp_path}".encode()
        left = [number for number in os.listdir("/proc") if number.isdigit() and mark in _environ(number)]
        assert not left


def _environ(process):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""
