"""What refuses: NumPy's exception classes and texts, raised at the line, with operands unharmed.

Promises: the same text. Does not test memory limits.
"""
import pytest

from tests.numpy.oracle import check, rows

ERRORS = rows(r"""
a + np.ones(COLUMNS + 1)
a + 'x'
a + None
a @ a
a[ROWS]
a[0, COLUMNS]
a[-ROWS - 1]
a[0, 0, 0]
a['x']
a[1.5]
a[None, None, 0, 0, 0]
a[[ROWS]]
a[[0, 1], [0, 1, 2]]
a[m[:, :3]]
a[np.ones(3, bool)]
a.reshape(7, 11, 13)
a.reshape(-1, -1)
a.reshape(0)
a.sum(axis=2)
a.sum(axis=(0, 2))
a.sum(axis=(0, 0))
a.sum(axis='x')
a.transpose(0)
a.transpose(0, 0)
a.swapaxes(0, 5)
np.moveaxis(a, 0, 7)
a.astype('nope')
a.astype('i4', casting='safe')
np.add(a, 1, out=i)
np.add(a, 1, out=np.empty(3))
np.add(a, 1, dtype='i4')
np.add(a)
np.add(a, 1, 2, 3)
np.add(a, 1, axis=0)
np.add(a, 1, where=3.5)
i ** -1
m - m
-m
~a
a & 1
a << 1
u + 300
u + -1
j * 1000
np.concatenate([a, q])
np.concatenate([a, a], axis=3)
np.concatenate(a[0, 0])
np.stack([a, b])
np.vstack([a, k])
np.split(a, 5)
np.where(m, a)
a[...] = np.ones(3)
a[0] = [1, 2]
v = host.zeros(3, 'i8'); v[0] = a
i[:] = np.float64(np.inf)
i[1:] = np.float32(np.nan)
i[...] = np.float64(1e30)
j[:] = np.float64(-129.5)
j[:] = np.float64(-128.5); result = j
i.fill(np.float64(2.5e9)); result = i
u[:] = np.array(300.0)
i[:] = np.full((3, 4), np.nan).sum()
i[1, :] = a.max() * 1e30
j[:] = a.max() * 0 + 127.5; result = j
v = host.zeros((3, 4), 'u1'); v[0, 1] |= i
v = host.zeros(3); v[0] = a
result = int(a)
a[m] = [1, 2]
a.fill('x')
a.shape = (3, 3)
a.dtype = 'f3'
a.view('i3')
a[:, ::2].view('c16')
a.T.view('f4')
a.item()
a.item(ROWS * COLUMNS)
float(a)
int(a)
bool(a)
len(z)
hash(a)
result = 1 if a else 2
a < 'x'
np.dot(a, a)
np.inner(a, i.T)
np.einsum('ij,jk', a, a)
np.take(a, 9999999)
np.put(a, 9999999, 1)
np.choose([5], [a])
a.argmax(5)
e.argmax(0)
e.max()
np.maximum.reduce(e)
np.add.reduce(a, axis=3)
np.cumsum(a, axis=4)
np.sort(a, axis=3)
np.linspace(0, 1, -1)
np.full(3)
np.eye(-1)
np.broadcast_to(a, (3, 3))
np.expand_dims(a, 5)
np.squeeze(a, 0)
np.lib.stride_tricks.sliding_window_view(a, 9999)
np.diag(q)
np.bincount(k)
np.bincount(a)
np.histogram(a, -1)
np.interp(1, [1, 2], [1])
np.searchsorted(a, 1)
np.clip(a)
np.round(a, 'x')
a.nosuch
np.nosuch
a.setflags(write=False); a += 1
a.setflags(write=False); a[0] = 1
a.flags.writeable = False; a.fill(1)
v = np.broadcast_to(b, (2, COLUMNS)); v += 1
np.copyto(a, np.ones(3))
np.copyto(i, a)
a += np.ones((2, ROWS, COLUMNS))
i += 0.5
i /= 2
a %= 1j
t + d + d
t * t
d * 2
np.frexp(c)
np.floor(c)
np.random.default_rng(1).integers(5, 2, ROWS)
np.random.rand(-1)
np.load('/nonexistent.npy')
np.array(a, copy=False, dtype='f4')
a.resize(3)
a.partition(9999)
a.sort(order='x')
np.repeat(k, [1, 2])
np.tile(a, 'x')
np.pad(a, -1)
np.roll(a, 1, axis=5)
np.rot90(b)
np.trace(b)
np.percentile(a, 150)
np.average(a, weights=[1])
""")


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    check(text)
