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
np.cumsum(a, 0, out=a)
np.cumsum(a[1:], 0, out=a[:-1])
np.cumsum(a, 0, out=np.zeros_like(a)[:, ::-1])
np.cumsum(u, 1, out=u)
np.cumsum(i, 0, dtype='f8')
np.cumsum(m, dtype='i1'), np.cumsum(j), np.cumsum(i, dtype='i2')
a.cumsum(2)
a.cumsum((0, 1))
np.add.accumulate(a, axis=(0, 1))
a.cumsum(0, out=b)
np.cumprod(i), np.cumprod(u, 1), np.cumprod(a.T, 0)
np.bitwise_xor.accumulate(i, 1), np.maximum.accumulate(i.ravel()), np.logical_and.accumulate(m.ravel())
np.divide.accumulate(np.abs(a) + 1, 1), np.hypot.accumulate(a), np.fmin.accumulate(n)
np.maximum.accumulate(x), np.maximum.accumulate(x, 1), np.minimum.accumulate(x.ravel())
q.cumsum(1), q.cumsum(2), np.add.accumulate(q, 0), q.transpose(2, 0, 1).cumsum(1)
np.power.accumulate(i % 3)
c.cumprod(0), c.cumsum(1), np.add.accumulate(t), np.maximum.accumulate(d)
np.vander(b)
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
