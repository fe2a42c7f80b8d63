"""Functions of NumPy whose result is made in strips: correlations, sums of products, repetition, partitions.

Promises NumPy's bits, orders and errors wherever the strips begin and end. Does not time.
"""
import pytest

from tests.numpy.oracle import check, rows

SETUP = """
g = np.array(host.random.default_rng(9).normal(size=ROWS * COLUMNS * 9))
r = np.array(host.random.default_rng(10).normal(size=(ROWS * 3, COLUMNS, 3)))
o = host.random.default_rng(11).integers(-COLUMNS, COLUMNS, 40)
y = np.array(host.random.default_rng(12).integers(0, 4, size=ROWS * COLUMNS * 9))
"""

TEXTS = rows(r"""
[np.convolve(g, l[:n], mode) for n in (1, 2, 5, 11, 12, COLUMNS) for mode in ('full', 'same', 'valid')]
[np.correlate(g, l[:n], mode) for n in (1, 4, 11, 13) for mode in ('full', 'same', 'valid')], np.correlate(l, g, 'full')
np.convolve(l, g), np.convolve(g.astype('f4'), l), np.convolve(g, b), np.convolve(y, [1, 2, 1]), np.convolve(g[::-2], l[:4], 'same')
np.convolve(c.ravel(), l[:3]), np.correlate(g, c[0]), np.convolve(m.ravel(), m[0]), np.convolve(h.ravel(), h[0])
np.convolve(g, [])
np.convolve(g, l[:3], 'other')
np.convolve(w, l[:3])
np.einsum('ij,ij->i', w, a), np.einsum('ij->i', w), np.einsum('ij,jk->ik', w, a.T), np.einsum('ij,j->i', w, l), np.einsum('ij,ij->ij', w, a)
np.einsum('ij->j', w), np.einsum('ij->ji', w), np.einsum('ij,ij', w, w), np.einsum('ij,ij->j', w, a), np.einsum('ij,kj->ki', w, a)
np.einsum('ijk->ik', r), np.einsum('ijk,k->ij', r, r[0, 0]), np.einsum('ijk,ijl->ikl', r, r), np.einsum('ijk,ijk->k', r, r), np.einsum('bij,bkj->bik', r, r)
np.einsum('i,j->ij', g[:ROWS], l), np.einsum('ij, jk', w, a.T), np.einsum('...j,j', w, l), np.einsum('ii->i', a[:14, :14]), np.einsum(w, [0, 1], [0])
np.einsum('ij,ij->i', f, f), np.einsum('ij,ij->i', c, c), np.einsum('ij,ij->i', i, i), np.einsum('ij,ij->i', w, i)
np.einsum('ij,ij->i', w[::-1], w[:, ::-1]), np.einsum('ij,ij->i', w, a, dtype='f4', casting='unsafe'), np.einsum('ij,ij->i', w, a, optimize=True)
np.einsum('ij,ij->i', w, a, out=np.zeros(ROWS))
np.einsum('ij,jk->ik', w, a)
np.einsum('bij,bij->b', r, r), np.einsum('bij,bkj->b', r, r[:, :9]), np.einsum('bij,kj->bki', r, r[0]), np.einsum('bij,i,j->b', r, l, r[0, 0]), np.einsum('bij,jb->bi', r, r[:, 0].T)
np.einsum('ij->j', w), np.einsum('ij->j', i), np.einsum('ijk->k', r), np.einsum('ijk->jk', r), np.einsum('ij->j', -0.0 * abs(w)), np.einsum('ij->j', h), np.einsum('ij->j', j), np.einsum('ij->j', m), np.einsum('ijk->kj', r)
np.einsum('bij,bjk->bik', r[:6], r[:6].swapaxes(1, 2)), np.einsum('bij,jk->bik', r[:5], f[:3].T[:3, :3]), np.einsum('bij,ji->b', r, r[0].T), np.einsum('bi,ij->bj', w[:, :9], w[:9]), np.einsum('ij,jk->ik', w[:3], w.T), np.einsum('bij,bij->b', r[:7], r[:7])
np.einsum('bij->b', r), np.einsum('bij->bj', r), np.einsum('bij,bij->bji', r, r), np.einsum('ij,ij->i', r[:, 1], r[:, 1]), np.einsum('ij,ij->i', w[1:], a[1:]), np.einsum('ij,ij->i', w[:20], a[:20])
np.einsum('ij,jk->ik', w[3:], a[:14, :9].T if a.shape[1] == 14 else a[:154, :9].T), np.einsum('ij,ij->i', b.reshape(-1, 2), b.reshape(-1, 2)), np.einsum('ij->', w), np.einsum('ij,ij', w, a)
np.interp(g, l[:9], l[:9] ** 2), np.interp(g[::-2], y[:9].cumsum(), l[:9], -1, 3.5), np.interp(w, l[:5], l[:5], period=2), np.interp(f, l[:9], c[0, :9]), np.interp(i, l, l)
np.interp(g, [], [])
np.interp(g, l, l[1:])
np.interp(c, l, l)
np.repeat(w[2:], k[2:] % 3, 0), np.repeat(w.T, abs(i[0]) % 4, 0), np.repeat(g[::-1], y), np.repeat(r, y[:ROWS * 3], 0)[:, 1], np.repeat(c.ravel(), y[:ROWS * COLUMNS]), np.repeat(d[:, 0], k % 4)
np.convolve(g[5:], l[:7]), np.correlate(g[::3], l[:7], 'same'), np.convolve(g, l[:40 % COLUMNS + 1]), np.convolve(w[1], l[:3]), np.correlate(y, y[:6], 'full')
np.repeat(w, 3), np.repeat(w, 2, 0), np.repeat(w, 2, axis=1), r.repeat(3, 1), np.repeat(f, 2), np.repeat(s, 2, 1), np.repeat(u, 4, -1), np.repeat(w, host.int64(2))
np.repeat(g, y), np.repeat(r, y[:ROWS * 3], axis=0), np.repeat(w, [2]), np.repeat(w, 0), np.repeat(w, 1), np.repeat(w, list(range(COLUMNS)), 1), np.repeat(w, k % 3, 0)
np.repeat(w, 2).flags.owndata, np.repeat(w, -1, 5)
np.repeat(g, y - 1)
np.repeat(g, y[:5])
np.repeat(w, 2.5)
np.repeat(d, 2, 0), np.repeat(m, 3), np.repeat(e, 2, 1), np.repeat(z, 3), np.repeat(t, 2, 1)
np.partition(w, 3), np.partition(w, (2, 7), axis=1), np.argpartition(w, 4), np.argpartition(w, [1, 5], -1), np.argpartition(r, 5, axis=1), np.argpartition(i, 6)
y = np.array(w)\ny.partition(3)\nresult = y
y = np.array(w)\ny.partition(3, 0)\nresult = y
np.argpartition(w, COLUMNS)
np.partition(w, COLUMNS + 1, 1)
np.argpartition(n, 3), np.partition(n, 3), np.argpartition(c, 2), np.argpartition(w, 3, kind='introselect'), np.argpartition(w.T, 3)
np.lexsort((g, y)), np.lexsort((y,)), np.lexsort([y, y % 2, g]), np.lexsort((g, y), axis=0), np.lexsort((w[0], i[0])), np.lexsort(w), np.lexsort((n.ravel(), x.ravel()))
np.lexsort((g, y[:3]))
np.histogram(g, 9, weights=y), np.histogram(g, 9, weights=abs(g), density=True), np.histogram(w, [-2, -1, 0, 3]), np.histogram(y, [0, 1, 3], density=True)
np.histogram(g, 7, (-1, 1), weights=g), np.histogram(y, 3, weights=g), np.histogram(g, 'auto'), np.histogram(g, 5, weights=g + 1j)
np.histogram(g, 12, weights=g.astype('f4')), np.histogram(g, 12, (-1, 2), weights=y.astype('i2')), np.histogram(y, [0, 1, 3]), np.histogram(g, np.linspace(-2, 2, 9)), np.histogram(y, np.array([0, 1.5, 3]))
np.histogram(np.resize(g, 200001), 7, weights=np.resize(w, 200001)), np.histogram(np.resize(g, 196608), 70, (-2, 1), weights=np.resize(abs(g).astype('f4'), 196608)), np.histogram(np.repeat(g, 3), 9, weights=np.repeat(y, 3))
np.histogram(n, [-2, 0, 0, 1, 1]), np.histogram(x, [-2.0, -0.0, 1, np.inf]), np.histogram(b, [0, 1, 2]), np.histogram(i, [-2**63, 0, 2**63 - 1]), np.histogram(g, [0, 1], weights=y), np.histogram(y, 3, weights=h.ravel()[:1])
np.histogram(u, 6, weights=w), np.histogram(j, [1, 5, 100]), np.histogram(w, 5, weights=f), np.histogram(w, 5, weights=m), np.histogram2d(g, y, 5, weights=g), np.histogram(g, 3, (1, 1), weights=g)
np.histogram(g, [3, 2, 1])
np.histogram(n, 5, weights=w)
np.histogram(g, 5, weights=g[1:])
np.argmax(w, 0), w.argmin(0), r.argmax(1), r.argmax(0), np.argmin(r, axis=-2), f.argmax(1), w.T.argmax(1), n.argmax(0), np.argmax(w, 0, keepdims=True), i.argmax(axis=0)
y = np.empty_like(w)\ny[:, 1:] = w[:, :-1]\ny[:, 0] = w[:, -1]\nresult = y
np.roll(g, 1), np.roll(w, 1, 1), np.roll(w, -1, 1), np.roll(r, (1, 2), (0, 1)), np.roll(u, 3, 1), np.roll(g.astype('f4'), 1), np.roll(c, 1, 0)
""")


@pytest.mark.parametrize("text", TEXTS)
def test_strips(text):
    check(text, SETUP, warned=True)
