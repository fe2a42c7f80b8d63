"""Making arrays: by shape, by value, by range, by function, from others, random streams; joining and repeating.

Promises: dtype, order and bits as NumPy's, and the generator moves on as NumPy's. Uninitialised values are never compared.
"""
import pytest

from tests.numpy.oracle import check, rows

CREATION = rows(r"""
np.zeros((ROWS, 3))
np.zeros(ROWS, 'i4')
np.ones((2, ROWS), order='F')
np.full((ROWS, 2), 7)
np.zeros_like(f, shape=(3, ROWS, 5)), np.ones_like(f, shape=(COLUMNS, ROWS)), np.full_like(f, 2, shape=(ROWS,)), np.zeros_like(f, shape=(3, ROWS, 5), order='A')
np.zeros_like(q.T, shape=(ROWS, 5, 1, 2)), np.zeros_like(q.T, shape=(5, ROWS, 3)), np.zeros_like(q.transpose(0, 2, 1), shape=(5, ROWS))
np.empty((3037000500, 3037000500), 'i1')
np.ones((2 ** 61, 2), 'i8')
v = np.empty_like(c); result = c.conj(v) is v, c.conjugate(v), v, a.conj(np.zeros_like(c))
np.float16(f)
np.float64(f), np.float64(f[::2]), np.int32(f[:, ::-1])
np.complex64(f.T), np.bool_(q.transpose(1, 0, 2)), np.longdouble(f)
np.mean(np.asfortranarray(h), 1), np.mean(np.array(q, 'f2', order='F'), 2), np.median(np.array(q, 'f2', order='F'), 0)
h.__array__('f4'), f.__array__('f2'), f.__array__(np.dtype('f4'), copy=None)
np.full(ROWS, np.pi, 'f4')
np.full((2, COLUMNS), b)
np.empty((ROWS, 3)).shape
np.zeros(0)
np.zeros(())
np.zeros((3, 0, 2))
np.zeros(ROWS, dtype=[('a', 'i4'), ('b', 'f8')])
np.zeros(ROWS, 'O')
np.zeros(ROWS, 'S3')
np.zeros((-1, 2))
np.zeros('a')
np.zeros(3, 'nope')
np.arange(ROWS)
np.arange(1, ROWS, 0.5)
np.arange(ROWS, 0, -2)
np.arange(ROWS, dtype='f2')
np.arange(0, 1, 1 / 37)
np.arange(np.datetime64('2020-01-01'), np.datetime64('2020-02-01'))
np.arange()
np.arange(1, 2, 0)
np.linspace(0, 1, ROWS)
np.linspace(0, 1, ROWS, endpoint=False, dtype='f4')
np.linspace([0, 1], [2, 3], ROWS)
np.linspace(0, 1, 5, retstep=True)
np.linspace(1, 10, ROWS, dtype=int)
np.linspace(0, 1j, ROWS)
np.logspace(0, 3, ROWS)
np.geomspace(1, 1000, ROWS)
np.eye(ROWS)
np.eye(5, ROWS, 2, 'i2')
np.identity(7)
np.tri(ROWS, 4)
np.diag(b)
np.diagflat(k)
np.vander(b, 3)
np.indices((3, COLUMNS))
np.fromfunction(lambda y, x: y * 10 + x, (ROWS, 3))
np.fromiter((v * 2 for v in range(ROWS)), float)
np.frombuffer(bytes(ROWS * 8))
np.meshgrid(b, k)
np.meshgrid(b, k, indexing='ij', sparse=True)
np.mgrid[0:4, 0:3]
np.ogrid[0:4, 0:3]
np.r_[b, 1, 2]
np.c_[k, k]
np.array(a)
np.array(a, copy=None) is a
np.asarray(a) is a
np.array(a, dtype='f4', order='F')
np.array(a, ndmin=3)
np.array([a, a])
np.array([1, 2, 3])
np.array([[1, 2], [3]])
np.asanyarray(a) is a
np.ascontiguousarray(a.T)
np.asfortranarray(a)
np.require(a, 'f4', 'F')
np.copy(f)
np.copy(f, 'C')
a.copy()
f.copy('K')
a.T.copy('A')
np.zeros_like(a)
np.zeros_like(f)
np.ones_like(a.T)
np.full_like(a, 3, dtype='i4')
np.empty_like(s).strides
np.zeros_like(a, shape=(2, 3))
np.zeros_like(a, order='C')
np.concatenate([a, f])
np.concatenate([a, i], axis=1)
np.concatenate([a, b[None]], dtype='f4')
np.concatenate((k, k, k))
np.concatenate([a, b])
np.concatenate([])
np.concatenate([a, a], axis=None)
np.concatenate([a, a], out=np.empty((2 * ROWS, COLUMNS)))
np.stack([a, f])
np.stack([a, f], -1)
np.vstack([a, b])
np.hstack([a, i])
np.dstack([a, a])
np.column_stack([k, k])
np.block([[a, a], [a, a]])
np.tile(b, 3)
np.tile(a, (2, 1))
np.repeat(a, 2)
np.repeat(a, 2, axis=1)
np.repeat(k, abs(k))
np.roll(a, 3)
np.roll(a, (1, 2), (0, 1))
np.pad(a, 1)
np.pad(a, ((1, 2), (0, 1)), 'edge')
np.pad(b, 3, 'reflect')
np.pad(b, 2, constant_values=9)
np.pad(a, 1, 'wrap')
np.append(b, 1)
np.insert(b, 2, 5)
np.insert(a, 1, 0, axis=1)
np.delete(a, [0, 2], 0)
np.resize(b, (3, 5))
np.kron(p, p)
np.outer(b, k)
np.cross(a[:, :3], i[:, :3])
np.packbits(m)
np.unpackbits(u)
np.apply_along_axis(lambda v: v.sum(), 1, a)
np.apply_over_axes(np.sum, q, (0, 2))
np.nditer(p).shape
[int(v) for v in np.nditer(k)][:3]
list(np.ndenumerate(p))[:2]
np.array(a.tolist())
np.array(memoryview(a))
np.from_dlpack(a)
np.array(list(a))
np.asarray(a, dtype='f4')
np.array(b, dtype=object).dtype
a.tobytes() == host.asarray(a).tobytes()
np.fromstring('1 2 3', sep=' ')
np.loadtxt(['1 2', '3 4'])
np.genfromtxt(['1,2', '3,4'], delimiter=',')
np.polyval([1, 2, 3], a)
np.poly1d([1, 2])(b)
str(a), repr(b)
np.array2string(k)
np.array_str(p)
np.bartlett(ROWS)
np.hanning(ROWS)
np.kaiser(ROWS, 3.0)
np.i0(b)
""")
STREAMS = rows(r"""
np.random.seed(3); result = np.random.rand(ROWS, 3), np.random.randn(ROWS), np.random.randint(0, 9, ROWS)
v = np.concatenate([a, a]); result = np.random.SeedSequence(list(range(ROWS * COLUMNS))).generate_state(4)
v = np.concat([a, a]); g = np.random.default_rng(5); result = g.random(), v; del g
g = np.random.default_rng(7); result = g.random(ROWS), g.random((ROWS, 4)), g.random(); del g
g = np.random.default_rng(7); result = g.standard_normal(ROWS), g.integers(0, 100, ROWS), g.normal(3, 2, (ROWS, 2)), g.random(); del g
g = np.random.default_rng(7); result = g.uniform(1, 2, ROWS), g.exponential(2, ROWS), g.random(ROWS, dtype='f4'), g.random(); del g
g = np.random.default_rng(7); result = g.integers(0, 5, ROWS, dtype='u1'), g.integers(2**40, size=ROWS), g.random(); del g
g = np.random.default_rng(7); result = g.integers(-3, 3, endpoint=True, size=ROWS), g.permutation(ROWS), g.choice(9, ROWS), g.random(); del g
g = np.random.default_rng(7); result = g.permuted(k), g.random(); del g
g = np.random.default_rng(7); v = np.arange(ROWS); g.shuffle(v); result = v, g.random(); del g
g = np.random.default_rng(7); g.shuffle(a); result = g.random(); del g
g = np.random.default_rng(7); v = np.zeros(ROWS); g.random(out=v); result = v, g.random(); del g
g = np.random.default_rng(7); result = g.poisson(3, ROWS), g.gamma(2, 1, ROWS), g.beta(1, 2, ROWS), g.binomial(5, 0.5, ROWS), g.random(); del g
g = np.random.Generator(np.random.MT19937(1)); result = g.random(ROWS), g.normal(size=ROWS), g.random(); del g
g = np.random.Generator(np.random.Philox(1)); result = g.random(ROWS), g.random(); del g
g = np.random.Generator(np.random.SFC64(1)); result = g.random(ROWS), g.random(); del g
g = np.random.RandomState(5); result = g.rand(ROWS), g.normal(size=ROWS), g.uniform(size=3), g.standard_normal(ROWS), g.random_sample(); del g
np.random.seed(1); result = np.random.uniform(-1, 1, ROWS), np.random.permutation(ROWS), np.random.choice(5, ROWS), np.random.random()
np.random.seed(1); result = np.random.randn(ROWS + 1), np.random.randn(3), np.random.get_state()[2]
g = np.random.default_rng(7); result = g.spawn(2)[1].random(ROWS), g.bit_generator.state['state']['state']; del g
g = np.random.default_rng(7); g.bit_generator.advance(5); result = g.random(ROWS); del g
g = np.random.default_rng(7); result = g.random(ROWS * COLUMNS).reshape(ROWS, COLUMNS) + a; del g
""")


@pytest.mark.parametrize("text", CREATION)
def test_creation(text):
    check(text)


@pytest.mark.parametrize("text", STREAMS)
def test_streams(text):
    check(text)
