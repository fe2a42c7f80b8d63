"""What `python` does with a program, `legate` does: same standard output, same standard error, same exit code.

Promises: every row runs under both, in the same folder, and everything printed is compared, tracebacks and all. Rows have no
arrays; what NumPy does is tested elsewhere.
"""
import os
import pty
import re
import signal
import subprocess
from dataclasses import dataclass, field

import pytest

from tests import candidate
from tests.launcher.programs import FILES


@dataclass(frozen=True)
class Row:
    """One way to start one of the programs."""

    name: str
    words: list[str]
    stdin: str = ""
    environment: dict[str, str] = field(default_factory=dict)


# What Python tells about how it was started: argv, __main__, the path, flags, executable, environment.
STATE = [
    Row("script", ["state.py", "a", "--cpus", "-c"]),
    Row("script in a folder", ["package/inner.py", "x"]),
    Row("script with a path of its own", ["./package/../state.py"]),
    Row("script named like an option", ["--", "--odd.py"]),
    Row("folder", ["folder", "x"]),
    Row("module", ["-m", "state", "a"]),
    Row("package", ["-m", "package", "a", "-m", "b"]),
    Row("module of a package", ["-m", "package.inner"]),
    Row("command", ["-c", "import state", "a", "-c"]),
    Row("command in one word", ["-cimport state", "a"]),
    Row("dash", ["-", "a"], "import state\n"),
    Row("standard input", [], "import state\n"),
    Row("options", ["-OO", "-B", "-u", "-W", "ignore::UserWarning", "-X", "utf8", "-Xdev", "state.py"]),
    Row("options in one word", ["-bbus", "state.py"]),
    Row("safe path", ["-P", "state.py"]),
    Row("no user site", ["-s", "state.py"]),
    Row("isolated", ["-I", "state.py"]),
    Row("no environment", ["-E", "state.py"], environment={"PYTHONOPTIMIZE": "1"}),
    Row("no site", ["-S", "state.py"]),
    Row("PYTHONPATH", ["state.py"], environment={"PYTHONPATH": "package:folder"}),
    Row("PYTHONSAFEPATH", ["state.py"], environment={"PYTHONSAFEPATH": "1"}),
    Row("PYTHONOPTIMIZE", ["state.py"], environment={"PYTHONOPTIMIZE": "2"}),
    Row("PYTHONWARNINGS", ["state.py"], environment={"PYTHONWARNINGS": "error::DeprecationWarning"}),
    Row("PYTHONDEVMODE", ["state.py"], environment={"PYTHONDEVMODE": "1"}),
    Row("PYTHONUTF8", ["state.py"], environment={"PYTHONUTF8": "0", "LC_ALL": "C"}),
    Row("PYTHONIOENCODING", ["state.py"], environment={"PYTHONIOENCODING": "latin-1"}),
    Row("PYTHONHASHSEED", ["-c", "print(hash('x'))"], environment={"PYTHONHASHSEED": "7"}),
    Row("PYTHONINSPECT", ["state.py"], "print(__name__)\n", environment={"PYTHONINSPECT": "1"}),
    Row("inspect", ["-i", "state.py"], "print(sorted(globals()))\n1/0\n"),
    Row("interactive", ["-i"], "import state\nx = 3\nx\n"),
    Row("interactive and quiet", ["-qi", "-"], "1 + 1\n"),
    Row("PYTHONSTARTUP", ["-i"], "started\n", environment={"PYTHONSTARTUP": "startup.py"}),
    Row("own sitecustomize", ["-c", "import builtins; print(builtins.customized)"], environment={"PYTHONPATH": "customized"}),
    Row("not UTF-8", ["-c", "import sys; print(ascii(sys.argv))", "\udcff"]),
    Row("blank argument", ["state.py", "", " ", "é"]),
]

# How programs end: exit codes, texts of SystemExit, tracebacks, and the order of what runs last.
ENDS = [
    Row("exit with a text", ["-c", "raise SystemExit('seven')"]),
    Row("exit with a number", ["-c", "raise SystemExit(7)"]),
    Row("exit with nothing", ["-c", "raise SystemExit"]),
    Row("exit with a large number", ["-c", "raise SystemExit(300)"]),
    Row("exit with an object", ["-c", "raise SystemExit([1, 2])"]),
    Row("exit at once", ["-c", "import os; os._exit(9)"]),
    Row("raise", ["fail.py"]),
    Row("raise in a module", ["-m", "fail"]),
    Row("raise in a command", ["-c", "import fail"]),
    Row("raise in standard input", ["-"], "def f():\n    1/0\nf()\n"),
    Row("raise with a cause and a group", ["fail_group.py"]),
    Row("recursion", ["recursion.py"]),
    Row("excepthook", ["hook.py"]),
    Row("at exit", ["at_exit.py"]),
    Row("at exit with arrays", ["at_exit_arrays.py"]),
    Row("threads", ["threads.py"]),
    Row("syntax error", ["broken.py"]),
    Row("syntax error in an import", ["-c", "import broken"]),
    Row("syntax error in a command", ["-c", "a b"]),
    Row("zero byte", ["zero_byte.py"]),
    Row("no script", ["missing.py"]),
    Row("folder without __main__", ["customized"]),
    Row("no module", ["-m", "missing"]),
    Row("no __main__ in a package", ["-m", "customized_package"]),
    Row("module that fails to import", ["-m", "fail_package.inner"]),
    Row("warnings", ["warn.py"]),
    Row("warnings as errors", ["-W", "error", "warn.py"]),
    Row("wrong warning filter", ["-W", "gibberish", "-c", "print(1)"]),
    Row("assert", ["-c", "assert False, 'text'"]),
    Row("no asserts", ["-O", "-c", "assert False; print(__debug__)"]),
    Row("interrupted", ["interrupted.py"]),
    Row("interrupted in a module", ["-m", "interrupted"]),
    Row("terminated", ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"]),
    Row("crashed", ["-c", "import ctypes; ctypes.string_at(0)"]),
    Row("aborted with faulthandler", ["-X", "faulthandler", "-c", "import os; os.abort()"]),
    Row("signals", ["-c", "import signal as s; print({n: s.getsignal(n) for n in s.valid_signals()})"]),
    Row("input", ["-c", "print(input()); import sys; print(sys.stdin.read())"], "one\ntwo\n"),
]

# Programs that start others.
CHILDREN = [
    Row("fork", ["processes.py", "fork"]),
    Row("spawn", ["processes.py", "spawn"]),
    Row("forkserver", ["processes.py", "forkserver"]),
    Row("spawn from a module", ["-m", "processes", "spawn"]),
    Row("spawn with options", ["-O", "-W", "ignore", "-X", "utf8", "processes.py", "spawn"]),
    Row("executor", ["executor.py"]),
    Row("subprocess", ["children.py"]),
    Row("subprocess from a command", ["-c", "import children"]),
    Row("asyncio", ["asynchronous.py"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all programs."""
    top = tmp_path_factory.mktemp("programs")
    for name, text in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def without_addresses(text):
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


def compare(row, folder, limit_s=60):
    """Runs the row under both and compares everything."""
    environment = {"PYTHONDONTWRITEBYTECODE": "1", **row.environment}
    oracle, ours = (candidate.run([*words, *row.words], env=environment, cwd=folder, limit_s=limit_s, stdin=row.stdin)
                    for words in (candidate.python(), candidate.command()))
    assert without_addresses(ours.stderr) == without_addresses(oracle.stderr)
    assert ours.stdout == oracle.stdout
    assert ours.code == oracle.code


@pytest.mark.parametrize("row", [*STATE, *ENDS, *CHILDREN], ids=lambda row: row.name)
def test_as_python(row, folder):
    compare(row, folder)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signal_from_outside(sent, folder):
    """A program that waits is ended by a signal as Python would end it, and its `finally` runs for an interrupt."""
    outcomes = []
    for words in (candidate.python(), candidate.command()):
        outcomes.append(candidate.run([*candidate.python(), "send_signal.py", str(int(sent)), *words, "waiting.py"], cwd=folder))
    assert outcomes[0] == outcomes[1]
    assert "ended by" in outcomes[0].stdout


@pytest.mark.parametrize("words", [[], ["-i", "fail.py"]], ids=["prompt", "prompt after a script"])
def test_at_a_terminal(words, folder):
    """What a person sees at the prompt."""
    seen = [at_a_terminal([*start, *words], folder, "import state\n1 / 0\nexit(3)\n")
            for start in (candidate.python(), candidate.command())]
    assert seen[0] == seen[1]
    assert "ZeroDivisionError" in seen[0][0] and seen[0][1] == 3


def at_a_terminal(words, folder, typed):
    """Runs `words` at a terminal of its own; what it shows, and its exit code."""
    ours, theirs = pty.openpty()
    environment = candidate.environment({"TERM": "dumb", "PYTHON_HISTORY": os.devnull, "PYTHON_BASIC_REPL": "1"})
    process = subprocess.Popen(words, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    for line in [*typed.encode().splitlines(keepends=True), b""]:
        while not shown.endswith(b">>> ") or not line:
            try:
                shown += os.read(ours, 1000)
            except OSError:
                break
        os.write(ours, line)
        shown += b"<typed>"
    os.close(ours)
    return shown.decode(), process.wait(timeout=20)


def test_rows_have_names_of_their_own():
    names = [row.name for row in (*STATE, *ENDS, *CHILDREN)]
    assert len(set(names)) == len(names)
