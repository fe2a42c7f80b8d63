"""Arrays over mapped files as operands, and copies of them.

Promises NumPy's results, types and errors. The file is one that is there: NumPy's own library.
"""
import pytest

from tests.numpy.oracle import check, rows

SETUP = """
from numpy._core import _multiarray_umath as own
g = np.memmap(own.__file__, 'i4', 'r', 64, (ROWS, COLUMNS))
v = np.memmap(own.__file__, 'i4', 'c', 64, (COLUMNS, ROWS), 'F')
"""

TEXTS = rows(r"""
g * 2, 2 - g, g + g, g > 5, -g, np.sqrt(abs(g)), np.add(g, 1), np.maximum(g, i), g[1:] * 2, g.T + 1, v * 3, v.T + g, g[:, None] + g[:, :1]
(g * 2).flags.writeable, (v * 2).flags.f_contiguous, isinstance(g * 2, np.memmap), isinstance(g, np.memmap), type(g).__name__, (g + w).dtype
w + g, g * w, i + g, i % (g + 2**31), w > g, np.where(m, g, i), np.where(m, w, v.T), np.arctan2(w, g), w @ v, g @ v, np.dot(w, v), divmod(i, 7 + abs(g.astype('i8')))
w += g\nresult = w
w[...] = g\nresult = w
w[:] = v.T\nresult = w
w[1:] = g[:-1]\nresult = w
w[m] = g[m]\nresult = w
np.array(g), np.array(v), np.array(g, order='F'), np.array(v, order='C'), np.array(g, dtype='f4'), np.array(g, copy=True), np.array(g, ndmin=3), np.array(g[1:]), np.array(g[:, 1:]), np.array([g, g])
[made.flags.c_contiguous for made in (np.array(g), np.array(v), np.array(g, order='F'), np.array(v, order='C'))], np.array(g).flags.owndata, np.array(g).flags.writeable
np.asarray(g) + 1, np.ascontiguousarray(v), np.asfortranarray(g), np.asarray(g, dtype='f8'), np.copy(g), g.copy() + 1, np.array(g, subok=True)[0] + 1, np.concatenate([g, i]), np.stack([w, g])
g.sum(), g.mean(0), np.sum(g, 1), g.max(), np.argmax(g, 0), np.median(g), np.unique(g)[:9], g[3, 2], g[3] + 1, g.T[2], (g == g).all(), np.bincount(abs(g[0]) % 9)
v[0] = 7\nresult = np.array(v), v * 2
v += 1\nresult = v * 2
np.add(i, 1, out=v.T)\nresult = v + 0
u = np.array(v)\nv[...] = 3\nresult = u
u = v * 2\nv[...] = 3\nresult = u
g[0] = 7
g += w
np.array(g, copy=False)[0, 0]
g * w[:, 1:]
""")


@pytest.mark.parametrize("text", TEXTS)
def test_mapped(text):
    check(text, SETUP, warned=True)
