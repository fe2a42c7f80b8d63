"""Statements that make views: every kind of basic index, and the functions and attributes that re-describe storage.

Promises: indices are mostly in range, now and then just outside. Does not write.
"""
import numpy as np

from tests.random_programs.state import SLICE_STEPS, State


def one_slice(state: State, length: int) -> str:
    """The text of a slice of an axis of that length; bounds may lie outside."""
    step = state.random.choice(SLICE_STEPS)
    bounds = ["" if state.chance(0.4) else str(state.random.randint(-length - 1, length + 1)) for _ in range(2)]
    return f"{bounds[0]}:{bounds[1]}" + ("" if step == 1 else f":{step}")


def basic_index(state: State, array) -> str:
    """The text of a basic index."""
    parts, kept = [], array.ndim if state.chance(0.6) else state.random.randint(0, array.ndim)
    for axis in range(kept):
        length = array.shape[axis]
        if length and state.chance(0.25):
            reach = length + (1 if state.chance(0.03) else 0)
            parts.append(str(state.random.randint(-reach, reach - 1)))
        else:
            parts.append(one_slice(state, length))
    if kept < array.ndim or state.chance(0.1):
        if state.chance(0.5):
            parts.insert(len(parts) if state.chance(0.7) else state.random.randint(0, len(parts)), "...")
    if state.chance(0.12):
        parts.insert(state.random.randint(0, len(parts)), "None")
    return ", ".join(parts) or "..."


def index(state: State) -> str | None:
    """v = w[basic index]."""
    name = state.array()
    return name and f"{state.fresh()} = {name}[{basic_index(state, state.values[name])}]"


def split_size(state: State, size: int) -> tuple:
    """A random shape of that size."""
    shape = []
    while size > 1 and len(shape) < 3 and state.chance(0.75):
        divisors = [d for d in range(1, min(size, 60) + 1) if size % d == 0]
        shape.append(state.random.choice(divisors))
        size //= shape[-1]
    shape.append(size)
    state.random.shuffle(shape)
    return tuple(shape)


def describe(state: State) -> str | None:
    """v = another description of w's storage."""
    name = state.array()
    if name is None:
        return None
    array = state.values[name]
    axes = list(range(array.ndim))
    state.random.shuffle(axes)
    shape = split_size(state, array.size)
    axis = state.one_axis(array)
    forms = [
        f"{name}.T", f"{name}.transpose({', '.join(map(str, axes))})", f"np.swapaxes({name}, {axis}, 0)",
        f"{name}.reshape({shape})", f"{name}.reshape({shape}, order={state.pick('C', 'F', 'A')!r})", f"{name}.reshape(-1)",
        f"{name}.ravel({state.pick('C', 'F', 'K', 'A')!r})", f"np.ravel({name})", f"{name}.flatten({state.pick('C', 'F', 'K')!r})",
        f"np.flip({name}, {axis})", f"np.flip({name})", f"{name}[::-1]", f"np.moveaxis({name}, {axis}, 0)",
        f"np.expand_dims({name}, 0)", f"np.squeeze({name})", f"{name}.real", f"{name}.imag", f"np.atleast_2d({name})",
        f"{name}.view()", f"{name}.diagonal({state.random.randint(-1, 1)})", f"np.rot90({name}, {state.random.randint(1, 3)})",
        f"np.broadcast_to({name}, ({state.random.randint(1, 3)}, *{name}.shape))", f"np.matrix_transpose({name})",
        f"np.rollaxis({name}, {axis})", f"np.fliplr({name})", f"np.atleast_3d({name})", f"{name}.squeeze(axis={axis})",
        f"np.lib.stride_tricks.sliding_window_view({name}, {state.pick(1, 2, 3)}, {axis})",
        f"np.array_split({name}, {state.random.randint(1, 4)})[0]", f"np.broadcast_arrays({name}, np.zeros((2, 1)))[0]",
    ]
    same = [code for code in ("i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "f8", "c8")
            if array.dtype.itemsize == np.dtype(code).itemsize and array.dtype.kind in "biufc"]
    other = [code for code in ("u1", "i2", "i4", "i8") if array.dtype.kind in "iufc" and array.dtype.char not in "gG"]
    if array.dtype.kind in "iu" and same:
        forms += [f"{name}.view({state.random.choice(same)!r})"] * 3
    if other:
        forms += [f"{name}.view({state.random.choice(other)!r})"]
    if array.dtype.names:
        forms += [f"{name}['a']", f"{name}['b']", f"{name}[['b']]"] * 4
    return f"{state.fresh()} = {state.random.choice(forms)}"
