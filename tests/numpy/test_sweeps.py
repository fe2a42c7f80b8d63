"""Stencil sweeps in place: fields written anew from their own neighbours, again and again, in every layout.

Promises: NumPy's bits however many sweeps run in one walk over memory, and that those that can do so do. Does not test plans' text.
"""
import os

import numpy as host
import pytest

from legate import _core
from tests.numpy.oracle import candidate

TINY = os.environ.get("LEGATE_MIN_CPU_CHUNK") == "1"
# Beyond cache where users' sizes count, a few rows where the stage splits small arrays.
ROWS, COLUMNS = (61, 24) if TINY else (2111, 1003)
START = f"""
n, m = {ROWS}, {COLUMNS}
g = (np.arange(n * m) % 97 - 40.5).reshape(n, m) / 7
"""

# How many sweeps of each are joined in the stage "tiny" of one process; the rest says what they do.
PROGRAMS = {
    "five_points": (5, """
for _ in range(6):
    average = g[1:-1, 1:-1] + g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:]
    g[1:-1, 1:-1] = 0.2 * average
"""),
    "views_held_by_the_program": (3, """
center, north, south = g[1:-1, 1:-1], g[:-2, 1:-1], g[2:, 1:-1]
for _ in range(4):
    center[:] = north * 0.5 - south * 0.25
kept = center[3:9].copy()
center -= 1
"""),
    "from_rows_before_only": (4, """
for _ in range(5):
    g[1:] = g[:-1] * 0.75 + g[1:]
"""),
    "from_rows_after_only": (4, """
for _ in range(5):
    g[:-1] = g[1:] * 0.75 + g[:-1]
"""),
    "one_axis": (4, """
v = g.reshape(-1)[:5 * m].copy() if n < 100 else g.reshape(-1)
for _ in range(5):
    v[1:-1] = (v[:-2] + v[2:]) / 3
"""),
    "three_axes": (3, """
q = g[:60].copy().reshape(20, 3, m) if n < 100 else g[:2100].copy().reshape(700, 3, m)
for _ in range(4):
    q[1:-1] = q[:-2] + 0.5 * q[2:] - q[1:-1]
"""),
    "single_precision": (3, """
s = np.concatenate([g, g]).astype('f4')
for _ in range(4):
    s[1:-1, 1:-1] = s[:-2, :-2] * np.float32(0.3) + s[2:, 2:]
"""),
    "complex_numbers": (2, """
z = g + 1j * g[::-1]
for _ in range(3):
    z[1:-1] = z[:-2] * z[2:] / 40
"""),
    "whole_numbers_that_wrap": (2, """
i = (np.arange(n * m) % 120).reshape(n, m).astype('i8') << 56
for _ in range(3):
    i[1:-1] = i[:-2] * i[2:] + i[1:-1]
"""),
    "fortran_order": (2, """
f = np.asfortranarray(g)
for _ in range(3):
    f[1:-1, 1:-1] = f[:-2, 1:-1] + f[1:-1, 2:] * 0.5
"""),
    "backwards": (0, """
b = g[::-1]
for _ in range(3):
    b[1:-1] = (b[:-2] + b[2:]) * 0.5
"""),
    "read_backwards": (0, """
for _ in range(3):
    g[:] = g[::-1] * 0.5 + 1
"""),
    "every_other_row": (0, """
for _ in range(3):
    g[::2] = g[1::2][:1] + g[::2]
    g[1:-1] = g[:-2] - g[2:]
"""),
    "broadcast": (2, """
line, column = np.linspace(0, 1, m), np.linspace(1, 2, n)[:, None]
for _ in range(3):
    g[1:-1] = g[:-2] * line + g[2:] / column[1:-1]
"""),
    "a_row_of_itself_everywhere": (0, """
for _ in range(3):
    g[1:] = g[:-1] + g[0]
"""),
    "reach_beyond_a_tile": (3, """
for _ in range(4):
    g[30:] = g[:-30] * 0.5 + g[30:]
"""),
    "both_offsets_far": (2, """
for _ in range(3):
    g[9:-11] = g[:-20] * 0.5 - g[20:] + g[9:-11]
"""),
    "borders_change_between": (None, """
for step in range(4):
    g[1:-1, 1:-1] = (g[:-2, 1:-1] + g[2:, 1:-1]) * 0.5
    g[0] = step
    g[:, -1] = g[:, -2]
    g[-1] = g[-2]
"""),
    "different_parts": (3, """
g[1:-1, 1:-1] = (g[:-2, 1:-1] + g[2:, 1:-1]) * 0.5
g[2:-2, 1:] = (g[:-4, :-1] + g[4:, 1:]) * 0.5
g[:-1] = g[1:] * 0.75
g[3:] = g[:-3] - g[3:]
"""),
    "another_source_that_changes": (None, """
h = g * 2
for _ in range(4):
    g[1:-1] = g[:-2] + g[2:] * h[1:-1]
    h[2:] = h[:-2] * 0.5
"""),
    "sums_between": (None, """
sums = []
for _ in range(4):
    g[1:-1] = (g[:-2] + g[2:]) * 0.5
    sums.append(g.sum())
sums = np.array([float(value) for value in sums])
"""),
    "the_last_sum": (3, """
for _ in range(4):
    g[1:-1] = (g[:-2] + g[2:]) * 0.5
total, most = g.sum(), g[1:].max()
"""),
    "kept_values": (None, """
kept = []
for step in range(5):
    average = g[:-2] + g[2:]
    g[1:-1] = average * 0.5
    if step == 2:
        kept.append(average)
average = average + kept[0]
"""),
    "masked": (None, """
mask = g[1:-1] > 0
for _ in range(3):
    g[1:-1] = np.where(mask, g[:-2] + g[2:], g[1:-1])
"""),
    "looked_at_between": (None, """
seen = []
for _ in range(3):
    g[1:-1] = (g[:-2] + g[2:]) * 0.5
    g[1:-1] = (g[:-2] + g[2:]) * 0.25
    seen.append(float(g[5, 5]))
"""),
}


def outcome(module, text):
    """The arrays and numbers that a program leaves."""
    values = {"np": module, "__name__": "__main__"}
    with host.errstate(all="ignore"):
        exec(compile(START + text, "sweeps", "exec"), values)
    names = sorted(name for name in values if name not in ("np", "n", "m", "_", "step", "__name__", "__builtins__"))
    return {name: host.asarray(values[name]) for name in names}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sweeps(name):
    joined, text = PROGRAMS[name]
    expected, np = outcome(host, text), candidate()
    before = _core.counters()["joined_sweeps"]
    found = outcome(np, text)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype and found[key].shape == value.shape, key
        assert found[key].tobytes() == value.tobytes(), key
    if joined is not None and "LEGATE_WINDOW_SIZE" not in os.environ and os.environ.get("LEGATE_FUSION") != "0":
        # Several shards join them where the field lives apart before the first one.
        assert _core.counters()["joined_sweeps"] - before in {joined, joined if _core.shards() == 1 else 0}


def test_events_of_joined_sweeps_are_told_once(recwarn):
    np = candidate()
    g = np.full((ROWS, COLUMNS), 1e200)
    for _ in range(3):
        g[1:-1] = g[:-2] * g[2:]
    assert float(g[5, 5]) == host.inf
    assert {str(warning.message) for warning in recwarn} == {"overflow encountered in multiply"}


def test_an_exported_pointer_sees_the_sweeps():
    np = candidate()
    g = np.ones((ROWS, COLUMNS)) * host.arange(COLUMNS)
    alias, expected = host.asarray(g), host.ones((ROWS, COLUMNS)) * host.arange(COLUMNS)
    for array in (g, expected):
        for _ in range(3):
            array[1:-1] = (array[:-2] + array[2:]) * 0.3
    assert alias.tobytes() == expected.tobytes()
