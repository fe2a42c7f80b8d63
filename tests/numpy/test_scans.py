"""Running totals, differences, reduceat.

Promises: NumPy's bits: a float scan is a serial chain. Does not test reductions.
"""
import pytest

from tests.numpy.oracle import check, rows

TEXTS = rows(r"""
np.cumsum(a, dtype='f4')
np.cumsum(b, dtype='f8')
np.cumsum(u, dtype='u1')
np.cumsum(a, 0, out=f)
np.cumsum(a, 1, out=a)
np.maximum.accumulate(a)
np.minimum.accumulate(a, 1)
np.logical_or.accumulate(m)
np.subtract.accumulate(a)
np.add.accumulate(e)
np.nancumsum(n)
np.nancumprod(n, 0)
np.diff(a)
np.diff(a, axis=0)
np.diff(a, 2)
np.diff(m)
np.diff(d)
np.ediff1d(b)
np.gradient(a)
np.gradient(b, 0.5)
np.trapezoid(a)
np.trapezoid(a, dx=0.1, axis=0)
np.add.reduceat(a, [0, 2, 5])
np.add.reduceat(a, [0, 3, 1], axis=1)
np.maximum.reduceat(i, [1, 2])
np.add.reduceat(b, [0])
np.cumulative_sum(b, include_initial=True)
np.cumulative_prod(b)
np.convolve(k, [1, 0, -1])
np.correlate(k, [1, 2], 'full')
""")


@pytest.mark.parametrize("axis", ["", "0", "-1"])
@pytest.mark.parametrize("method", ["cumsum", "cumprod"])
@pytest.mark.parametrize("operand", "a f i u h c m s q".split())
def test_methods(operand, method, axis):
    check(f"{operand}.{method}({axis})")


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text):
    check(text)
