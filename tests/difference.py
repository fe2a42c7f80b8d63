"""Says how two results differ: shape, dtype, memory order, kind of object, and every bit (NaNs count as equal to each other).

Promises: a difference is named in one line. Does not know how the results came about.
"""
import warnings

import numpy as np


def difference(oracle, ours, deep: bool = True) -> str | None:
    """The first difference, or None. Without `deep`, only what can be known without waiting for values."""
    if isinstance(oracle, (tuple, list)):
        if type(oracle).__name__ != type(ours).__name__ or len(oracle) != len(ours):
            return f"{type(ours).__name__} of {len(ours) if hasattr(ours, '__len__') else '?'}, not {type(oracle).__name__} of {len(oracle)}"
        return next((f"item {i}: {d}" for i, (a, b) in enumerate(zip(oracle, ours)) if (d := difference(a, b, deep))), None)
    if isinstance(oracle, np.ndarray):
        return array_difference(oracle, ours, deep)
    if isinstance(oracle, np.generic):
        return scalar_difference(oracle, ours, deep)
    if not deep:
        return None
    if is_generator(oracle):
        return state_difference(oracle, ours)
    if type(oracle) is not type(ours) and not isinstance(oracle, bool):
        return f"{type(ours).__name__} {ours!r}, not {type(oracle).__name__} {oracle!r}"
    same = oracle == ours or (oracle != oracle and ours != ours)
    return None if same else f"{ours!r}, not {oracle!r}"


def array_difference(oracle, ours, deep):
    """For arrays: shape, dtype, steps of the axes that have any, flags, then values."""
    for name in ("shape", "dtype"):
        if not hasattr(ours, name):
            return f"{type(ours).__name__}, not an array"
        if getattr(ours, name) != getattr(oracle, name):
            return f"{name} {getattr(ours, name)}, not {getattr(oracle, name)}"
    if np.isscalar(ours) or isinstance(ours, np.generic):
        return f"a scalar {type(ours).__name__}, not a 0-d array"
    steps = [(a, b) for a, b, length in zip(oracle.strides, ours.strides, oracle.shape) if length > 1 and oracle.size]
    if any(a != b for a, b in steps):
        return f"strides {ours.strides}, not {oracle.strides}"
    for name in ("c_contiguous", "f_contiguous", "writeable"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a broadcast array's flag warns when it is looked at
            mine, theirs = getattr(ours.flags, name), getattr(oracle.flags, name)
        if mine != theirs:
            return f"flags.{name} {mine}, not {theirs}"
    return values_difference(oracle, np.asarray(ours)) if deep else None


def scalar_difference(oracle, ours, deep):
    """For NumPy scalars: type and value."""
    dtype = getattr(ours, "dtype", None)
    if dtype != oracle.dtype:
        return f"{type(ours).__name__} of {dtype}, not {type(oracle).__name__}"
    if getattr(ours, "shape", None) != ():
        return f"shape {getattr(ours, 'shape', None)}, not a scalar"
    if not isinstance(ours, type(oracle)):
        return f"{type(ours).__name__} which is no {type(oracle).__name__}"
    return values_difference(np.asarray(oracle), np.asarray(ours)) if deep else None


def values_difference(oracle, ours):
    """The first element whose bits differ."""
    if not isinstance(ours, np.ndarray) or ours.dtype != oracle.dtype or ours.shape != oracle.shape:
        return f"converts to {getattr(ours, 'dtype', None)} {getattr(ours, 'shape', None)}, not {oracle.dtype} {oracle.shape}"
    if oracle.dtype.names:
        return next((f"field {name}: {d}" for name in oracle.dtype.names if (d := values_difference(oracle[name], ours[name]))), None)
    if oracle.dtype.kind == "c":
        part = np.dtype(f"f{oracle.dtype.itemsize // 2}") if oracle.dtype.char != "G" else np.dtype("g")
        oracle, ours = (np.ascontiguousarray(a).astype(a.dtype.newbyteorder("=")).reshape(-1).view(part) for a in (oracle, ours))
    same = oracle == ours
    if oracle.dtype.kind == "f":
        same = (same & (np.signbit(oracle) == np.signbit(ours))) | ((oracle != oracle) & (ours != ours))
    elif oracle.dtype.kind in "mM":
        same = same | (np.isnat(oracle) & np.isnat(ours))
    if np.all(same):
        return None
    where = np.argwhere(~np.atleast_1d(same))
    at = tuple(map(int, where[0]))
    return f"{len(where)} of {oracle.size} elements differ, first at {at}: {np.atleast_1d(ours)[at]!r}, not {np.atleast_1d(oracle)[at]!r}"


def is_generator(value) -> bool:
    """Whether it is one of NumPy's random generators."""
    return isinstance(value, (np.random.Generator, np.random.RandomState))


def state_difference(oracle, ours):
    """Generators differ by how far they have moved."""
    states = [repr(one.get_state(legacy=False) if hasattr(one, "get_state") else one.bit_generator.state) for one in (oracle, ours)]
    return None if states[0] == states[1] else f"another state: {states[1][:300]}, not {states[0][:300]}"
