"""Views: every way to describe storage anew, and writes seen through all of them.

Promises: strides, flags and aliasing as NumPy's. Does not test advanced indexing.
"""
import pytest

from tests.numpy.oracle import check, rows

VIEWS = rows(r"""
a[1:-1]
a[::-1]
a[:, ::-2]
a[3]
a[-1, 2:]
a[..., None]
a[None, 2]
a[5:2]
a[2:2]
a[:, 3]
a.T
a.transpose(1, 0)
q.transpose(2, 0, 1)
q.swapaxes(0, 2)
np.moveaxis(q, 0, -1)
np.rollaxis(q, 2)
a.reshape(-1)
a.reshape(COLUMNS, ROWS)
a.reshape(-1, 2, COLUMNS // 2)
f.reshape(-1, order='F')
f.reshape(-1)
s.reshape(-1)
a.ravel()
f.ravel('K')
f.ravel()
a.flatten('F')
a.diagonal()
a.diagonal(2)
a.diagonal(-1, 1, 0)
q.diagonal(0, 0, 2)
np.flip(a)
np.flipud(a)
np.fliplr(a)
np.rot90(a)
c.real
c.imag
a.real
a.imag
a.view('i8')
a.view('u1')
u.view('i1')
c.view('f8')
b.view('i4')[::2]
h.view('u2')
s.view('f8')
a.view()
np.broadcast_to(b, (3, COLUMNS))
np.broadcast_to(z, (2, 2))
np.broadcast_to(a, (2, *a.shape)).astype('c16')
np.broadcast_to(a, (2, *a.shape)).copy('K')
np.broadcast_to(a[:, None], (ROWS, 3, COLUMNS)).copy('A')
np.broadcast_to(f[:, None], (ROWS, 3, COLUMNS)).astype('f4')
np.array(np.broadcast_to(f, (2, *f.shape)))
np.empty_like(np.broadcast_to(a, (2, *a.shape))).strides
np.zeros_like(a[::2, ::-1].T)
np.broadcast_to(host.arange(COLUMNS), (ROWS, COLUMNS)) * 2
np.broadcast_to(host.arange(COLUMNS), (ROWS, COLUMNS)) <= f
np.broadcast_to(host.arange(ROWS)[:, None], (ROWS, COLUMNS)) + a
np.expand_dims(a, (0, 2))
np.select([a[0, 4:0] > 1], [a[0, 4:0]], 3j)
np.where(a[0, 4:0] > 0, a[0, 4:0], b[4:0])
a[None].squeeze()
a[:, :1].squeeze(1)
np.atleast_1d(z)
np.atleast_2d(b)
np.atleast_3d(a)
np.lib.stride_tricks.sliding_window_view(a, (2, 3))
np.lib.stride_tricks.sliding_window_view(b, 4)[::2]
np.lib.stride_tricks.as_strided(b, (3, 4), (4, 8))
np.split(a[:4], 2)
np.array_split(a, 3)
np.hsplit(a, 2)
np.vsplit(a[:6], 3)
np.dsplit(q, 2)
np.broadcast_arrays(a, b)
np.matrix_transpose(q)
q.mT
a[()]
a[...]
z[()]
z[None]
a.strides, a.flags.c_contiguous, a.T.flags.f_contiguous, s.flags.contiguous
a.base is None, a[1:].base is a, a.T.base is a
np.shares_memory(a, a[::2]), np.may_share_memory(a[:2], a[3:])
np.shares_memory(a[::2], a[1::2])
a.flags.owndata, a[1:].flags.owndata
a.nbytes, a.itemsize, a.ndim, a.size
list(a.flat)[:5], a.flat[3], a.flat[2:5]
list(a.T.flat)[:7]
a.flat[5:-3:4], a.flat[::-2], a.T.flat[1::ROWS + 1], s.flat[2:9], a.flat[3:3], a.flat[[1, 4]]
len(a.flat), a.flat.coords, a.flat.index, a.flat.base is a, isinstance(a.flat, np.flatiter), a.flat.copy()
np.asarray(a.flat), a.flat == 3, a.flat[-1], a.flat[ROWS * COLUMNS - 1]
it = a.flat; result = [next(it), next(it), it.index, it.coords, it[7], next(it)]
a.flat[ROWS * COLUMNS]
a.flat + 1
np.trace(a), a.trace(2), i.trace(-1), u.trace(dtype='u1'), q.trace(1, 2, 0), m.trace(), np.trace(f.T)
iter(a).__next__()
len(a), len(a[1])
a.getfield('f4')
a.byteswap()
np.unstack(q)
np.permute_dims(q, (2, 1, 0))
q[1, ::-1, 2]
q[:, 3, :]
q[..., ::-1, 0]
""")
WRITES = rows(r"""
a[1:-1] = 7
a[::2, ::-3] += 0.5
a.T[1:3] *= 2
a.reshape(-1)[: COLUMNS + 2] = -1
a.ravel()[-1] = 7
np.fill_diagonal(a[1:, 1:], 9)
np.fill_diagonal(a[-3:, 0:5:-1], 3)
a[:0].flat[:] = 3
a[..., None][2, 3, 0] = 11
v = np.flip(a, axis=1); v[0, 0] = 13
v = a[2:-1, 1:-2][::2, ::2]; v -= v[::-1, ::-1]
a[:, 0], a[:, 1] = a[:, 1].copy(), a[:, 0].copy()
a[1:] = a[:-1]
a[:-1] = a[1:]
a[:-1, 1:] += a[1:, :-1]
a.flat[3] = 17
a.flat[::2] = 1
a.flat[1::COLUMNS + 1] = 8
a.flat[: COLUMNS * COLUMNS : COLUMNS + 1] = l
a.T.flat[:: ROWS + 1] = 8
f.flat[2:] = a.flat[2:]
s.flat[1::2] = 3
a.flat[::-3] = 2
a.flat[3:7] = [1, 2]
a.flat[3:7] = a[0]
a.flat[:] = i
a.flat = b
a.flat[...] = a.T.copy()
u.flat[::3] = 300
i.flat[5:9] = 3.7
a.flat[0] = [1, 2]
a.setflags(write=False); a.flat[::2] = 1
np.fill_diagonal(a, l); np.fill_diagonal(f, [1, 2, 3], wrap=True)
a.trace(out=z)
a.flat = 5
c.imag[...] = 2; c.real[0] = a[1]
c.real = a
a.shape = (COLUMNS, ROWS); result = a
v = a * 2; g = v[::2]; v.resize(COLUMNS, ROWS); v += 1; result = v, g
v = a.ravel() * 2; g = v[1::3]; v.resize((ROWS, COLUMNS), refcheck=False); v += 1; result = v, g
v = a * 2; g = v[1]; v.resize(ROWS, COLUMNS); g[0] = 7; result = v, g
a.shape = (-1,); a[3] = 5
a.view('u1')[:, ::8] = 1
b.view('i4')[2] = 0
v = a[3]; v[:] = b
a[2:4] = a[4:6] + a[6:8]
a[0] = a[:, 0][:COLUMNS]
a[:] = a[::-1]
a[::-1] = a
q[...] = q[::-1]
q[0] += q[1]
p[:] = p.T[:3, :1]
v = a.diagonal(); v[0] = 1
v = np.broadcast_to(b, (2, COLUMNS)); v[0] = 1
np.swapaxes(a, 0, 1)[0] = 3
v = a[:, ::2]; a[:] = 1; result = v
v = a[1]; w = v[2:4]; a += 1; w *= 2; result = v
v = a.T; a[0, 1] = 77; result = v[1, 0]
a[0:0] = 5
a[3] = 2; a[3, 4] = 5; result = a[3, 4]
a[1] = [1] * COLUMNS
a[:, 1] = range(ROWS)
z[()] = 4
z[...] += 1
a[-1] = a[0]
u[1:] = u[:-1] + u[1:]
a.setflags(write=False); a[0] = 1
v = a.copy(); v.resize((2, 2), refcheck=False); result = v
i[::2] = abs(a[::2])
i[0] = c[0]
m[1] = 5
t[0] = 3
d[0] = '2020-01-01'
a[0] = '3.5'
a[0, 0] = None
a[0] = host.ones(COLUMNS)
""")


@pytest.mark.parametrize("text", VIEWS)
def test_views(text):
    check(text)


@pytest.mark.parametrize("text", WRITES)
def test_writes(text):
    check(text)
