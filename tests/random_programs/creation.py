"""Statements that make arrays: deferred ones through `np`, host ones through `h`, with every kind of content.

Promises: the text means the same in both worlds. Nothing uninitialised is ever read.
"""
from tests.random_programs.state import State


def scalar(state: State) -> str:
    """The text of a Python or NumPy scalar."""
    plain = [str(state.random.randint(-5, 9)), "0", "1", "2", "True", "0.5", "-1.5", "2.0", "1e3", "(1+2j)", "0.1"]
    typed = [f"np.{name}({value})" for name in ("int8", "uint8", "int32", "int64", "float16", "float32", "float64")
             for value in ("1", "3", "7")] + ["np.float64(0.3)", "np.complex64(1j)", "np.bool(True)", "np.nan", "-0.0", "np.inf"]
    return state.random.choice(plain if state.chance(0.65) else typed)


def content(state: State, shape: tuple, dtype: str, space: str) -> str:
    """The text of an array of that shape and dtype."""
    size = 1
    for length in shape:
        size *= length
    if dtype in ("S3", "U2"):
        return f"({space}.arange({size}) % 7).reshape({shape}).astype({dtype!r})"
    if dtype[0] in "mM":
        return f"({space}.arange({size}) * 3 % 11 - 2).reshape({shape}).astype('m8[s]').astype('i8').astype({dtype!r})"
    seed = state.random.randint(0, 99)
    low, high = (0, 12) if dtype[0] in "u?" else (-9, 9)
    forms = [
        f"{space}.arange({size}).reshape({shape}).astype({dtype!r})",
        f"({space}.arange({size}, dtype='i8') * {state.pick(5, 7, 11)} % {state.pick(13, 17, 5)}).reshape({shape}).astype({dtype!r})",
        f"{space}.random.default_rng({seed}).integers({low}, {high}, size={shape}).astype({dtype!r})",
        f"{space}.full({shape}, {state.pick(0, 1, 3)}, dtype={dtype!r})",
        f"{space}.zeros({shape}, dtype={dtype!r}, order={state.pick('C', 'F')!r})",
        f"{space}.ones({shape}, {dtype!r})",
    ]
    if dtype in ("f4", "f8", "c8", "c16", "f2"):
        forms += [
            f"{space}.random.default_rng({seed}).normal(size={shape}).astype({dtype!r})",
            f"{space}.random.default_rng({seed}).random({shape}).astype({dtype!r}, order={state.pick('C', 'F', 'K')!r})",
            f"{space}.linspace(-2, 3, {size}).reshape({shape}).astype({dtype!r})",
            f"(({space}.arange({size}) - {size // 2}) / {state.pick(0.0, 3.0)}).reshape({shape}).astype({dtype!r})",
        ]
    return state.random.choice(forms)


def make(state: State) -> str:
    """v = a new array, deferred or host."""
    space = "h" if state.chance(0.15) else "np"
    shape, dtype = state.shape(), state.dtype()
    special = [
        f"{space}.eye({state.length()}, {state.length()}, k={state.random.randint(-2, 2)}, dtype={dtype!r})",
        f"{space}.tri({state.length()}, {state.length()}, {state.random.randint(-2, 2)})",
        f"{space}.arange({state.random.randint(-9, 3)}, {state.random.randint(4, 30)}, {state.pick(1, 2, 0.5, 3)})",
        f"{space}.arange({state.random.randint(3, 30)}, -4, {state.pick(-1, -2, -0.7)})",
        f"{space}.array([[1, 2.5, 3], [4, 5, {scalar(state)}]])",
        f"{space}.array([1, 2, 3, 250], dtype={state.pick('u1', 'f4', 'i8', 'c8')!r})",
        f"{space}.logspace(0, 2, {state.length()})",
        f"{space}.indices(({state.length()}, {state.random.randint(1, 4)}))",
        f"{space}.fromfunction(lambda i, j: i * 2 - j, ({state.length()}, {state.length()}))",
        f"{space}.identity({state.random.randint(1, 6)}, dtype={dtype!r})",
        f"{space}.geomspace(1, 64, {state.length()})",
        f"{space}.vander({space}.arange(5.0), {state.random.randint(1, 5)})",
        f"{space}.diag({space}.arange({state.random.randint(1, 8)}), {state.random.randint(-2, 2)})",
        f"{space}.asarray(range({state.length()}), dtype='f8')",
        f"{space}.frombuffer(bytes(range(16)), dtype='u2').copy()",
        f"{space}.zeros({shape}, dtype=[('a', 'i4'), ('b', 'f8')])",
    ]
    text = state.random.choice(special) if state.chance(0.2) and not state.only_shape else content(state, shape, dtype, space)
    return f"{state.fresh()} = {text}"


def like(state: State) -> str | None:
    """v = an array made like another, or a copy of one in some order."""
    name = state.array()
    if name is None:
        return None
    forms = [
        f"np.zeros_like({name})", f"np.ones_like({name}, order={state.pick('C', 'F', 'K', 'A')!r})",
        f"np.full_like({name}, 1)", f"np.zeros_like({name}, dtype={state.dtype()!r})",
        f"{name}.copy()", f"{name}.copy(order={state.pick('C', 'F', 'K', 'A')!r})", f"np.copy({name})",
        f"np.array({name}, order={state.pick('C', 'F', 'K', 'A')!r}, ndmin={state.pick(0, 2, 3)})", f"np.asarray({name})",
        f"np.ascontiguousarray({name})", f"np.asfortranarray({name})", f"np.require({name}, requirements=['C', 'W'])",
        f"h.array({name})",
    ]
    return f"{state.fresh()} = {state.random.choice(forms)}"
