"""Statements that change existing arrays: assignments through every index, in-place operators, `out=`, overlapping operands.

Promises: only arrays whose elements are distinct in memory are written. Does not make new variables, except by deleting one.
"""
from tests.random_programs.creation import scalar
from tests.random_programs.operations import BINARY, REDUCIBLE, UNARY, fancy, mask_of, nested, operand, partner
from tests.random_programs.state import State, is_number, is_real, is_writeable
from tests.random_programs.views import basic_index

IN_PLACE = ["+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "**=", "+=", "-=", "*="]


def writeable(array) -> bool:
    """Whether the array holds numbers and takes writes."""
    return is_number(array) and is_writeable(array) and array.ndim > 0


def target(state: State) -> tuple[str, object] | None:
    """A variable to be written, and its value on the host."""
    name = state.array(writeable)
    return name and (name, state.values[name])


def assign(state: State) -> str | None:
    """w[index] = something."""
    if not (found := target(state)):
        return None
    name, array = found
    index = basic_index(state, array)
    mask = mask_of(state, array, name)
    source = partner(state, array)
    forms = [f"{name}[{index}] = {scalar(state)}", f"{name}[{index}] = {source}", f"{name}[...] = {source}",
             f"{name}[{index}] = {operand(state)}", f"{name}[{mask}] = {scalar(state)}", f"{name}[{mask}] {state.pick('+=', '*=')} 2",
             f"{name}[{fancy(state, array)}] = {scalar(state)}", f"{name}[{fancy(state, array)}] += 1", f"{name}[{mask}] = {name}[{mask}] + 1",
             f"np.copyto({name}, {source}, where={mask}, casting='unsafe')", f"np.copyto({name}, {source}, casting='same_kind')",
             f"np.putmask({name}, {mask}, {source})", f"{name}.fill({scalar(state)})", f"np.put({name}, [0, -1], [5, 6])",
             f"np.place({name}, {mask}, [1, 2, 3])", f"np.fill_diagonal({name}, 3)", f"{name}.flat[{state.pick('0', '::2', '[0, -1]')}] = 4",
             f"np.add.at({name}, {fancy(state, array)}, 1)", f"np.maximum.at({name}, [0, 0, -1], 2)", f"{name}.put([0, 0], [1, 2])",
             f"np.put_along_axis({name}, np.argmax({name}, axis=-1, keepdims=True), 9, axis=-1)", f"{name}.sort(axis=-1)",
             f"{name}[{name} > 2], {name}[0] = 1, {name}[-1]"]
    return state.random.choice(forms)


def selected(state: State) -> str | None:
    """w[mask] = something of elements by the same mask, which may change, as what they were taken from may, while they are held."""
    if not (found := target(state)):
        return None
    name, array = found
    mask, held = state.fresh(), state.fresh()
    other = state.array(lambda one: is_number(one) and one.shape == array.shape) or name
    made = f"{mask} = {mask_of(state, array, name)}"
    here, there = f"{name}[{mask}]", f"{other}[{mask}]"
    operator = state.random.choice(BINARY)
    number = state.pick("2", "0.5", "3", "np.float32(1.5)", "np.int8(3)", "1j")
    value = state.pick(here, there, f"{here} {state.pick('+', '-', '*', '/')} {number}", f"{here} * {here} + {there}", f"np.{operator}({here}, {there})",
                       f"np.{state.random.choice(UNARY)}({there})", f"np.sqrt(abs({there})) - {here}", f"{number} * {there}", f"-{there}",
                       f"{name}[::-1][{mask}] + {there}", f"{here}[::-1]", f"{here}.sum()", f"np.{operator}({there}, {number})")
    change = state.pick(f"{other}[...] = 1", f"{mask}[::2] = True", f"{other} += 1", f"{held} += 1", f"{mask}[...] = ~{mask}", f"{here} = {held}",
                        f"{name}[0] = 2", f"{held} = {held} * 2", f"{here} = {held} = {there} + {held}", f"np.cumsum({other}, axis=0, out={other})")
    forms = [f"{made}; {here} = {value}", f"{made}; {here} {state.random.choice(IN_PLACE)} {state.pick(number, there)}",
             f"{made}; {here} = {value}; {here} += 1; {here} = {here} * {there}", f"{made}; {here} = {held} = {value}; {change}",
             f"{made}; {here} = {held} = {there}; {change}; {held} = {held} + 1", f"{made}; {here} += {other}[~{mask}]",
             f"{made}; {here} = {held} = {value}; {change}; {change}"]
    return state.random.choice(forms)


def in_place(state: State) -> str | None:
    """w op= something, the whole or a part."""
    if not (found := target(state)):
        return None
    name, array = found
    operator = state.random.choice(IN_PLACE)
    return f"{name} {operator} {partner(state, array)}" if state.chance(0.5) else \
        f"{name}[{basic_index(state, array)}] {operator} {operand(state)}"


def halves(state: State) -> str | None:
    """Parts of an array are written one after the other from temporaries."""
    if not (found := target(state)):
        return None
    name, array = found
    cut = state.random.randint(0, len(array))
    lower, upper = array[:cut], array[cut:]
    first, second = f"{name}[:{cut}] = {nested(state, lower)}", f"{name}[{cut}:] = {nested(state, upper)}"
    forms = [f"{first}; {second}", f"{second}; {first}", f"{first}; {name}[{cut}:] *= 2", f"{name}[{basic_index(state, array)}] = {nested(state, array, 1)}",
             f"{name} {state.pick('+=', '-=', '*=')} {nested(state, array)}", f"{name}[0] = 3; {name} += {nested(state, array)}",
             f"{first}; {name}[:{cut}] += {name}[:{cut}][::-1]"]
    return state.random.choice(forms)


def shifted(state: State, array) -> tuple[str, str] | None:
    """Two indices of the same shape that overlap: shifted, reversed, strided or transposed."""
    axis = state.random.randrange(array.ndim)
    length = array.shape[axis]
    if length < 3:
        return None
    shift = state.random.randint(1, min(3, length - 1))
    forward, back = f"{shift}:", f":{length - shift}"
    pairs = [(forward, back), (back, forward), ("::-1", ":"), (f":{length // 2 * 2}:2", f"1:{length // 2 * 2}:2"), (f"1:{length - 1}", f"2:{length}"),
             (f"{length - 1}:{shift - 1 or None}:-1".replace("None", ""), back)]
    left, right = state.random.choice(pairs)
    before = ":, " * axis
    return before + left, before + right


def overlap(state: State) -> str | None:
    """w[here] op= w[there], where here and there overlap."""
    if not (found := target(state)):
        return None
    name, array = found
    pair = shifted(state, array)
    if pair is None:
        return None
    left, right = pair
    forms = [f"{name}[{left}] = {name}[{right}]", f"{name}[{left}] {state.random.choice(IN_PLACE)} {name}[{right}]",
             f"np.add({name}[{left}], {name}[{right}], out={name}[{left}], casting='unsafe')",
             f"np.multiply({name}[{right}], 2, out={name}[{left}], casting='unsafe')",
             f"{name}[{left}] = 0.5 * ({name}[{right}] + {name}[{left}])", f"{name}[{left}], {name}[{right}] = {name}[{right}], {name}[{left}].copy()",
             f"np.{state.pick('negative', 'square', 'abs')}({name}[{right}], out={name}[{left}])", f"{name} += {name}[::-1]"]
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        forms += [f"{name} += {name}.T", f"{name}[...] = {name}.T", f"np.add({name}, {name}.T, out={name}, casting='unsafe')"]
    return state.random.choice(forms)


def with_out(state: State) -> str | None:
    """A ufunc or reduction into an existing array, with or without a mask."""
    if not (found := target(state)):
        return None
    name, array = found
    source = state.array(lambda other: is_number(other) and other.shape == array.shape) or name
    real = state.array(lambda other: is_real(other) and other.ndim > 1 and array.shape == other.shape[1:])
    casting = f", casting={state.pick('unsafe', 'same_kind')!r}" if state.chance(0.6) else ""
    where = f", where={mask_of(state, array, name)}" if state.chance(0.4) else ""
    forms = [f"np.{state.random.choice(BINARY)}({source}, {partner(state, array)}, out={name}{where}{casting})",
             f"np.{state.random.choice(UNARY)}({source}, out={name}{where}{casting})",
             f"np.{state.random.choice(UNARY)}({source}, {name}{where}{casting})",
             f"np.cumsum({source}, axis=0, out={name})", f"np.clip({source}, -2, 2, out={name})"]
    if real:
        forms += [f"np.{state.random.choice(REDUCIBLE)}.reduce({real}, axis=0, out={name})", f"np.sum({real}, axis=0, out={name})",
                  f"np.max({real}, axis=0, out={name})", f"{real}.mean(axis=0, out={name})"]
    return state.random.choice(forms)


def rearrange(state: State) -> str | None:
    """Changes what a name refers to: a new shape in place, a rebinding, a deletion."""
    name = state.array(is_number)
    if name is None:
        return None
    array = state.values[name]
    forms = [f"{name}.shape = (-1,)", f"{name}.shape = ({array.size}, 1)", f"del {name}", f"del {name}", f"{name} = {name} + 1",
             f"{name} = {name}[::-1]", f"{name}.flags.writeable = False", f"{name} = {name}.T", f"{name}.real = 2", f"{name}.imag = 3",
             f"{name} = {name} * 2 - {name}"]
    return state.random.choice(forms)


def repeat(state: State) -> str | None:
    """A few turns of a loop over one or two writes, as solvers have them: fusion, swapping and recycling are exercised."""
    makers = [overlap, in_place, assign, with_out, halves, step]
    body = [text for text in (state.random.choice(makers)(state) for _ in range(state.random.randint(1, 2))) if text]
    if not body:
        return None
    inner = "\n    ".join(body)
    return f"for _ in range({state.random.randint(2, 4)}):\n    {inner}"


def step(state: State) -> str | None:
    """w = an expression of w and others: the old array dies, temporaries die at once."""
    name = state.array(is_number)
    if name is None:
        return None
    array = state.values[name]
    other, third = (nested(state, array, 1) if state.chance(0.5) else partner(state, array) for _ in range(2))
    forms = [f"{name} = {name} * 0.5 + {other}", f"{name} = {other} - {name} * {third}", f"{name} = np.where({name} > {third}, {name}, {other})",
             f"{name} = ({name} + {other}) * ({name} - {third})", f"{name} = np.minimum(abs({name}), {other}) + 0.25",
             f"{name} = ({name} - {name}.mean()) / 3", f"{name} = {name} / (1 + abs({name}).sum(axis=-1, keepdims=True))",
             f"{name} = ({name}[..., None] - {name}[..., None, :1]).sum(-1)", f"{name} = {name}.astype('f8').astype('f4') * 2"]
    return state.random.choice(forms)


def drop(state: State) -> str | None:
    """An array is dropped while what was issued may not have run."""
    names = state.arrays()
    return f"del {state.random.choice(names)}" if len(names) > 2 else None
