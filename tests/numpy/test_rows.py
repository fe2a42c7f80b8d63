"""Rows and elements of arrays that were waited for: reads, writes, operators and ufuncs on them, between large operations.

Promises: a row made before, between and after large operations on its array shows and changes the same elements as NumPy's, whoever
wrote last. Does not test what keys mean (test_indexing) or that anything is fast.
"""
import pytest

from tests.numpy.oracle import check, rows

# Everything has been looked at, so that it is resident, and once more by an element, so that its memory is known.
LOOKED_AT = "\n[(y.sum(), y.ravel()[0], y[(0,) * y.ndim]) for y in (a, i, j, u, c, f, m, w, q, l)]\n"

READS = rows(r"""
a[3]
a[-1]
a[:, 2]
a[3, 1:-1]
a[3, ::-2]
a[3, None]
a[..., 1]
a[3, 2, ...]
a[3, 2]
a[-1, -2]
a[3][2]
a[True, 3]
a[np.int64(3)]
a[np.int64(3), np.int8(2)]
a[ROWS]
a[-ROWS - 1]
a[0, COLUMNS]
a[10**30, 0]
a[1, 2, 3]
a[1.0]
a['x']
a[3, 2.0]
i[2, 3], j[2, 3], u[2, 3], c[2, 3], m[2, 3], f[2, 3]
type(a[3, 2]), type(i[3, 2]), type(m[3, 2])
q[1, 2], q[1, 2, 3], q[1][2][3]
[float(x) for x in a[2]]
[x.sum() for x in a[:4]]
a[3].base is a, a[3][1:].base is a
a[3].flags.c_contiguous, a[:, 3].flags.c_contiguous, a[3].flags.owndata, a[:, 3].strides
a[3].T.shape, a[3].reshape(-1, 2).shape, a[3].view('i8')[:3]
len(a[3]), a[3].dtype, a[3].ndim
""")

WORK = rows(r"""
a[3] * 2.0
2.0 * a[3]
a[3] + a[4]
round(float(a[3] @ a[4]), 9)
round(float(a[:, 1] @ a[:, 2]), 9)
np.float64(2) * a[3]
np.arange(COLUMNS) - a[3]
a[3] - np.arange(COLUMNS)
a[3] / i[3]
i[3] // 2, i[3] % 3, j[3] << 1, u[3] >> 1, u[3] & 7, u[3] | 8, u[3] ^ 9
a[3] + [1] * COLUMNS
a[3] + a[3, :-1]
a[3] @ a[:, 3][:3]
a[:, :1] + a[3]
a[3, :, None] * a[4]
a[3, :, None] + a[:, 2]
a[3] + 'x'
np.sqrt(a[3] ** 2)
np.add(a[3], 1)
np.add(a[3], a[4])
np.negative(a[3])
np.maximum(a[3], 0.0)
np.exp(a[3], a[4])
np.exp(a[3], l)
np.exp(l, a[3])
np.multiply.outer(a[3, :3], a[4, :3])
round(float(np.dot(a[3], a[4])), 9)
a[3].sum(), a[3].max(), a[3].argmin(), a[3].any(), a[3].mean(), a[3].std(ddof=1), a[3].var(0), a[3].prod(-1)
a[:4].sum(0), a[:4].mean(axis=1), a[:4].min(1, keepdims=True), a[3].sum(axis=5)
a[3].sum(), type(a[3].sum()), a[3].sum(dtype='f4'), a[3].sum(keepdims=True), a[3].sum(initial=2)
a[3].tolist() == list(a[3]), a[3].item(2), a[3].round(1), a[3].cumsum(), a[:4].trace(), a[3].argsort(kind='stable')
a[3].max(wrong=1)
np.dot(a[3], a[3, :-1])
np.dot(a[3], i[4])
round(float(np.dot(a[3], np.ones(COLUMNS))), 9)
np.dot(a[3], 2)
np.dot(a[3:5], a[3])
a.sum() * np.arange(3.0), np.arange(3.0) * a.sum(), np.sqrt(abs(a.sum())), np.add(a.sum(), 1)
(a[3] > 0).sum(), np.isnan(a[3]).any()
np.arange(3.0) + a[3, :3]
j[3] + 300
-a[3], abs(a[3]), ~m[3]
divmod(a[3], 2), a[3] ** 2
""")

WRITES = rows(r"""
a[3] = 7
a[3] = a[4]
a[3] = i[4]
a[3] = l
a[3, 2] = 5
a[3, 2] = 2.5
i[3, 2] = 2.9
i[3, 2] = 2**80
i[3, 2] = a[0, 0]
i[3, 2] = i[0, 1]
i[3, 2] = np.int8(4)
j[3, 2] = 300
m[3, 2] = 3
a[3, 2] = 1j
a[3, 2] = 'x'
a[3, 2] = '1.5'
a[3, 2] = None
a[3, 2] = [1]
a[3, 2] = [1, 2]
a[3, 2] = a[3]
a[3] = a[:, 0]
a[3] = [1, 2]
a[3] = range(COLUMNS)
a[:, 2] = a[:, 3]
a[3, 1:] = a[3, :-1]
a[3, 1:] = a[3, ::-1][1:]
a[3] += 1
a[3] += a[4]
a[:, 2] -= a[:, 1] * a[0, 0]
a[3, 1:] *= a[3, :-1]
a[3, 1] += 2
a[3] += c[3]
i[3] += 1.5
i[3] //= 2
a[3] **= 2
v = a[3]\nv += 1
v = a[3]\nv[1] = 9
v = a[3]\na[3, 1] = 9\nresult = v[1]
v = a[3]\nv[...] = a[4]\nresult = a.sum()
a[3][1:][2] = 8
a.T[2] = 5
np.add(a[3], 1, a[4])
np.add(a[3], 1, out=a[4])
a[3] = q
a[ROWS] = 1
a[0, COLUMNS] = 1
del a[3]
for r in a: r += 1
for r in range(5): a[r] = a[r + 1] + a[r, 0]
""")

BETWEEN = rows(r"""
v = a[3]\na *= 2\nresult = v + 0
v = a[3]\na *= 2\nv += 1\na -= 1\nresult = v[2], v.sum()
v = a[3]\na[1:-1] = (a[2:] + a[:-2]) / 2\nv *= 2\na += 1\nresult = v * 1.0
v = a[3]\na[1:-1] = (a[2:] + a[:-2]) / 2\nx = v[1:]\na *= 3\nx += a[0, 0]\nresult = x[:2]
v = a[:, 3]\nw += a\na += w\nresult = round(float(v @ v), 9)
v = a[3]\na = a * 2\nresult = v + a[3]
v = a[3]\ndel a\nresult = v.sum()
v, y = a[3], a[3]\nv[:] = 1\na += y\nresult = y[0]
for r in range(3): a[r] = r; a += 1; i[r] = a[r]
v = a[3]\na.sort()\nresult = v[:3]
v = a[3]\na.fill(2)\nresult = v[1]
v = a[3]\nh = np.asarray(a)\na += 1\nv[0] = 5\nresult = h[3, 0], h[3, 1]
v = a[3]\ny = v.copy()\na *= 0\nresult = y
v = a[3]\ny = a.reshape(-1)[3 * COLUMNS:]\ny += 1\nresult = v
""")

FROZEN = rows(r"""
a.flags.writeable = False\na[3, 2] = 1
a.flags.writeable = False\na[3] = 1
a.flags.writeable = False\na[3] += 1
y = a.flags\na[3]\ny.writeable = False\na[3][1] = 7
a.setflags(write=False)\nv = a[3]\nv[1] = 2
v = a[3]\nv.flags.writeable = False\nv[1] = 2
v = a[3]\na.flags.writeable = False\nv[1] = 2
v = a[3]\nv.flags.writeable = False\nv += 2
np.broadcast_to(l, (ROWS, COLUMNS))[3, 2] = 1
v = a[3]\nv.shape = (-1, 2)\nv[0, 1] = 5\nresult = v
v = a[3]\nv.dtype = 'i8'\nresult = v[2]
""")

# What folds, moves and cuts middling arrays, some of it by NumPy's own code at once.
AT_ONCE = rows(r"""
np.roll(w, 3), np.roll(w, 1, 0), np.roll(w, (1, 2), (0, 1)), np.roll(f, 2).flags.f_contiguous
np.pad(w, 1), np.pad(i, ((1, 2), (0, 3)), mode='edge'), np.pad(f, 2, mode='wrap').strides
np.delete(w, 5), np.delete(w, [1, 2], axis=0), np.delete(f, 1, 1).strides
np.insert(w, 3, 1.5, axis=1), np.insert(i, 2, 7), np.append(w, 2.0), np.append(w, a, axis=0)
np.triu(w), np.tril(f, -1), np.tril(m)
np.trace(w), w.trace(1), np.trace(q), np.trace(f, axis1=1, axis2=0)
w.sum(), np.sum(i), np.sum(f), u.sum(), m.sum(), np.sum(w, keepdims=True), np.sum(j, dtype='f4'), w.sum(0), np.max(f, 1)
w.mean(), w.std(), w.var(ddof=1), np.var(i), np.median(w), np.average(w), np.ptp(w), w.max(), f.min(), np.nanmax(w), np.nanstd(f)
w.argmax(), np.argmin(f), w.any(), np.all(m), np.count_nonzero(m), type(w.sum()), type(m.any())
np.packbits(m), np.packbits(m, axis=0), np.unpackbits(u), np.take_along_axis(w, np.argsort(w, 1), 1)
np.array_equal(a, a), np.array_equal(a, w)
np.array_equal(w, i), np.array_equal(f, f), np.vdot(w, w), np.average(w, weights=np.abs(w)), np.average(w, 0, np.abs(w))
np.hstack([w, w]), np.vstack((w, i)), np.concatenate([w, f], 1).flags.c_contiguous, np.stack([w, w, w], 2), np.dstack((w, w)), np.column_stack([w, w])
np.concatenate([w] * 6), np.concatenate([w, 1.5 * w], axis=None), np.stack((m, m)), np.concatenate((w, w), dtype='f4', casting='same_kind')
np.clip(w, -1, 1), np.clip(w, w * 0, None), np.clip(i, 2, 3), np.round(w, 2), np.round(f, 1).flags.f_contiguous, np.diff(w), np.diff(f, axis=0), np.diff(w, n=2), np.ediff1d(w)
y = np.diff(w, n=0)\nresult = y is w, y
y = np.take(w, 3, 0)\ny[1] = 9\nresult = w, y, np.take(w, [1, 2]), np.take(w, [[0, 1]], 1), np.take(f, 2)
y = np.concatenate([w])\ny[0] = 3\nresult = w, y
np.fft.fft(w), np.fft.rfft(w, axis=0), np.fft.ifft2(w), np.fft.fftshift(w), np.fft.ifftshift(f, 0).flags.f_contiguous, np.fft.irfft(w, 8), np.fft.fft(u, 16, norm='ortho')
m.mean(), u.mean(), np.mean(m), np.mean(w > 0), np.mean(i > 2, axis=0), (w > 0).sum(), (w > 0).sum(0), (f > 0).sum(1), m.sum(dtype='f8'), np.sum(m, axis=1, dtype='d', initial=2.5)
np.argmin(w, 1), np.argmax(f, 0), np.argmin(i, 1), np.argmax(u, 0), np.argmin(np.where(m, np.nan, w), 1), np.argmax(np.where(w > 0, 0.0, -0.0), 1)
out = w + 1\nnp.concatenate([w, w], out=np.empty((2 * len(w), w.shape[1])))\nresult = np.clip(w, 0, 1, out), np.round(w, 1, out=out), out
np.concatenate([w, a[:, :3]])
np.take(w, 10 ** 9)
np.hstack([w, 'x'])
np.fft.fft(w, 0)
y = np.roll(w, 1)\ny[0] = 9\nw[1] = 3\nresult = w, y, y.flags.owndata, y.base is None
y = np.pad(w, 1)\ny += 1\nresult = y.sum(), y * 2
np.sum(w, axis=5)
np.roll(w, 'x')
np.pad(w, -1)
""")


@pytest.mark.parametrize("text", READS + WORK + WRITES + BETWEEN + FROZEN)
def test_looked_at(text):
    check(text, LOOKED_AT)


@pytest.mark.parametrize("text", WORK + WRITES + BETWEEN)
def test_not_looked_at(text):
    check(text)


@pytest.mark.parametrize("text", rows(r"""
a[3] / 0
a[3] / a[4, 0] * 1e308 * 1e308
np.log(a[3])
np.sqrt(a[3])
j[3] + a[3]
u[3] // 0
"""))
def test_warns(text):
    check(text, LOOKED_AT, warned=True)

FEW = rows(r"""
a[3][[1, 2, 1]], a[3, [0, -1]], a[[2, 0]], a[[2, 0], 1:4], a[[1, 2], [3, -4]], a[k % 3, 2], a[:, [1]], a[:3, [2, 1]], a[5][a[5] > 0], a[2, i[2] > 3]
a[[[1, 2], [3, 4]], 0], a[[1, 2], None, [0, 1]], a[[0], ...], a[3][l > 0.5], a[[True, False]]
a[3][[COLUMNS]]
a[[0, ROWS], 1]
a[3, [1.5]]
a[3][m[4]], f[[3, 1], 2], u[4][[5, 6]], q[[1, 2], 3], c[2][[0, 1]], a[[]], a[[], 1], a[i[:2, :3] % 5, 1]
a[3, [1, 2]] = 5\nresult = a.sum()
a[[1, 4]] = a[[4, 1]]\nresult = a * 2
a[3][[1, 2]] += 1\na[[5, 5], [1, 1]] += 1\nresult = a + 0
a[2, i[2] > 3] = l[i[2] > 3]\nresult = a.max()
b2 = a * 2\na[[1, 2], 0] = b2[:2, 0]\nresult = a - b2
a[3, [1, 2]] = [1, 2, 3]
a[[0, ROWS], 1] = 0
a[[1, 2]] = a[5] * 3\nresult = np.sqrt(abs(a))
y = a[4]\ny[[0, 1]] = 7\nresult = a[4] + y
y = a.T\ny[[0, 1], 2] = 7\nresult = a
np.sum(a[3]), np.mean(a[:, 2]), np.std(a[4]), np.max(a[3]), np.argmin(a[3]), np.linalg.norm(a[3]), np.median(a[2]), np.dot(a[3], l), np.any(m[3]), np.all(m[2])
np.sort(a[3]), np.argsort(a[3]), np.cumsum(a[3]), np.diff(a[3]), np.clip(a[3], -1, 1), np.round(a[3], 1), np.unique(i[3]), np.nonzero(m[3]), np.roll(a[3], 2), np.trace(a[:5, :5])
np.clip(a[3], 0, 1, out=a[4])\nresult = a.sum()
np.cumsum(a[3], 0, None, a[4])\nresult = a + 1
np.sum(a[:4], 0, None, a[4])\nresult = a + 1
np.dot(a[3], a[4], keep)
np.sum(a[3], axis=2)
np.sum(n[3]), np.nansum(n[3]), np.nanmax(n[3]), np.mean(c[3]), np.sum(np.full(3, np.inf) * 0 + a[3][:3])
np.interp(a[3], l, a[4]), np.searchsorted(l, a[3]), np.average(a[3], weights=l), np.percentile(a[3], [10, 50]), np.bincount(u[3]), np.trapezoid(a[3]), np.ptp(a[3]), np.prod(a[3]), np.count_nonzero(a[3])
""")


@pytest.mark.parametrize("text", FEW)
def test_few_elements(text):
    check(text, LOOKED_AT, warned=True)


@pytest.mark.parametrize("text", AT_ONCE)
def test_at_once(text):
    check(text, LOOKED_AT, warned=True)
