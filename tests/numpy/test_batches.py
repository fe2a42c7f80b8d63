"""Functions of NumPy that run by slices of a batch: factorisations of stacks, interpolation, rounding; arrays like others.

Promises NumPy's bits, since each row or matrix is one call of the same loop, and its warnings and errors. Does not time.
"""
import pytest

from tests.numpy.oracle import check, rows

STACKS = """
r = host.random.default_rng(8)
v = np.array(r.normal(size=(ROWS * 8, 5, 5)) + 4 * host.eye(5))
o = np.array(r.normal(size=(ROWS * 8, 5, 2)))
y = np.array(r.normal(size=(ROWS * 9, 3, 3)) + 4 * host.eye(3))
"""

OTHERS = rows(r"""
np.linalg.inv(v), np.linalg.det(v), np.linalg.slogdet(v)
np.linalg.solve(v, o), np.linalg.solve(v, o[0]), np.linalg.solve(v[0], o)
np.linalg.svd(o), np.linalg.svd(o, full_matrices=False), np.linalg.svd(o, compute_uv=False)
np.linalg.qr(o), np.linalg.qr(o, 'complete'), np.linalg.qr(o, 'r')
np.linalg.eigh(v @ v.transpose(0, 2, 1)), np.linalg.eigvalsh(v), np.linalg.cholesky(v @ v.transpose(0, 2, 1) + np.eye(5))
np.linalg.eig(v), np.linalg.eigvals(v), np.linalg.pinv(o), np.linalg.matrix_rank(o), np.linalg.cond(v)
np.linalg.inv(y), np.linalg.inv(y.reshape(ROWS, 9, 3, 3)), np.linalg.inv(y.reshape(9, ROWS, 3, 3))
np.linalg.inv(v.transpose(0, 2, 1)), np.linalg.inv(v[::-1]), np.linalg.det(v[:, ::-1])
np.linalg.inv(v.astype('f4')), np.linalg.inv(v + 1j), np.linalg.inv((v * 100).astype('i4'))
np.linalg.matrix_power(v, 3), np.linalg.matrix_power(v, -1), np.linalg.tensorinv(v[:5, :, :].reshape(5, 5, 25), 2)
v @ v, v @ o, v[0] @ o, v @ o[0], np.matmul(v, o, out=np.zeros((ROWS * 8, 5, 2))), v @ np.arange(5.0)
np.matmul(v, v, axes=[(0, 1), (0, 1), (0, 1)])
np.vecdot(w, w), np.matvec(v, o[:, :, 0]), np.vecmat(o[:, :, 0], v)
np.linalg.inv(v[:, :4])
np.linalg.inv(np.zeros((ROWS * 9, 5, 5)))
y[7] = 0\nnp.linalg.inv(y)
y[-1] = 0\nresult = np.linalg.det(y)
np.linalg.cholesky(-v)
np.linalg.solve(v, o[:, :4])
np.interp(w, l, l ** 2), np.interp(w, l, l * 1j), np.interp(w, l, l, -1, 1), np.interp(w.ravel(), [0, 1], [2, 3], period=2)
np.interp(n, l, l), np.interp(s, l, l), np.interp(l, np.sort(w.ravel()), w.ravel()), np.interp(w, l, l[1:])
np.interp(i, [0, 1], [5, 6]), np.interp(z, l, l), np.interp(w, [], [])
np.round(w, 2), np.round(w, -1), np.round(w), np.round(a * 1e5, 3), np.around(w.astype('f4'), 2), np.round(h, 1)
np.round(i, -1), np.round(c, 1), np.round(x, 2), np.round(n, 1), np.round(s, 2), np.round(f, 2), np.round(w.T, 3), np.round(q * 0.5, 0)
np.round(w, 9), np.round(w, 300), np.round(w, -9), np.round(w, 1.5), np.round(w, None), np.round(m, 1)
np.round(w, 2, out=np.zeros((ROWS, COLUMNS))), w.round(decimals=1), w.round(1), np.round(w.astype('>f8'), 2), np.round(d, 1)
np.round(a * 1e308, 2)
np.empty_like(w).shape, np.empty_like(f, 'i4').flags.f_contiguous, np.empty_like(s).strides, np.empty_like(q, shape=(ROWS, 9)).shape
np.empty_like(w.T).strides, np.empty_like(w, order='F').strides, np.empty_like(q.transpose(1, 0, 2)).strides
np.zeros_like(f), np.ones_like(w, 'c8'), np.full_like(w.T, 3), np.zeros_like(s), np.zeros_like(w, shape=3)
np.convolve(w.ravel(), l[:9]), np.correlate(w.ravel(), l[:9], 'same')
np.round(q.transpose(1, 0, 2) / 3, 2), np.round(e, 1), np.round(z, 1)
""")


@pytest.mark.parametrize("text", OTHERS)
def test_stacks_and_values(text):
    check(text, STACKS, warned=True)
