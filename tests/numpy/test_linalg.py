"""Matrix products and factorisations.

Promises: products of whole numbers are exact, whatever the order; others agree to rounding through np.allclose. Does not compare signs of
vectors that a factorisation leaves open.
"""
import pytest

from tests.numpy.oracle import check, rows

EXACT = rows(r"""
np.sign(a) @ np.sign(f.T) + 0
i @ i.T
np.dot(i, i.T)
np.matmul(q, q.transpose(0, 2, 1))
np.inner(i, i)
np.outer(k, k)
np.vdot(k, k)
np.vdot(i, i)
np.tensordot(q, q, ((0, 1), (0, 1)))
np.tensordot(i, i.T, 1)
np.einsum('ij,kj->ik', i, i)
np.einsum('ij->j', i)
np.einsum('ii->i', p[:, :3])
np.einsum('ij,ij', i, i)
np.einsum('kij->jk', q)
np.trace(i)
np.linalg.matrix_power(p[:3, :3], 3)
np.linalg.multi_dot([i, i.T, i])
i @ i
i @ np.ones(3)
np.matmul(i, 2)
np.dot(k, 2)
np.kron(k, [1, 2])
np.matvec(i, i[0])
np.matvec(i, i)
np.matvec(i, i[:3, None] + 1)
w.dtype, np.allclose(np.matmul(w, w[0]), host.asarray(w) @ host.asarray(w)[0])
np.allclose(np.matmul(host.ones(ROWS), w), host.ones(ROWS) @ host.asarray(w))
np.allclose(host.ones((2, ROWS)) @ w, host.ones((2, ROWS)) @ host.asarray(w))
np.allclose(host.ones(ROWS) @ w, host.ones(ROWS) @ host.asarray(w))
np.allclose(np.inner(w, w[0]), host.asarray(w) @ host.asarray(w)[0])
np.allclose(np.inner(w[0], w), host.asarray(w) @ host.asarray(w)[0])
np.allclose(np.inner(w, w), host.asarray(w) @ host.asarray(w).T)
np.allclose(np.matvec(w, w[0]), host.asarray(w) @ host.asarray(w)[0])
np.inner(w, w[:, 1:])
np.matmul(w, w)
host.ones(3) @ w
np.vecmat(i[:, 0], i)
np.vecdot(i, i)
m @ m.T
m.dot(m.T)
u @ u.T
e @ e.T
e.T @ e
np.dot(i, i.T, out=np.empty((ROWS, ROWS), 'i8'))
v = np.zeros((ROWS, ROWS), 'i8'); np.matmul(i, i.T, out=v); result = v
i @ host.ones((COLUMNS, 2), 'i8')
y = np.round(w).reshape(-1, 2); result = y.T @ y + 0
y = np.round(w).reshape(-1, 2); result = y.T @ np.round(y * 3)[:, :1] + 0
y = np.round(w).reshape(-1, 2); result = y.T[::-1] @ y[:, ::-1] + 0
y = np.round(w).reshape(-1, 2); result = np.dot(y[:, 1], y) + 0
y = np.round(w).reshape(-1, 2); result = np.dot(y.T, y[:, 1]) + 0
y = np.round(w).reshape(-1, 2).astype('f4'); result = y.T @ y + 0, y.T.dot(y[::-1]) + 0
y = np.round(w).reshape(-1, 7); result = y.T[:5] @ (y * (y > 0)) + 0
y = np.round(w).reshape(-1, 2); result = y @ np.array([2.0, -3.0]) + 0, np.dot(y, y[0]) + 0, y[1] @ y.T + 0, (y @ y[1]).max() - 1
y = np.round(w).reshape(-1, 2); result = y[::2] @ y[3], y[::-1] @ y[3, ::-1], y.astype('f4').dot(y[0].astype('f4')), y @ [1, 2]
y = (i[:, 0] % 3 == np.arange(3)[:, None]).astype('f8'); result = y @ np.round(w) + 0, y @ np.round(w)[:, :9] + 0
host.ones((2, ROWS), 'i8') @ i
y = np.arange(1129600.0).reshape(1600, -1)[:, 3:] % 11; v = np.arange(703) % 5 - 2.0; result = y @ v, np.dot(y, v), y.dot(v[::-1]), y[::-1] @ v, (y @ v).sum()
y = (np.arange(2300000) % 13).astype('f4').reshape(-1, 2300); v = np.arange(2300, dtype='f4') % 5; result = y @ v, y @ v.astype('f8'), y[:, ::2] @ v[::2], v @ y.T
y = np.ones((40000, 300)); result = y @ host.arange(300.0), y.T @ np.arange(40000.0)
y = np.arange(1230000.0).reshape(-1, 41)[:, 1:] % 11; v = (np.arange(320) % 5 - 2.0).reshape(40, 8); result = y @ v, np.dot(y, v), y.dot(v[:, ::-3]), y[::-1] @ v[:, :2], y @ v.T.copy().T, (y @ v).sum()
y = (np.arange(2400000) % 13).astype('f4').reshape(-1, 48); v = (np.arange(48 * 31, dtype='f4') % 5).reshape(31, 48).T; result = y @ v, y @ v[:, :16], y @ v.astype('f8'), v[:, :9].T @ y[:40].T
y = np.ones((40000, 30)); result = y @ host.ones((30, 7)), y @ np.arange(90.0).reshape(30, 3), y @ host.ones((30, 90)), y @ host.ones((30, 0))
y = np.ones((40000, 30)); y[7, 7] = np.inf; v = np.ones((30, 5)); v[7, 2] = 0; result = y @ v
y = np.ones((1500, 800)); y[7, 7] = np.inf; v = np.arange(800.0); v[7] = 0; result = y @ v
y = np.ones((1500, 800)); y[7, 7] = 1e300; v = np.arange(800.0) * 1e300; result = np.dot(y, v)
""")
ROUNDING = rows(r"""
np.allclose(a @ f.T, host.asarray(a) @ host.asarray(f).T)
np.allclose(np.linalg.inv(p[:3, :3] + np.eye(3)) @ (p[:3, :3] + np.eye(3)), np.eye(3))
np.allclose(np.linalg.solve(w.T @ w + np.eye(COLUMNS), b), host.linalg.solve(host.asarray(w.T @ w) + host.eye(COLUMNS), host.asarray(b)), atol=1e-6)
np.allclose(np.linalg.svd(w, compute_uv=False), host.linalg.svd(host.asarray(w), compute_uv=False))
np.allclose(np.linalg.eigvalsh(w.T @ w), host.linalg.eigvalsh(host.asarray(w.T @ w)), atol=1e-9)
np.linalg.qr(w)[0].shape, np.linalg.qr(w)[1].shape
np.allclose(np.linalg.cholesky(w.T @ w + np.eye(COLUMNS)), host.linalg.cholesky(host.asarray(w.T @ w) + host.eye(COLUMNS)))
np.allclose(np.linalg.det(w[:5, :5]), host.linalg.det(host.asarray(w)[:5, :5]))
np.allclose(np.linalg.pinv(w), host.linalg.pinv(host.asarray(w)), atol=1e-9)
np.allclose(np.linalg.lstsq(w, w[:, 0])[0], host.linalg.lstsq(host.asarray(w), host.asarray(w)[:, 0])[0], atol=1e-9)
np.allclose(np.fft.fft(w), host.fft.fft(host.asarray(w)))
np.allclose(np.fft.ifft2(np.fft.fft2(w)).real, w)
np.allclose(np.fft.rfft(w, axis=0), host.fft.rfft(host.asarray(w), axis=0))
np.allclose(np.cov(a[:4]), host.cov(host.asarray(a)[:4]))
np.allclose(np.corrcoef(w[:4]), host.corrcoef(host.asarray(w)[:4]))
np.allclose(w.ravel() @ w.T.ravel(), host.asarray(w).ravel() @ host.asarray(w).T.ravel(), rtol=1e-12, atol=1e-12)
np.allclose([np.dot(w.ravel(), w.ravel()), np.linalg.norm(w) ** 2], (host.asarray(w) ** 2).sum(), rtol=1e-14, atol=0)
np.fft.fftfreq(ROWS), np.fft.fftshift(k)
np.linalg.matrix_rank(p), np.linalg.slogdet(np.eye(3)), np.linalg.cond(np.eye(3))
np.allclose(np.polyfit(l[:9], l[:9] ** 2, 2), [1, 0, 0], atol=1e-6)
np.linalg.inv(np.zeros((3, 3)))
np.linalg.solve(np.zeros((2, 2)), [1, 2])
np.linalg.cholesky(-np.eye(3))
np.linalg.inv(a)
np.linalg.eigh(p)
""")


@pytest.mark.parametrize("text", EXACT)
def test_exact(text):
    check(text)


@pytest.mark.parametrize("text", ROUNDING)
def test_rounding(text):
    check(text)
