"""Statements that compute: ufuncs and their methods, reductions, scans, sorting, joining, selecting, products, text.

Promises: a result never depends on an order that NumPy leaves open (ties of unstable sorts, floating sums inside BLAS).
Does not write into existing arrays.
"""
import numpy as np

from tests.random_programs.creation import scalar
from tests.random_programs.state import State, is_number, is_real
from tests.random_programs.views import basic_index

UNARY = ["negative", "absolute", "sign", "square", "sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "rint", "trunc",
         "isnan", "isinf", "isfinite", "logical_not", "invert", "conjugate", "reciprocal", "expm1", "log1p", "log2", "log10", "exp2",
         "arctan", "cbrt", "signbit", "spacing", "deg2rad", "positive", "fabs", "bitwise_count", "arcsinh", "tan", "sinh", "cosh",
         "arcsin", "arccos"]
BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum", "fmax", "fmin", "less",
          "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and",
          "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "arctan2", "hypot", "copysign", "nextafter", "logaddexp", "fmod",
          "power", "float_power", "heaviside", "gcd", "lcm", "ldexp"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "**"]
TWO_RESULTS = ["divmod", "modf", "frexp"]
REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "nansum", "nanmax", "nanmin", "nanmean", "nanprod",
              "count_nonzero", "ptp", "median", "nanvar", "average"]
REDUCIBLE = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "bitwise_or", "bitwise_and",
             "bitwise_xor", "fmax", "fmin", "subtract", "hypot", "logaddexp"]


def operand(state: State, accept=is_number) -> str:
    """The text of an operand: mostly an array, or a part of one, or a scalar."""
    name = state.array(accept)
    if name is None or state.chance(0.25):
        return scalar(state)
    return f"{name}[{basic_index(state, state.values[name])}]" if state.chance(0.2) else name


def total(state: State) -> str:
    """The text of a reduction to one element, or of arithmetic with one: nobody has looked at it when it is used."""
    name = state.array(is_number)
    if name is None:
        return scalar(state)
    forms = [f"{name}.sum()", f"({name} + 0).sum()", f"({name} * 2).sum() / 3", f"-{name}.sum()", f"{name}.sum() * {scalar(state)}",
             f"({scalar(state)} - {name}.sum())", f"{name}.sum() / ({name} > 0).sum()", f"abs({name}.sum())", f"{name}.mean()",
             f"np.sqrt({name}.sum())", f"{name}.prod()", f"({name} > 1).sum()", f"{name}.max()", f"{name}.sum() + {name}.sum()"]
    return state.random.choice(forms)


def partner(state: State, array) -> str:
    """The text of an operand that broadcasts with the array, mostly."""
    if state.chance(0.1):
        return total(state)
    if state.chance(0.25):
        return scalar(state)
    shape = array.shape

    def fits(other):
        return is_number(other) and other.ndim <= array.ndim and all(
            a == b or a == 1 for a, b in zip(other.shape[::-1], shape[::-1]))

    name = state.array(fits)
    return name if name and not state.chance(0.03) else operand(state)


def nested(state: State, array, depth: int = 2) -> str:
    """The text of an expression of temporaries that broadcasts with the array, mostly."""
    if depth == 0 or state.chance(0.25):
        shape = tuple(array.shape) if state.chance(0.6) else tuple(array.shape[1:])
        size = int(np.prod(shape))
        leaf = [partner(state, array), f"np.arange({size}.0).reshape({shape})", f"np.full({shape}, {state.pick(0, 1, 2.5)})", f"np.ones({shape})",
                f"np.arange({-(size // 2)}, {size - size // 2}).reshape({shape})"]
        return state.random.choice(leaf)
    one, two = nested(state, array, depth - 1), nested(state, array, depth - 1)
    forms = [f"({one} + {two})", f"({one} * {two})", f"({one} - {two})", f"np.maximum({one}, {two})", f"abs({one})", f"({one} > {two})",
             f"np.where({one} > 1, {two}, {one})", f"({one} + 0).sum(axis=-1, keepdims=True)", f"({one} + 0).astype('f4')", f"(0.5 * {one})",
             f"np.minimum({one}, {two})", f"np.sqrt(abs({one}))", f"({one} + 0.0).max()", f"np.cumsum({one} + 0, axis=-1)"]
    return state.random.choice(forms)


def compound(state: State) -> str | None:
    """v = an expression of temporaries."""
    name = state.array(is_number)
    return name and f"{state.fresh()} = {nested(state, state.values[name], 3)}"


def elementwise(state: State) -> str | None:
    """v = a ufunc or operator over arrays and scalars."""
    name = state.array(is_number)
    if name is None:
        return None
    array, target = state.values[name], state.fresh()
    form = state.random.random()
    other = partner(state, array)
    if form < 0.35:
        sides = (name, other) if state.chance(0.7) else (other, name)
        return f"{target} = {sides[0]} {state.random.choice(OPERATORS)} {sides[1]}"
    if form < 0.5:
        return f"{target} = np.{state.random.choice(UNARY)}({name})"
    if form < 0.7:
        return f"{target} = np.{state.random.choice(BINARY)}({name}, {other})"
    if form < 0.76:
        return f"{target} = np.{state.random.choice(TWO_RESULTS)}({name}{', ' + other if False else ''})[1]" if state.chance(0.5) \
            else f"{target} = np.divmod({name}, {other})[{state.pick(0, 1)}]"
    if form < 0.8:
        return f"{target} = np.{state.random.choice(BINARY)}({name}, {other}, dtype={state.dtype()!r})"
    if form < 0.83:
        return f"{target} = np.{state.random.choice(BINARY)}.outer({name}[..., :3], {operand(state)})"
    chains = [f"0.5 * ({name} + {other}) - {name}", f"({name} - {other}) ** 2", f"-{name} * 2 + 1", f"abs({name}) + {other}",
              f"np.where({name} > 1, {name}, {other})", f"np.clip({name}, -1, 3)", f"np.round({name}, 1)", f"~({name} > 0)",
              f"np.nan_to_num({name})", f"np.isclose({name}, {other})", f"({name} > 0) & ({name} < 4)", f"{name}.clip(max=2)",
              f"np.sqrt(abs({name})) * {other}", f"np.maximum({name}, 0) / (1 + np.exp(-abs({name})))", f"np.real_if_close({name})",
              f"np.sinc({name})", f"np.angle({name})", f"np.interp({name}, [0, 1, 2], [3, 5, 1])", f"{name}.conj()", f"{name}.round()",
              f"np.unwrap({name})", f"np.heaviside({name}, 0.5)", f"np.i0({name})", f"np.fix({name})"]
    return f"{target} = {state.random.choice(chains)}"


def cast(state: State) -> str | None:
    """v = the array as another type, in some order."""
    name = state.array()
    if name is None:
        return None
    more = f", order={state.pick('C', 'F', 'K', 'A')!r}" if state.chance(0.3) else ""
    more += f", casting={state.pick('safe', 'same_kind', 'unsafe')!r}" if state.chance(0.15) else ""
    more += ", copy=False" if state.chance(0.15) else ""
    return f"{state.fresh()} = {name}.astype({state.dtype()!r}{more})"


def mask_of(state: State, array, name: str) -> str:
    """The text of a mask with the array's shape."""
    own = state.array(lambda other: other.dtype == bool and other.shape == array.shape)
    return own if own and state.chance(0.4) else f"({name} {state.pick('>', '<', '!=', '>=')} {state.pick(0, 1, 2, 3)})"


def reduce(state: State) -> str | None:
    """v = a reduction over some axes."""
    name = state.array(is_number)
    if name is None:
        return None
    array, target = state.values[name], state.fresh()
    axis = state.axis(array)
    more = f", axis={axis}" + (", keepdims=True" if state.chance(0.25) else "")
    if state.chance(0.3):
        if state.chance(0.3):
            more += f", initial={state.pick(0, 1, 5)}"
        if state.chance(0.2):
            more += f", where={mask_of(state, array, name)}, initial=1"[: None if "initial" not in more else -len(", initial=1")]
        if state.chance(0.2):
            more += f", dtype={state.dtype()!r}"
        return f"{target} = np.{state.random.choice(REDUCIBLE)}.reduce({name}{more})"
    which = state.random.choice(REDUCTIONS)
    if which in ("median", "average", "ptp", "count_nonzero") or which.startswith("nan"):
        return f"{target} = np.{which}({name}{more})"
    if which in ("sum", "mean", "prod", "var", "std") and state.chance(0.2):
        more += f", dtype={state.pick('f4', 'f8', 'c16', 'i8', 'f2')!r}"
    if which in ("sum", "prod", "max", "min") and state.chance(0.2):
        more += f", initial={state.pick(0, 1, 5)}"
    if which in ("var", "std") and state.chance(0.3):
        more += ", ddof=1"
    if which in ("sum", "any", "all", "mean", "std") and state.chance(0.12):
        more += f", where={mask_of(state, array, name)}"
    return f"{target} = {name}.{which}({more[2:]})" if state.chance(0.5) else f"{target} = np.{which}({name}{more})"


def arg_reduce(state: State) -> str | None:
    """v = positions of extremes, or places where something holds."""
    name = state.array(is_real)
    if name is None:
        return None
    array = state.values[name]
    axis = state.axis(array, allow_none=False)
    mask = mask_of(state, array, name)
    forms = [f"np.argmin({name}, axis={axis})", f"{name}.argmax()", f"np.argmax({name}, {axis}, keepdims=True)",
             f"np.nonzero({mask})[0]", f"np.flatnonzero({name})", f"np.argwhere({mask})", f"np.where({mask})[-1]",
             f"np.nanargmax({name})", f"int({mask}.sum())", f"np.count_nonzero({mask})", f"{name}[{mask}]",
             f"np.extract({mask}, {name})", f"np.unravel_index({name}.argmax(), {name}.shape)"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def scan(state: State) -> str | None:
    """v = a running total or a difference along an axis."""
    name = state.array(is_number)
    if name is None:
        return None
    axis = state.axis(state.values[name], allow_none=False)
    forms = [f"np.cumsum({name}, axis={axis})", f"{name}.cumprod({axis})", f"np.cumsum({name})", f"np.diff({name}, axis={axis})",
             f"np.{state.random.choice(REDUCIBLE)}.accumulate({name}, axis={axis})", f"np.nancumsum({name}, axis={axis})",
             f"np.cumsum({name}, axis={axis}, dtype={state.pick('f4', 'f8', 'i8', 'c16')!r})", f"np.ediff1d({name})",
             f"np.{state.random.choice(REDUCIBLE)}.reduceat({name}, [0, 1], axis={axis})", f"np.gradient({name}, axis={axis})",
             f"np.cumulative_sum({name}, axis={axis}, include_initial=True)", f"np.trapezoid({name}, axis={axis})"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def order(state: State) -> str | None:
    """v = sorted values, stable orders, sets, counts."""
    name = state.array(is_number)
    if name is None:
        return None
    axis = state.axis(state.values[name], allow_none=False)
    forms = [f"np.sort({name}, axis={axis})", f"np.argsort({name}, axis={axis}, kind='stable')", f"np.unique({name})",
             f"np.searchsorted(np.sort({name}, axis=None), {operand(state, is_real)})", f"np.partition({name}, 0, axis={axis})[:1]",
             f"np.bincount(abs({name}.ravel().astype('i2') % 50))", f"np.histogram({name}, bins=5, range=(-5, 5))[0]",
             f"np.digitize({name}, [-1, 0, 2.5])", f"np.unique({name}, return_inverse=True, return_counts=True)",
             f"np.isin({name}, [0, 1, 2])", f"np.intersect1d({name}, {name}[:2])", f"np.percentile({name}, 30, axis={axis})",
             f"np.lexsort(({name}.ravel(), {name}.ravel() > 1))", f"np.union1d({name}, [1, 2])", f"np.sort_complex({name})",
             f"np.setdiff1d({name}, [0, 1])", f"np.quantile({name}, [0.2, 0.5])",
             f"np.bincount(abs({name}.ravel().astype('i2') % 9), weights=np.sign({name}.ravel().real))"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def join(state: State) -> str | None:
    """v = arrays put together, repeated or padded."""
    name = state.array()
    if name is None:
        return None
    array = state.values[name]
    axis = state.one_axis(array)
    alike = state.array(lambda other: other.ndim == array.ndim) or name
    same = state.array(lambda other: other.shape == array.shape) or name
    forms = [f"np.concatenate([{name}, {alike}], axis={axis})", f"np.concatenate(({name}, {alike}, {name}), axis=None)",
             f"np.stack([{name}, {same}], axis={axis})", f"np.vstack([{name}, {same}])", f"np.hstack(({name}, {alike}))",
             f"np.dstack([{name}, {same}])", f"np.column_stack([{name}, {same}])", f"np.tile({name}, {state.pick(2, (2, 1), 0)})",
             f"np.repeat({name}, {state.random.randint(0, 3)}, axis={axis})", f"np.repeat({name}, 2)",
             f"np.roll({name}, {state.random.randint(-4, 4)}, axis={axis})", f"np.roll({name}, 3)", f"np.append({name}, {same})",
             f"np.pad({name}, 1)", f"np.pad({name}, (1, 2), mode={state.pick('edge', 'reflect', 'wrap', 'symmetric')!r})",
             f"np.insert({name}, 1, 5, axis={axis})", f"np.delete({name}, 0, axis={axis})", f"np.tril({name})", f"np.triu({name}, 1)",
             f"np.block([[{name}, {same}]])", f"np.meshgrid({name}, [1, 2])[0]", f"np.kron({name}, [1, 2])", f"np.resize({name}, (3, 4))",
             f"np.trim_zeros({name})", f"np.concatenate([{name}, {alike}], dtype={state.dtype()!r}, casting='unsafe')",
             f"np.ix_({name}, [0, 1])[0]", f"np.array([{name}, {same}])", f"np.fliplr(np.vander({name}.ravel()[:3]))"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def fancy(state: State, array) -> str:
    """The text of an advanced index."""
    def numbers(axis, count):
        reach = array.shape[axis] + (1 if state.chance(0.02) else 0)
        return [state.random.randint(-reach, reach - 1) if reach else 0 for _ in range(count)]

    count = state.random.randint(0, 6)
    forms = [f"{numbers(0, count)}", f"np.array({numbers(0, count)}, dtype={state.pick('i8', 'i4', 'u1')!r}) % {max(array.shape[0], 1)}",
             f"[{numbers(0, 2)}, {numbers(0, 2)}]"]
    if array.ndim > 1:
        forms += [f"{numbers(0, 3)}, {numbers(1, 3)}", f"..., {numbers(-1, count)}", f"{numbers(0, 2)}, 1:", f":, {numbers(1, 3)}",
                  f"[[{numbers(0, 1)[0]}], [0]], {numbers(1, 2)}", f"{numbers(0, 2)}, None, {numbers(1, 2)}",
                  f"{numbers(0, 1)[0]}, {numbers(1, 3)}"]
    if array.ndim > 2:
        forms += [f"{numbers(0, 2)}, :, {numbers(2, 2)}", f"::2, {numbers(1, 2)}, ::-1"]
    return state.random.choice(forms)


def gather(state: State) -> str | None:
    """v = elements chosen by numbers or masks."""
    name = state.array(lambda array: array.ndim > 0)
    if name is None:
        return None
    array = state.values[name]
    axis = state.one_axis(array)
    length = array.shape[axis]
    forms = [f"{name}[{fancy(state, array)}]"] * 5 + [
        f"np.take({name}, [0, -1, 0], axis={axis})", f"{name}.take([[0, 1]], mode={state.pick('clip', 'wrap', 'raise')!r})",
        f"np.compress([True, False, True][:{length}], {name}, axis={axis})", f"np.choose([0, 1, 0], [{name}.ravel()[:3], [7, 8, 9]])",
        f"np.take_along_axis({name}, np.argsort({name}, axis={axis}, kind='stable'), axis={axis})", f"{name}[{name} != 0]",
        f"{name}[{name}.ravel()[0] > 0]", f"np.select([{name} > 1, {name} < 0], [{name}, 0], default=3)",
        f"{name}[:, {name}[0] > 0]", f"{name}[np.nonzero({name})]", f"{name}.flat[::3]", f"{name}.item(0)", f"{name}.tolist()"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def product(state: State) -> str | None:
    """v = a matrix product of whole small numbers (exact in any order of summation)."""
    one = state.array(lambda array: is_real(array) and array.ndim >= 1)
    if one is None:
        return None
    array = state.values[one]
    two = state.array(lambda other: is_real(other) and other.ndim >= 1 and other.shape[0] == array.shape[-1]) or one
    a, b = (f"np.sign({one} + 0)", f"np.sign({two} + 0)")
    forms = [f"{a} @ {b} + 0", f"np.dot({a}, {b}) + 0", f"np.matmul({a}, {a}.T) + 0", f"np.inner({a}, {a}) + 0",
             f"np.tensordot({a}, {b}, 1) + 0", f"np.outer({a}, {b}) + 0", f"np.einsum('...i,...i->...', {a}, {a}) + 0",
             f"np.vdot({a}, {a}) + 0", f"{a}.dot({b}) + 0", f"np.einsum('i...->...', {a}) + 0", f"np.trace({a}) + 0",
             f"np.convolve({a}.ravel()[:9], [1, 0, -1]) + 0", f"np.linalg.norm({a}.ravel()) > 2", f"np.vecdot({a}, {a}) + 0"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def look(state: State) -> str | None:
    """v = something plain about an array: its text, a scalar, a truth, how it lies in memory."""
    name = state.array()
    if name is None:
        return None
    other = state.array() or name
    forms = [f"str({name})", f"repr({name})", f"len({name})", f"{name}.nbytes", f"{name}.flags.c_contiguous", f"{name}.tobytes() if {name}.dtype.char not in 'gG' else 0",
             f"np.shares_memory({name}, {other})", f"np.may_share_memory({name}, {other})", f"bool(({name} == {other}).any())",
             f"np.array_equal({name}, {other})", f"{name}.sum() > 3", f"float({name}.sum())", f"list({name})[:2]", f"{name}.base is None",
             f"np.ndim({name}), np.shape({name}), np.size({name})", f"f'{{{name}.max():.3f}}'", f"{name}.flags.writeable",
             f"np.result_type({name}, {other})", f"isinstance({name}, np.ndarray)", f"[float(x) for x in {name}[0]]", f"hash(np.nan_to_num({name}.max()))",
             f"bool({name})", f"{name}.flags.owndata", f"{name}.max() in {name}", f"np.allclose({name}, {name})", f"{name}.dtype.name",
             f"sum({name}.ravel()[:4])", f"np.can_cast({name}.dtype, 'f4')", f"round({name}.ravel()[0], 1)", f"divmod({name}.sum(), 3)",
             f"{name}.sum() + {name}", f"{name}.max() * 2", f"np.float32({name}.min())", f"type({name}.sum()).__name__"]
    return f"{state.fresh()} = {state.random.choice(forms)}"


def is_small_enough(value, largest: int) -> bool:
    """Whether a result may stay in the program."""
    return not isinstance(value, np.ndarray) or value.size <= largest
