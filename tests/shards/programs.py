"""Small programs for several ranks, as data: what each does, and what must be seen of it.

Promises: each says on which rank it misbehaves by `_core.shard()`, which a user's program does not know of.
"""
from dataclasses import dataclass

# Every program begins so; `mine` is this rank's number.
START = """
import os, signal, sys, time
import numpy as np
from legate import _core
mine = _core.shard()
a = np.ones(100_000)
a = a + 1
print("start", float(a[5]), flush=True)
"""
# And ends so: an operation, a moment where all meet, a line of output.
END = """
a = a * 2
_core.collect(b"")
print("end", float(a[5]))
"""


@dataclass(frozen=True)
class Row:
    """A program between START and END, the exit code, and patterns for what stderr holds, in order; {n} is line n of `text`."""

    name: str
    text: str
    code: int
    stderr: tuple[str, ...] = ()
    stdout: str = "start 2.0\n"


# Lines of START before the program's own.
OFFSET = START.count("\n")

ENDS = (
    Row("runs", "", 0, stdout="start 2.0\nend 4.0\n"),
    Row("exits", "sys.exit(7)", 7),
    Row("exits with a text", "sys.exit('no such thing')", 1, (r"no such thing\n",)),
    Row("raises", "raise ValueError('everywhere')", 1, (r"Traceback.*\n", r".*line {1}, in <module>\n(?s:.*)ValueError: everywhere\n",)),
    Row("exits at once", "sys.stdout.flush(); os._exit(4)", 4),
    Row("forks", "if os.fork() == 0:\n    os._exit(0)\nos.wait()", 0, stdout="start 2.0\nend 4.0\n"),
)

LONE = (
    Row("one raises", "if mine == 1:\n    raise ValueError('here only')", 1,
        (r"legate: shard 1 alone raised an exception; shard \d waits for it \(.*\):\n", r"Traceback(?s:.*)ValueError: here only\n")),
    Row("shard 0 raises", "if mine == 0:\n    raise ValueError('here only')", 1,
        (r"Traceback(?s:.*)ValueError: here only\n", r"legate: shard 0 alone raised this; shard \d waits for it \(.*\)\n")),
    Row("one exits", "if mine == 1:\n    sys.exit()", 1, (r"legate: shard 1 has ended alone; shard \d waits for it \(.*\)\n",)),
    Row("one raises at the end", "import atexit\n_core.collect(b'')\nprint('end')\nif mine == 1:\n    raise ValueError('here only')\nsys.exit()", 1,
        (r"legate: shard 1 alone raised an exception; shard 0 has ended without it:\n", r"Traceback(?s:.*)ValueError: here only\n"),
        "start 2.0\nend\n"),
)

DIVERGE = (
    Row("a branch on the rank", "if mine == 1:\n    b = a * 2\nelse:\n    b = a + 2", 1,
        (r"legate: the shards have gone different ways at operation \d+: shard 0 did add.* at .*:{4}, shard 1 did multiply.* at .*:{2}\n",)),
    Row("an operation more", "if mine == 1:\n    b = a - 2", 1,
        (r"legate: the shards have gone different ways at operation \d+: shard 0 did multiply.*, shard 1 did subtract.* at .*:{2}\n",)),
    Row("another shape", "b = np.zeros(100_000 + mine)", 1,
        (r"legate: the shards have gone different ways at operation \d+: shard 0 did fill \[100000\] at .*:{1}, "
         r"shard ([12]) did fill \[10000\1\] at .*:{1}\n",)),
    Row("a branch on an address", "if mine == id(object()) % 1 + 1:\n    b = a - 2", 1,
        (r"legate: the shards have gone different ways at operation \d+: .*subtract.* at .*:{2}\n",)),
    Row("one meets more often", "if mine == 1:\n    _core.collect(b'')", 1,
        (r"legate: the shards have gone different ways at operation \d+: shard 0 did multiply.*, shard 1 did collect at .*:{2}\n",)),
)
