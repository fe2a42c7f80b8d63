"""What the growing program knows: its statements so far and the host's values of its variables, with random choices among them.

Promises: a seed always gives the same program on one NumPy version; every array kept stays small enough to run thousands of programs.
Does not know any operation.
"""
import random

import numpy as np

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8", "f8", "f8"]
COMPLEX = ["c8", "c16"]
NUMBERS = ["?", *INTEGERS, *FLOATS, *FLOATS, *COMPLEX]
RARE = ["g", "m8[s]", "M8[D]", "S3", "U2", ">f8", ">i4", "G"]
SLICE_STEPS = [1, 1, 1, 1, 2, 3, -1, -1, -2, -3]


class State:
    """The statements and the values they have on the host. `scale` is the typical length of an axis."""

    def __init__(self, seed: int, scale: int, largest: int):
        self.random = random.Random(seed)
        self.scale = scale
        self.largest = largest
        self.only_shape = None
        self.values: dict = {}
        self.statements: list[str] = []
        self.count = 0

    def fresh(self) -> str:
        """A variable name that is not in use."""
        self.count += 1
        return f"v{self.count}"

    def chance(self, share: float) -> bool:
        """True in that share of the calls."""
        return self.random.random() < share

    def pick(self, *options):
        """One of the options."""
        return self.random.choice(options)

    def dtype(self) -> str:
        """A dtype's code: mostly numbers."""
        if self.only_shape:
            return self.pick("f8", "f8", "f8", "i8", "f4")
        return self.random.choice(RARE) if self.chance(0.05) else self.random.choice(NUMBERS)

    def length(self) -> int:
        """The length of one axis: often around the scale, now and then 0 or 1."""
        if self.chance(0.12):
            return self.random.randint(0, 1)
        return self.random.randint(2, max(2, self.scale))

    def shape(self, most: int = 4) -> tuple:
        """A random shape with 1..most axes that is not too large; the only one, if the program has one."""
        if self.only_shape:
            return self.only_shape
        axes = self.random.choice([1, 1, 1, 2, 2, 2, 2, 3, 3, 4])
        shape = tuple(self.length() for _ in range(min(axes, most)))
        while np.prod(shape) > self.largest:
            shape = shape[1:]
        return shape

    def arrays(self, accept=lambda array: True) -> list[str]:
        """Names of the arrays that are accepted."""
        return [name for name, value in self.values.items() if isinstance(value, np.ndarray) and accept(value)]

    def array(self, accept=lambda array: True) -> str | None:
        """One of them; recent ones more often."""
        names = self.arrays(accept)
        if self.only_shape and len(names) > 1:
            return self.random.choice(names)
        if not names:
            return None
        return names[-1 - min(int(self.random.expovariate(0.35)), len(names) - 1)]

    def axis(self, array, allow_none: bool = True) -> str:
        """The text of an axis argument: an axis, a negative one, a tuple, None, or rarely one that does not exist."""
        if self.chance(0.02):
            return str(array.ndim + 1)
        if array.ndim == 0 or (allow_none and self.chance(0.25)):
            return "None"
        if allow_none and array.ndim > 1 and self.chance(0.25):
            return str(tuple(self.random.sample(range(array.ndim), self.random.randint(1, array.ndim))))
        return str(self.random.randint(-array.ndim, array.ndim - 1))

    def one_axis(self, array) -> int:
        """An axis of the array."""
        return self.random.randint(-array.ndim, array.ndim - 1) if array.ndim else 0


def is_number(array) -> bool:
    """Whether the array holds numbers in native byte order."""
    return array.dtype.kind in "?biufc" and array.dtype.isnative


def is_real(array) -> bool:
    """Whether the array holds real numbers (booleans included)."""
    return array.dtype.kind in "?biuf" and array.dtype.isnative


def is_writeable(array) -> bool:
    """Whether the array takes writes without a doubt about what a write means."""
    return array.flags.writeable and 0 not in [step for step, length in zip(array.strides, array.shape) if length > 1]
