"""Advanced indexing: reads, writes and in-place writes through numbers, masks and mixtures; take, put, choose and their kin.

Promises: duplicates resolve in NumPy's order; the place of the index's axes is NumPy's. Does not test basic slices.
"""
import pytest

from tests.numpy.oracle import check, rows

READS = rows(r"""
a[[0, 2, 1]]
a[[-1, 0]]
a[k]
a[k, abs(k)]
a[[[0, 1], [2, 3]]]
a[:, [1, 3]]
a[[1, 2], :3]
a[[0, 1], [2, 3]]
a[1, [2, 3]]
a[[1], 2]
a[m]
a[m[:, 0]]
a.T[m.T]
a[::2][m[::2]]
f[f > 0]
f[m]
q[q[:, :, 0] > 3]
a[host.arange(ROWS) % 3 == 0]
a[m & (i > 5)][3:]
m[m]
a[i > 1e9].sum()
a[:, m[0]]
a[m[:, 0], 1]
a[i % ROWS - 3]
a[::-1][k]
a[i % ROWS, abs(i) % COLUMNS]
a[i % ROWS, 2]
a.ravel()[i * 5 % (ROWS * COLUMNS)]
a.ravel()[::-2][i * 5 % (ROWS * COLUMNS // 2)]
a[i[:, 0] - i[:, 0] + host.arange(ROWS)[::-1], ...]
a[i]
a[i - 900]
a[i % ROWS, i]
q[i % 3, i % ROWS]
np.take(a, i % (ROWS * COLUMNS))
np.take(a, i % ROWS, axis=0)
np.take(a, i * 99, mode='wrap')
np.take(a, i * 99, mode='clip')
a.take(i * 99)
np.compress(m[:, 0], a, axis=0)
np.compress(m.ravel(), a)
np.extract(i, a)
np.nonzero(a)
np.nonzero(q > 3)
np.where(i > 5)
np.where(f > 0)
np.count_nonzero(a)
a[np.nonzero(m)]
a[np.where(i > 5)]
a[np.newaxis, [1, 2]]
q[[0, 1], :, [2, 3]]
q[:, [0, 1], [1, 2]]
q[0, :, [1, 2]]
q[[0], ..., 1]
q[..., [0, 3]]
q[q > 4]
q[:, q[0, :, 0] > 3]
a[np.ix_([0, 3], [1, 2, 4])]
a[[]]
a[np.zeros(0, int)]
a[np.array(2)]
a[np.int8(1)]
a[True]
a[False]
z[True]
a[a > 1e9]
a[i[:, 0] % ROWS]
a.T[[1, 0]]
f[[3, 1]]
s[[1, 0], ::2]
np.take(a, [0, 5, 1])
np.take(a, [1, 2], axis=1)
a.take(-1, axis=1), a.take(3, axis=0), np.take(f, 2, 1), q.take(1, 1), s.take(0, -1), a.ravel().take(-1, axis=0)
a.take(9999, axis=1)
a.take([[0, 1], [2, 3]], axis=0, mode='wrap')
a.take([99999], mode='clip')
np.take_along_axis(a, np.argsort(a, axis=1, kind='stable'), 1)
np.choose(i % 3, [a, i, 7])
np.choose(abs(k) % 2, [k, k * 10])
np.compress([True, False, True], a, axis=0)
np.extract(m, a)
np.where(m)
np.where(m, a, 0)
np.where(m, 1, 2)
np.nonzero(i)
a.nonzero()[1]
np.argwhere(m)
np.flatnonzero(m)
np.flatnonzero(m).flags.owndata
(a[5:5].base is a, a[:, :0].strides, m[3:3, 1:].flags.owndata)
host.ones((0, COLUMNS))[m[ROWS:]]
a[m[:0, 0].nonzero()]
np.select([m, a > 0], [a, i])
np.diag(a)
np.diag(b)
np.tril(a)
np.triu(a, 1)
np.tril_indices(4)
np.diag_indices(3)
np.unravel_index(abs(k), (2, 4))
np.ravel_multi_index(([1, 2], [3, 0]), (3, 4))
a[..., 0][k]
np.isin(i, [1, 2, 3])
a[(1, 2)]
a[[True] * ROWS]
a[np.array([1, 2], dtype='u1')]
a[k.argsort(kind='stable')]
u[j % ROWS % 23, 0]
np.array(['x', 'y', 'z'])[abs(k) % 3]
np.array([1, 2, 3], dtype=object)[abs(k) % 3]
np.arange(5.0)[i % 5]
host.arange(5.0)[i % 5]
host.arange(5.0)[m.any(0)[:5]]
""")
WRITES = rows(r"""
a[[0, 2]] = 5
a[k % ROWS] = np.asfortranarray(np.arange(k.size * COLUMNS).reshape(k.size, COLUMNS) * 1.0)
a[[0, 0, 1]] = [[1] * COLUMNS, [2] * COLUMNS, [3] * COLUMNS]
a[[0, 0, 1], [1, 1, 2]] += 1
a[m] = 0
a[m] += 10
a[m] = a[m] * 2
a[m] = np.arange(m.sum())
a[m[:, 0]] = 3
a[m[:, 0]] = b
a[i % ROWS, abs(i) % COLUMNS] = i
a[i % ROWS] = 7
a[abs(i[:, 0]) % 5] = a * 2
v = a.reshape(-1); v[i % 50] = i * 1.5; v[abs(i) % 7] += 1
v = a.reshape(-1)[::3]; v[abs(i[:, :3].ravel()) % 40] = 5
i[np.nonzero(m)] = 3
i[np.where(i > 3)] -= 3
i[k] = i[k][::-1]
k[k] = k * 2
a[i] = 3
a[[1, 2]] = 1j
i[[1, 2]] = n[1:3]
np.put(a, i % 90, i)
np.put(a, i % 90, 3)
np.put(a, i * 99, 3)
a[m[:, 0]] = a[m[:, 0]] + 1
a[::2][m[::2]] = 4
a[::2][m[::2]] = a[::2][m[::2]] * 2
a.T[m.T] = a.T[m.T] - 1
i[m] = a[m]
q[q[:, :, 0] > 3] = q[0, 0]
a[host.arange(ROWS) % 3 == 0] = -1
m[m & (i > 5)] = i[m & (i > 5)] > 20
a[m] = a[m] * a[m] + i[m]; m[0] = False; a[m] += 1; m[1, 1] = not m[1, 1]; result = a[m]
a[:, [1, 0]] = a[:, [0, 1]]
a[k] = np.arange(COLUMNS)
a[k, 0] += 1
a[a < 0] = 0
a[~m] *= -1
i[i > 5] = -1
c[m] = 1j
u[u > 100] -= 50
m[m] = False
a[np.ix_([0, 3], [1, 2])] = 9
q[:, [0, 1], 2] = 4
q[[0, 1], :, 1] = 4
np.put(a, [0, 5], [1, 2])
np.put(a, [-1], 3)
np.putmask(a, m, 5)
np.putmask(a, m, [1, 2, 3])
np.place(a, m, [1, 2])
np.copyto(a, 3, where=m)
np.copyto(a, b)
np.copyto(a, i, where=m)
np.put_along_axis(a, np.argmax(a, 1, keepdims=True), 99, 1)
np.add.at(a, [0, 0, 2], 1)
np.add.at(a, (k, abs(k)), 1.5)
np.maximum.at(i, [1, 1], 50)
np.add.at(k, abs(k), 1)
a[[0, 1]] += a[[1, 0]]
a[[5, 3]] = a[[3, 5]]
a[:, m[0]] = 0
a.flat[[0, 3]] = 8
a[m] = [1, 2]
a[[]] = 5
e[m[ROWS:]] = e[m[ROWS:]] + 1
a[:0] += m[ROWS:]
a[[0], [0]] = a[[1], [1]]
f[m] = 1
s[s > 0] = 0
a.T[[0, 1]] = 5
v = a[[0, 1]]; v += 1; result = v
k[k < 0] += len(k)
a[np.abs(a) > 2] = np.sign(a[np.abs(a) > 2])
a[i % 2 == 0], i[0] = 1, 2
np.fill_diagonal(a, [1, 2, 3])
np.fill_diagonal(i, 1, wrap=True)
x[np.isinf(x)] = 0
n[np.isnan(n)] = -1
""")


@pytest.mark.parametrize("text", READS)
def test_reads(text):
    check(text)


@pytest.mark.parametrize("text", WRITES)
def test_writes(text):
    check(text)
