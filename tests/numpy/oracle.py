"""Evaluates one text with the host NumPy and with legate.numpy and compares everything that can be seen.

Promises: value bits, shape, dtype, memory order, exceptions and, if asked, warnings. The operands are large enough to be deferred in the
stage at hand, with small, empty, 0-d and strided ones beside them. Expected numbers are never typed: NumPy computes them.
"""
import functools
import os
import re
import warnings

import numpy as host

from tests.difference import difference

# The operands, by the letters that texts use. {r} and {c} are the rows and columns of the stage.
OPERANDS = """
a = (np.arange({r} * {c}) % 23 - 11.5).reshape({r}, {c}) / 3
b = np.linspace(-2, 5, {c}).astype('f4')
i = np.arange({r} * {c}, dtype='i8').reshape({r}, {c}) * 7 % 31 - 9
j = (np.arange({r} * {c}) % 120).astype('i1').reshape({r}, {c})
u = (np.arange({r} * {c}) % 251).astype('u1').reshape({r}, {c})
k = np.arange({r}) * 5 % 7 - 3
c = a + 1j * i
h = (a * 2).astype('f2')
m = i % 3 == 0
f = np.asfortranarray(a * 1.5)
s = a[::-2, 1::3]
n = np.where(i % 5 == 0, np.nan, a)
x = np.where(i % 4 == 0, -0.0, np.where(i % 4 == 1, np.inf, a))
t = (i + 40).astype('m8[s]')
d = np.arange({r} * {c}).astype('M8[D]').reshape({r}, {c})
w = np.array(host.random.default_rng(5).normal(size=({r}, {c})))
q = np.array(host.random.default_rng(6).integers(0, 9, size=(3, {r}, 4)))
e = np.zeros((0, {c}))
z = np.array(3.5)
p = np.arange(12.0).reshape(3, 4)
l = np.linspace(0, 1, {c})
"""


def sizes() -> dict[str, int]:
    """Rows and columns: large enough to be deferred as users run, tiny where the stage splits small arrays."""
    return {"r": 23, "c": 14} if os.environ.get("LEGATE_MIN_CPU_CHUNK") == "1" else {"r": 310, "c": 154}


@functools.cache
def candidate():
    """The namespace under test."""
    import legate.numpy
    return legate.numpy


def world(module, setup: str) -> dict:
    """Fresh operands, and what the setup makes of them. The oracle's code is a library's: there the host NumPy is left alone."""
    whose = {"__name__": "oracle", "__file__": "/site-packages/oracle.py"} if module is host else {"__name__": "__main__"}
    values = {"np": module, "host": host, **whose, **sizes_as_names()}
    with host.errstate(all="ignore"):
        exec(compile(OPERANDS.format(**sizes()) + setup, "operands", "exec"), values)
    return values


def sizes_as_names() -> dict[str, int]:
    """The sizes for use in texts."""
    return {"ROWS": sizes()["r"], "COLUMNS": sizes()["c"]}


def outcome(module, text: str, setup: str):
    """(value of the expression, or of `result` after the statements; exception text; every operand as it then is; warnings)."""
    values = world(module, setup)
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            try:
                values["result"] = eval(compile(text, "text", "eval"), values)
            except SyntaxError:
                exec(compile(text, "text", "exec"), values)
        except Exception as raised:  # noqa: BLE001 - any exception is a result to compare
            error = f"{type(raised).__name__}: {raised}"
    return values, error, sorted((item.category.__name__, str(item.message), item.lineno if item.filename == "text" else 0) for item in caught)


def check(text: str, setup: str = "", warned: bool = False) -> None:
    """Asserts that both worlds agree about the text: its result or exception, and its operands afterwards."""
    oracle, oracle_error, oracle_warnings = outcome(host, text, setup)
    ours, our_error, our_warnings = outcome(candidate(), text, setup)
    assert our_error == oracle_error, f"{text}: raised {our_error}, not {oracle_error}"
    named = {"result", "s", *re.findall(r"\b[a-z]\b", text + setup)}
    for name in sorted(oracle, key=lambda name: name != "result"):
        if name in named:
            found = difference(oracle[name], ours.get(name))
            assert found is None, f"{text}: {name}: {found}"
    if warned:
        assert our_warnings == oracle_warnings, f"{text}: warned {our_warnings}, not {oracle_warnings}"


def rows(table: str) -> list[str]:
    """The texts of a table: one a line; a backslash and n stand for a new line within a text."""
    return [line.replace("\\n", "\n") for line in table.strip().splitlines() if line]
