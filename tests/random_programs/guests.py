"""Statements as libraries and long-lived generators make them: the host NumPy's own functions on any arrays, draws one after another.

Promises: only functions that NumPy dispatches or that take any array-like. Does not write, except where NumPy's own function does.
"""
from tests.random_programs.operations import BINARY, UNARY, operand, partner
from tests.random_programs.state import State, is_number, is_writeable
from tests.random_programs.views import basic_index


def library(state: State) -> str | None:
    """v = a function of the host NumPy over deferred and host arrays."""
    name = state.array(is_number)
    if name is None:
        return None
    array = state.values[name]
    other = partner(state, array)
    axis = state.one_axis(array)
    forms = [f"h.{state.random.choice(UNARY)}({name})", f"h.{state.random.choice(BINARY)}({name}, {other})", f"h.sum({name}, axis={axis})",
             f"h.concatenate([{name}, {name}], axis={axis})", f"h.asarray({name}) + {other}", f"h.array({name}) * 2", f"h.mean({name})",
             f"h.where({name} > 1, {name}, {other})", f"h.transpose({name})", f"h.asarray({name})[{basic_index(state, array)}]",
             f"h.multiply(h.ones({array.shape}), {name})", f"h.arange(9)[{name}.astype('i8') % 9]", f"h.clip({name}, 0, 2)", f"h.sort({name}, axis={axis})",
             f"h.zeros({array.shape}) + {name}", f"h.ones({array.shape}) * {name} - h.ones({array.shape})", f"h.full_like({name}, 2)", f"h.stack([{name}, {name}])",
             f"h.add({name}, 1, out=h.zeros({array.shape}, {name}.dtype), casting='unsafe')", f"h.cumsum({name}, axis={axis})", f"h.ravel({name})",
             f"h.dot(h.sign({name}.real).ravel()[:5] + 0, h.ones(min(5, {name}.size))) + 0", f"h.argmax({name}.real)", f"h.isin({name}, [1, 2])",
             f"h.copy({name})", f"h.count_nonzero({name})", f"h.broadcast_to({name}, (2, *{name}.shape))", f"h.nonzero({name})[0]", f"h.diff({name}, axis={axis})"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def host_write(state: State) -> str | None:
    """A host alias or a host array is written from deferred values, or the other way round."""
    name = state.array(lambda array: is_number(array) and is_writeable(array) and array.ndim > 0)
    if name is None:
        return None
    array = state.values[name]
    forms = [f"h.asarray({name})[{basic_index(state, array)}] = {operand(state)}", f"h.add({name}, 1, out={name}, casting='unsafe')",
             f"h.copyto({name}, {operand(state)}, casting='unsafe')", f"h.negative({name}, out={name})", f"h.asarray({name}).fill(2)",
             f"h.put({name}, [0], 7)", f"h.maximum({name}, {operand(state)}, {name})", f"h.asarray({name})[...] += 1", f"memoryview({name}).release()"]
    return state.random.choice(forms)


def draw(state: State) -> str | None:
    """v = a draw from a generator that lives on: its state must move as NumPy's does."""
    shape = state.shape()
    if "v0" not in state.values:
        kind = state.pick("np.random.default_rng", "np.random.default_rng", "np.random.RandomState")
        bits = state.pick("np.random.PCG64", "np.random.MT19937", "np.random.Philox", "np.random.SFC64", "np.random.PCG64DXSM")
        seed = state.random.randint(0, 999)
        return f"v0 = {kind}({seed})" if state.chance(0.7) else f"v0 = np.random.Generator({bits}({seed}))"
    if hasattr(state.values["v0"], "integers"):
        forms = [f"v0.random({shape})", f"v0.random({shape}, dtype='f4')", f"v0.standard_normal({shape})", f"v0.normal(1, 2, {shape})", "v0.random()",
                 f"v0.integers(0, {state.pick(2, 10, 1000, 2**33, 2**63 - 1)}, {shape})", f"v0.integers(-5, 5, {shape}, dtype={state.pick('i1', 'i2', 'i4')!r})",
                 f"v0.uniform(-1, 1, {shape})", f"v0.exponential(2.0, {shape})", "v0.integers(9)", "v0.standard_normal()", f"v0.permutation({shape[0]})",
                 f"v0.choice(7, {shape})", f"v0.standard_exponential({shape}, dtype='f4')", f"v0.poisson(3.0, {shape})", f"v0.gamma(2.0, 1.0, {shape})",
                 f"v0.standard_normal({shape}, dtype='f4')", f"v0.integers(0, 5, {shape}, endpoint=True)", f"v0.binomial(9, 0.3, {shape})",
                 f"v0.bytes({shape[0]})", f"v0.integers(0, 2, {shape}, dtype=bool)", f"v0.lognormal(size={shape})", f"v0.permuted(np.arange({shape[0]}))",
                 f"v0.beta(1.0, 2.0, {shape})", f"v0.triangular(0, 1, 2, {shape})", f"v0.random({shape}) + v0.random({shape})"]
    else:
        forms = [f"v0.rand(*{shape})", f"v0.randn(*{shape})", f"v0.randint(0, {state.pick(2, 10, 1000, 2**40)}, {shape})", f"v0.normal(1, 2, {shape})",
                 f"v0.uniform(-1, 1, {shape})", "v0.rand()", "v0.randn()", f"v0.random_sample({shape})", f"v0.permutation({shape[0]})", f"v0.exponential(2.0, {shape})",
                 f"v0.randint(-9, 9, {shape}, dtype='i2')", f"v0.choice(9, {shape})", f"v0.standard_normal({shape})", f"v0.poisson(2.0, {shape})", "v0.get_state()[2]"]
    return f"{state.fresh()} = {state.random.choice(forms)}"
