"""Floating-point events: the same warnings for the same lines, and errstate.

Promises: category, text and line. Does not test how late a warning may come, only that it comes before the next visible effect.
"""
import pytest

from tests.numpy.oracle import check, rows

WARNED = rows(r"""
a / 0
a / 0.0
i // 0
i % 0
np.log(a)
np.sqrt(a)
np.exp(a * 1e4)
np.log(a * 0)
x - x
x * 0
np.arccos(a)
np.power(a, 0.5)
(a * 1e308) * 1e10
b * np.float32(1e38) * 10
h * np.float16(60000)
np.divide(a, 0, out=a)
np.float64(1) / (a * 0)
n + 1
np.maximum(n, 1)
np.mean(e)
np.mean(e, 0)
e.std()
np.nanmean(np.full(3, np.nan))
np.nanmax(np.full((2, 3), np.nan), 1)
np.reciprocal(a * 0)
a.astype('f4') * 1e300
(a * 1e300).astype('f4')
np.add.reduce(x)
x.sum()
x.mean()
np.sum(a * 1e308)
np.prod(a * 1e30)
np.prod(np.where(a > 0, np.inf, 0))
np.prod(np.abs(a) * 1e200)
np.add.reduce((h * 0 + np.float16(6000)).ravel())
np.sum(h * 0 + np.float16(6000))
np.sum(h * 0 + np.float16(60000), 1)
np.nansum(h * 0 + np.float16(6000))
np.var(h * 0 + np.float16(6000) * (i % 2).astype('f2'))
y = ((np.arange(12) - 6) / 0.0).astype('f4'); result = y.sum(), y.mean(), (y.reshape(4, 3) - y.mean())
y = ((np.arange(24).reshape(2, 12) % 12 - 6) / 0.0).astype('f4'); result = y.sum(1)
np.sum(c, dtype='i8')
np.sum(c, 0, dtype='f4')
np.add.reduce(c, 1, dtype='i4')
np.maximum.reduce(c, dtype='f4')
np.prod(c, dtype='i8')
np.full((ROWS, COLUMNS), 1j, 'i8')
np.full((ROWS, COLUMNS), 1 + 2j, 'f4')
c / 0
np.log1p(a * 0 - 1)
np.divmod(i, 0)
np.fmod(i, 0)
np.remainder(a, 0)
np.floor_divide(a, 0)
np.tan(x)
np.cosh(a * 1000)
np.hypot(a * 1e308, 1e308)
v = a / 0\nw = 1\nresult = v
v = a / 0\nv += 1\nw = np.log(a)\nresult = v, w
np.ldexp(a, 5000)
np.arctanh(a / a)
(a + 1)[np.log(a) > 0]
np.where(a > 0, np.log(a), 0)
np.cumsum(x)
np.histogram(a, [50, 51, 52.0], density=True)
np.histogram(a, [-1, 2, 2], density=True)
np.histogram(i, 3, (90, 91), density=True)
np.var(x)
y = x.reshape(-1, 2); result = np.isnan(y.T @ y)
y = (a * a * 1e300 + 1e300).reshape(-1, 2)\nresult = np.isinf(y.T @ y)
y = (a * a * 1e300 + 1e300).reshape(-1, 2)\nresult = np.isinf(np.dot(y.T, y))
y = (a * a * 1e300 + 1e300).ravel()\nresult = np.isinf(y @ y)
y = (a * a * 1e300 + 1e300).ravel()\nresult = np.isinf(np.dot(y, y))
y = (a * a * 1e300 + 1e300).ravel()\nresult = np.isinf(np.inner(y, y))
y = (a * a * 1e300 + 1e300).ravel()\nresult = np.isinf(np.vdot(y, y))
for _ in range(3):\n    v = a / 0
v = a / 0\ndel v
""")
ERRSTATE = rows(r"""
with np.errstate(all='ignore'):\n    result = a / 0
with np.errstate(divide='raise'):\n    result = a / (a * 0)
with np.errstate(invalid='raise'):\n    result = np.sqrt(a)
with np.errstate(over='raise'):\n    result = np.exp(a * 1e4)
with np.errstate(divide='ignore'):\n    result = np.log(a * 0)
with np.errstate(all='raise'):\n    result = (x - x).sum()
calls = []\nwith np.errstate(divide='call', call=lambda *given: calls.append(given)):\n    result = a / 0
import warnings\nwarnings.simplefilter('error')\nresult = a / 0\ndel warnings
np.seterr(divide='raise')\ntry:\n    a / 0\nexcept FloatingPointError as error:\n    result = str(error)\nfinally:\n    np.seterr(divide='warn')
y = (a * a * 1e300 + 1e300).reshape(-1, 2)\nwith np.errstate(over='raise'):\n    result = y.T @ y
with np.errstate(all='ignore'):\n    v = a / 0\nresult = v + 1
result = np.geterr()
""")


@pytest.mark.parametrize("text", WARNED)
def test_warned(text):
    check(text, warned=True)


@pytest.mark.parametrize("text", ERRSTATE)
def test_errstate(text):
    check(text, warned=True)
