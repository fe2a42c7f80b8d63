"""Grows a random program statement by statement, watching on the host NumPy what each statement does.

Promises: every program runs to its end on the host in well under a second, reads nothing uninitialised and asks for no cast that
C leaves undefined. Does not run the candidate.
"""
import warnings
from dataclasses import dataclass

import numpy as np

from tests.random_programs import creation, guests, operations, views, writes
from tests.random_programs.state import State

# (weight, maker) per kind of statement
MAKERS = [
    (10, creation.make), (4, creation.like), (12, views.index), (9, views.describe), (16, operations.elementwise), (5, operations.cast),
    (9, operations.reduce), (4, operations.arg_reduce), (4, operations.scan), (4, operations.order), (6, operations.join),
    (6, operations.gather), (3, operations.product), (5, operations.look), (9, writes.assign), (5, writes.selected), (8, writes.in_place), (8, writes.overlap),
    (6, writes.with_out), (3, writes.rearrange), (4, writes.repeat), (9, writes.step), (8, writes.halves), (7, operations.compound),
    (8, guests.library), (4, guests.host_write), (4, guests.draw),
]
# The kinds that need no value at once: programs of these alone leave long windows to be joined.
DEFERRED = [
    (8, creation.make), (2, creation.like), (10, views.index), (6, views.describe), (10, operations.elementwise), (4, operations.cast),
    (7, operations.reduce), (2, operations.scan), (12, operations.compound), (8, writes.assign), (6, writes.selected), (8, writes.in_place), (8, writes.overlap),
    (5, writes.with_out), (4, writes.rearrange), (5, writes.repeat), (14, writes.step), (14, writes.halves), (5, guests.draw),
]
# Solvers: a few arrays of one shape, written in parts, read, and dropped.
SOLVER = [
    (4, creation.make), (3, operations.compound), (3, operations.elementwise), (2, operations.reduce), (8, writes.halves), (6, writes.overlap),
    (5, writes.in_place), (10, writes.step), (3, writes.repeat), (2, writes.assign), (8, writes.selected), (2, writes.drop), (3, views.index),
]
UNDEFINED_CAST = "invalid value encountered in cast"
# What NumPy words by an address or by the internals of a call that the candidate is free to make differently.
SKIPPED_ERRORS = ("SystemError", "RecursionError", "NameError", "MemoryError")


@dataclass(frozen=True)
class Scale:
    """How large the arrays of a program are: a typical axis, the most elements."""

    axis: int
    elements: int


SCALES = {"small": Scale(7, 400), "middle": Scale(40, 20_000), "large": Scale(700, 400_000)}


def run_one(text: str, values: dict):
    """Executes a statement; its exception, or None."""
    try:
        exec(compile(text, "program", "exec"), values)
    except Exception as error:  # noqa: BLE001 - any exception is a result to compare
        return error
    return None


def grow(seed: int, scale: Scale, length: int) -> list[str]:
    """A random program of about `length` statements."""
    state = State(seed, scale.axis, scale.elements)
    values = {"np": np, "h": np}
    table = [MAKERS, SOLVER, DEFERRED, SOLVER][seed % 4]
    if table is SOLVER:
        state.only_shape = state.shape(most=2)
    makers, weights = [maker for _, maker in table], [weight for weight, _ in table]
    with np.errstate(all="ignore", invalid="warn"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=UNDEFINED_CAST)
        while len(state.statements) < length:
            maker = creation.make if not state.arrays() else state.random.choices(makers, weights)[0]
            text = maker(state)
            if text and accepted(state, text, values):
                state.statements.append(text)
                state.values = {name: value for name, value in values.items() if name.startswith("v")}
    return state.statements


def accepted(state: State, text: str, values: dict) -> bool:
    """Runs the statement on the host; False if it must not be in the program (the host's values are then as before)."""
    before = {name: value for name, value in values.items() if name.startswith("v")}
    written = text.split("=")[0].strip() not in before and text.startswith("v") and " = " in text and ";" not in text and "[" not in text.split(" = ")[0]
    kept = None if written else {name: value.copy() for name, value in before.items() if isinstance(value, np.ndarray)}
    error = run_one(text, values)
    new = [value for name, value in values.items() if name.startswith("v") and name not in before]
    too_large = any(not operations.is_small_enough(value, state.largest * 4) for value in new)
    undefined = isinstance(error, RuntimeWarning)
    unwanted = error is not None and (type(error).__name__ in SKIPPED_ERRORS or not state.chance(0.25))
    if not (too_large or undefined or unwanted):
        return True
    for name in [name for name in values if name.startswith("v") and name not in before]:
        del values[name]
    values.update(before)
    for name, value in (kept or {}).items():
        if before[name].flags.writeable and before[name].shape == value.shape and before[name].size:
            np.copyto(before[name], value, casting="unsafe")
    return False
