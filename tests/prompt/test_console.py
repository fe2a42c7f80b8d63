"""Python's prompt over 1 and 3 ranks, typed at through a terminal, compared with Python's own.

Promises that each session ends with nothing left, and that what it shows is what `python` shows.
"""
import os
import re
import signal
import time

import pytest

from tests import candidate
from tests.prompt.terminal import CTRL_C, CTRL_D, CTRL_Z, TAB, After, Session, talk, typed
from tests.shards.ranks import FAMILIES, needs_mpi

RANKS = [pytest.param(1, id="1 rank"), pytest.param(3, id="3 ranks", marks=needs_mpi)]
TINY = {"LEGATE_MIN_CPU_CHUNK": "1", "LEGATE_PROCESSORS": "3"}


def legate(ranks, *words):
    return [*candidate.command(), *(["--ranks-per-node", str(ranks)] if ranks > 1 else []), *words]


ALIKE = {
    "values": typed("1 + 1\n_ * 21\nNone\n'text'\n2 ** 100; 'two'\nimport sys\nsys.argv\n__name__"),
    "lines": typed("def add(a, b):\n    return a + b\n\nadd(1, 2)\nfor i in range(3):\n    print(i)\n\nif i:\n    'yes'\n\nclass A:\n"
                   "    x = 1\n\nA.x"),
    "brackets": [(">>> ", "[1,\n"), ("... ", "\n"), ("... ", "2]\n"), (">>> ", "'''a\n"), ("... ", "b'''\n"), (">>> ", CTRL_D)],
    "blank and comments": [(">>> ", "\n"), (">>> ", "# nothing\n"), (">>> ", "x = 5 # five\n"), (">>> ", "x\n"), (">>> ", CTRL_D)],
    "errors": typed("1 / 0\ndef f(x):\n    return g(x)\n\ndef g(x):\n    return [][x]\n\nf(3)\nundefined\nraise ValueError('a\\nb')\n"
                    "import nothing_like_this\nraise KeyError from ZeroDivisionError(1)\n{}['x']\nsys"),
    "no syntax": typed("1 +\n)\nx = = 1\n'open\n1 2\nif x\nlambda = 1"),
    "unfinished at the end": [(">>> ", "if 1:\n"), ("... ", CTRL_D), (">>> ", CTRL_D)],
    "warnings": typed("import warnings\nwarnings.warn('careful')\nx = 5\nx is 5"),
    "future": typed("from __future__ import annotations\ndef f(x: nothing):\n    return f.__annotations__\n\nf(1)"),
    "other prompts": [(">>> ", "import sys; sys.ps1, sys.ps2 = '? ', ': '\n"), ("\n? ", "if 1:\n"), ("\n: ", " 'yes'\n"), ("\n: ", "\n"),
                      ("\n? ", CTRL_D)],
    "display hook": typed("import sys\nsys.displayhook = lambda value: print('shown', value)\n5\nsys.excepthook = lambda *a: print('hook', a[0])\n1 / 0"),
    "exit": typed("exit(3)")[:1],
    "quit": typed("import sys\nsys.exit('bye')")[:2],
    "exit in a function": typed("def end():\n    raise SystemExit(7)\n\nend()")[:4],
    "input": [(">>> ", "x = input('name? ')\n"), ("\nname? ", "Ada\n"), (">>> ", "x\n"), (">>> ", CTRL_D)],
    "input interrupted": [(">>> ", "x = input('name? ')\n"), ("\nname? ", After(0.5, CTRL_C)), (">>> ", "1\n"), (">>> ", CTRL_D)],
    "line interrupted": [(">>> ", "ab"), ("ab", After(0.5, CTRL_C)), (">>> ", "if 1:\n"), ("... ", After(0.5, CTRL_C)), (">>> ", "1\n"), (">>> ", CTRL_D)],
    "help": [(">>> ", "help(len)\n"), (">>> ", "help()\n"), ("help> ", "abs\n"), ("help> ", "quit\n"), (">>> ", "1\n"), (">>> ", CTRL_D)],
}


def shown(words, folder, steps, environment=None):
    """What a session shows, without what differs by chance, and its exit code."""
    text, code = talk(words, folder, steps, {"PAGER": "cat", **(environment or {})})
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text), code


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ALIKE)
def test_as_python(name, ranks, tmp_path):
    assert shown(legate(ranks), tmp_path, ALIKE[name]) == shown(candidate.python(), tmp_path, ALIKE[name])


ARRAYS = typed("""
import numpy as np
a = np.arange(1_200_000).reshape(1200, 1000)
a * 2
b = (a[1:] - a[:-1]).sum(axis=1)
b
float(a.mean())
a.sum()
_ + 1
def steps(x, n):
    for _ in range(n):
        x = x * 0.5 + 1
    return x

steps(a, 20)[::100, ::400]
a[1, 2] = 5
a[1]
np.sqrt(a[0] - 1)[:3]
a[1200]
a + np.ones(7)
""")


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("stage", [{}, TINY], ids=["plain", "tiny"])
def test_arrays_print_as_numpys(stage, ranks, tmp_path):
    oracle = shown(candidate.python(), tmp_path, ARRAYS)
    assert shown(legate(ranks), tmp_path, ARRAYS, stage) == oracle
    assert "RuntimeWarning" in oracle[0] and "IndexError" in oracle[0] and "broadcast" in oracle[0]


START = [(">>> ", "import numpy as np, time; i, found = 0, []; a = np.zeros(1_200_000)\n")]
# What is interrupted, after how many seconds, and what must hold afterwards.
LOOPS = {
    "Python": ("while True: i += 1; found.append(i)", 0.7, "len(found) in (i, i - 1)"),
    "arrays": ("while True: a = a + 1", 1, "bool((a == a[0]).all()) and float(a[0]) > 0"),
    "values": ("while True: a = a + 1; i = float(a.sum())", 1, "float(a.sum()) - i in (0, 1_200_000)"),
    "elements": ("while True: a[i % 1000] = i; i += 1", 1, "int(a.max()) in (i, i - 1) and int(a[:1000].sum()) == int(sum(a[:1000]))"),
    "rows": ("while True: a[i * 1000 % 1_200_000:][:1000] += 1; i += 1", 1, "float(a.sum()) in (i * 1000, (i + 1) * 1000)"),
    "a function": ("def f():\n    n = 0\n    while True: n += 1\n\nf()", 0.7, "True"),
    "sleep": ("time.sleep(100)", 0.5, "True"),
    "random": ("import random\nwhile True: i = random.random()", 0.7, "float(np.full(1_200_000, random.random()).std()) < 1e-12"),
    "finally": ("try:\n    time.sleep(100)\nfinally: found = np.ones(1_200_000)\n", 0.7, "float(found.sum()) == 1_200_000"),
}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupt_ends_the_input_on_all_ranks(name, ranks, tmp_path):
    text, seconds, holds = LOOPS[name]
    *lines, last = text.split("\n")
    compound = last and (last.startswith("while") or lines and not last.startswith("f"))
    session = Session(legate(ranks), tmp_path)
    for wanted, keys in START:
        session.wait_for(wanted)
        session.press(keys)
    session.wait_for(">>> ")
    for line in [*lines, last, *([""] if compound else [])]:
        session.press(line + "\n")
        time.sleep(0.05)
    time.sleep(seconds)
    session.press(CTRL_C)
    pressed = time.monotonic()
    before = session.wait_for("KeyboardInterrupt\n>>> ")
    assert time.monotonic() - pressed < 10
    assert before.count("Traceback") == 1 and "legate" not in before.split("Traceback")[1]
    # The shards agree: on a condition that all compute, and on arrays made of what Python holds.
    session.press(f"({holds}), float(np.full(1_200_000, float(i)).std()) < 1e-3 * abs(i) + 1\n")
    assert session.wait_for("\n>>> ").endswith("(True, True)"), text
    session.press(CTRL_D)
    shown, code = session.end()
    assert code == 0 and not session.left(), shown


@needs_mpi
def test_many_interrupts_do_not_end_the_session(tmp_path):
    steps = [step for _ in range(4) for step in [(">>> ", "x"), ("x", After(0.2, CTRL_C)), (">>> ", "while 1: pass\n"), ("... ", "\n"), ("\n", After(0.3, CTRL_C))]]
    text, code = talk(legate(3), tmp_path, [*steps, (">>> ", CTRL_D)])
    assert code == 0 and text.count("KeyboardInterrupt") == 8


@pytest.mark.parametrize("ranks", RANKS)
def test_after_a_script(ranks, tmp_path):
    (tmp_path / "app.py").write_text("import numpy as np\na = np.arange(100_000)\nprint('ran')\n")
    (tmp_path / "bad.py").write_text("a = 5\n1 / 0\n")
    for name, line in [("app.py", "a.sum(), __name__"), ("bad.py", "a")]:
        steps = typed(line)
        assert shown(legate(ranks, "-i", name), tmp_path, steps) == shown([*candidate.python(), "-i", name], tmp_path, steps)


@pytest.mark.parametrize("ranks", RANKS)
def test_history_startup_and_completion(ranks, tmp_path):
    (tmp_path / "startup.py").write_text("import math\nprint('started')\n")
    steps = [(">>> ", "length_of = len\n"), (">>> ", "length_" + TAB), ("length_of(", "[1, 2])\n"), (">>> ", "math.fact" + TAB), ("math.factorial(", "5)\n"),
             (">>> ", CTRL_D)]
    text, code = talk(legate(ranks), tmp_path, steps, {"PYTHONSTARTUP": str(tmp_path / "startup.py")})
    assert "started\n" in text and "\n2\n" in text and "\n120\n" in text and code == 0
    history = (tmp_path / ".python_history").read_text()
    assert "length_of = len\n" in history and "math.factorial(5)\n" in history


@needs_mpi
def test_completion_of_arrays_keeps_the_ranks_in_step(tmp_path):
    text = "import numpy as np\nclass A:\n    @property\n    def b(self):\n        return np.ones(1_200_000).cumsum() + 1\n\na = A()"
    steps = [*typed(text)[:-1], (">>> ", "a.b.cumpr" + TAB), ("a.b.cumprod(", "\x15a.b.sum()\n"),
             ("720001800000.0)\n>>> ", CTRL_D)]
    shown, code = talk(legate(3), tmp_path, steps)
    assert "720001800000.0" in shown and code == 0


@needs_mpi
def test_a_shard_that_raises_alone_is_named(tmp_path):
    text = "from legate import _core\n1 / (_core.shard() - 1)\n_core.shard()"
    shown, code = talk(legate(3), tmp_path, typed(text))
    assert "legate: shard 1 alone raised ZeroDivisionError:\nTraceback" in shown and shown.count("Traceback") == 1
    assert "\n0\n" in shown and code == 0


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("words", [[], ["-"], ["-i"], ["-i", "-q"]], ids=" ".join)
def test_input_from_a_pipe(words, ranks, tmp_path):
    text = "import numpy as np\na = np.arange(100_000)\nif 1:\n    print(a.sum())\n\nprint(a * 2)\n1 / 0\n"
    ours, oracle = (candidate.run([*start, *words], cwd=tmp_path, stdin=text) for start in (legate(ranks), candidate.python()))
    assert ours == oracle


@needs_mpi
def test_a_prompt_at_rest_costs_little_and_is_no_hang(tmp_path):
    session = Session(legate(3, "--patience", "1"), tmp_path)
    session.wait_for(">>> ")
    time.sleep(3)
    processes = [number for number, _ in session.left(0)]
    before = sum(map(_cpu_ticks, processes))
    time.sleep(5)
    used = (sum(map(_cpu_ticks, processes)) - before) / os.sysconf("SC_CLK_TCK")
    session.press("1 + 1\n")
    assert session.wait_for(">>> ").endswith("2\n")
    session.press(CTRL_D)
    shown, code = session.end()
    assert "waited" not in shown and code == 0
    assert used < 0.5, f"{used} CPU seconds in 5 seconds"


def _cpu_ticks(process):
    with open(f"/proc/{process}/stat") as stat:
        return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))


@needs_mpi
def test_a_killed_rank_ends_the_session_and_the_terminal_is_put_right(tmp_path):
    session = Session(legate(3), tmp_path)
    session.wait_for(">>> ")
    session.press("import os; os.getpid()\n")
    first = int(session.wait_for("\n>>> ").split("\n")[-1])
    os.kill(first, signal.SIGKILL)
    shown, code = session.end()
    assert code == 128 + signal.SIGKILL and "ended by signal 9" in shown and not session.left()


@needs_mpi
def test_a_stopped_session_goes_on(tmp_path):
    session = Session(legate(3), tmp_path)
    session.wait_for(">>> ")
    session.press("import os; os.getpid()\n")
    first = int(session.wait_for("\n>>> ").split("\n")[-1])
    session.press("1 + ")
    session.wait_for("1 + ")
    session.press(CTRL_Z)
    until = time.monotonic() + 10
    while {_state(session.process), _state(first)} != {"T"} and time.monotonic() < until:
        time.sleep(0.05)
    assert (_state(session.process), _state(first)) == ("T", "T")
    os.kill(session.process, signal.SIGCONT)
    session.press("41\n")
    assert session.wait_for("\n>>> ").endswith("42")
    session.press(CTRL_D)
    assert session.end()[1] == 0 and not session.left()


def _state(process):
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


@needs_mpi
def test_a_prompt_out_of_reach_is_said_so(tmp_path):
    """Where rank 0 is on another machine: here, where a stand-in for mpirun starts nothing on this one."""
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for name in ("mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra", "mpirun"):
        stand_in = tmp_path / name
        stand_in.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4, HYDRA'\nexit 0\n")
        stand_in.chmod(0o755)
    seen = candidate.run(legate(3), cwd=tmp_path, env={"PATH": path})
    assert seen.stderr == ("legate: rank 0 runs on another machine, where it cannot read this one's standard input: call legate there, on the "
                           "first node, or name a script\n")
    assert seen.code == 2


@needs_mpi
@pytest.mark.parametrize("family", FAMILIES)
def test_each_family(family, tmp_path):
    steps = typed("import numpy as np\nnp.arange(1_200_000).sum()\nexit(5)")[:3]
    text, code = talk(legate(2, "--mpi", family), tmp_path, steps)
    assert "719999400000" in text and code == 5
