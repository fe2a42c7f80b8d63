"""Futures as scalars: everything a program may do with a NumPy scalar, and what NumPy's own functions do with one.

Promises: results, types and exceptions agree with NumPy's scalars; each text gets futures that nobody has looked at. Compiled code of
other libraries is in `test_exact_types`.
"""
import pytest

from tests.numpy.oracle import rows
from tests.numpy.test_futures import agree

LOOKS = rows(r"""
repr(F)
str(F)
repr(S)
repr(I)
repr(C)
f'{F:.3f} {I:d} {I:>12} {F!r} {S:g}'
'%d %5.2f %s' % (I, F, S)
'{:e}'.format(F)
format(F)
float(F)
int(F)
int(I)
complex(F)
complex(C)
float(C)
bool(F)
bool(Z)
not O
operator.index(I)
operator.index(F)
hash(F)
hash(I)
{F: 1}[float(F)]
{float(F): 1}[F]
F in {float(F)}
F == float(F)
F != 3
F < G
F >= 2
I == int(I)
I > 0
C == complex(C)
F == 'text'
F is None
0 < G < 1e300
math.sqrt(G)
math.floor(F)
math.ceil(F)
math.trunc(F)
math.trunc(S)
math.trunc(I)
math.isnan(N)
math.fsum([F, G])
math.gcd(I, 12)
math.copysign(1, F)
cmath.sqrt(C)
cmath.phase(F)
round(F)
round(F, 1)
round(I)
round(I, -1)
round(S, 2)
divmod(F, 3)
divmod(I, 7)
divmod(100, G)
divmod(F, G)
F ** 2
2 ** Z
F ** 0.5
I ** 2
G ** G
pow(I, 2, 5)
F // 3
F % 3
I // 7
I % 7
7 // G
I & 7
I | 8
I ^ 3
~I
I << 1
I >> 1
1 << K % 3
F & 1
~F
I + 1
1 - I
I * 2
I + I
I * 1.5
I + 2 ** 70
I / 2 ** 70
U + 1
C + 1
C * C
C / F
1j * F
-C
abs(C)
-I
abs(I)
H + 1
S + 1
S * 2.5
S * 1e300
S + 1j
F @ F
F + 'text'
'text' + F
[1, 2] * K
[1, 2] * F
'ab' * (K % 3)
F + None
F + fractions.Fraction(1, 3)
fractions.Fraction(1, 3) + F
fractions.Fraction(1, 3) + I
F * fractions.Fraction(1, 3)
F + decimal.Decimal(1)
decimal.Decimal(1) + F
fractions.Fraction(F)
F.item()
F.tolist()
F.dtype
F.shape
F.ndim
F.size
F.itemsize
F.nbytes
F.strides
F.T
F.real
F.imag
C.real
C.imag
F.conjugate()
F.astype(int)
F.astype('f4')
I.astype(float)
F.round(2)
F.sum()
F.mean()
F.max()
F.copy()
F.reshape(1, 1)
F.reshape(-1)
F.ravel()
F.flatten()
F.view('i8')
F.tobytes()
F.is_integer()
F.as_integer_ratio()
F.hex()
I.bit_count()
F.data.nbytes
F.flags.writeable
F.base
F[()]
F[...]
F[None]
F[0]
F.missing
F.missing = 1
len(F)
iter(F)
F()
list(F)
type(F).__name__
type(F) == np.float64
type(I) == np.int64
type(F)(2.5)
type(I)(3)
np.dtype(type(F))
F.__class__
isinstance(F, float)
isinstance(F, np.floating)
isinstance(F, np.generic)
isinstance(F, np.ndarray)
isinstance(F, numbers.Real)
isinstance(F, (int, str))
isinstance(I, numbers.Integral)
isinstance(I, np.integer)
isinstance(I, int)
isinstance(C, complex)
isinstance(S, float)
np.issubdtype(type(F), np.floating)
callable(F)
hasattr(F, '__len__')
hasattr(F, 'shape')
sorted(dir(F)) == sorted(dir(np.float64(1)))
np.isscalar(F)
np.ndim(F)
np.shape(F)
np.size(F)
np.iscomplexobj(C)
np.isrealobj(F)
np.result_type(F, np.float32)
np.result_type(S, 1.0)
np.can_cast(F, 'f4')
np.promote_types(F.dtype, 'c8')
np.asarray(F)
np.array(F)
np.array(F, 'f4')
np.array([F, G])
np.array([F, 1])
np.array([S, I])
np.array([[F], [G]])
np.array(F, ndmin=2)
np.asarray(F, copy=False)
np.asarray(F).flags.writeable
np.atleast_1d(F)
np.array(F, dtype=object)
np.array([F], dtype=object).astype(float)
np.float64(F)
np.float32(F)
np.int64(F)
np.complex128(F)
np.int32(I)
np.bool_(F)
np.maximum(F, 0)
np.exp(Z)
np.isnan(N)
np.isfinite(F)
np.floor_divide(I, 3)
np.power(G, 2)
np.add(F, p)
np.add(p, F)
p + F
F * p
p - I
p ** Z
p[K % 3]
p[K % 3, 1]
p[:K % 4]
p[F]
p.reshape(3, I % 5 * 0 + 4)
list(range(9))[K % 9]
list(range(9))[:K % 9]
list(range(9))[F]
'abcdef'[K % 6]
list(range(K % 9))
range(F)
[*itertools.islice(range(9), int(K) % 9)]
np.zeros(K % 5)
np.zeros((K % 5, 2))
np.ones(F)
np.full(3, F)
np.full((2, 2), I)
np.arange(K % 5)
np.arange(0, G, G / 4)
np.linspace(F, G, 5)
np.eye(K % 4)
np.sum(F)
np.mean(F)
np.round(F, 1)
np.clip(F, 0, 1)
np.clip(p, 1, G)
np.abs(F)
np.where(F > 0, 1, 2)
np.where(True, F, 0)
np.sort(np.array([G, F]))
np.dot(F, p)
np.dot(F, G)
np.outer(F, p)
np.linalg.norm(F)
np.allclose(F, float(F))
np.array_equal(F, float(F))
np.isclose(F, G)
np.nan_to_num(N)
np.angle(C)
np.real(C)
np.imag(F)
np.real_if_close(F)
np.interp(Z, [0, 1], [2, 3])
np.append(p, F)
np.concatenate([[F], [G]])
np.stack([F, G])
np.hstack([F, G])
np.histogram(p, bins=3, range=(0, G))[0]
np.array2string(F)
np.array_str(F)
np.format_float_positional(F)
np.format_float_scientific(F)
np.base_repr(K, 2)
np.copy(F)
np.add.reduce([F, G])
np.minimum.reduce([F, G])
np.add.accumulate([F, G])
np.add.outer(F, p)
np.polyval([F, 1], 2)
np.median(F)
np.percentile(F, 50)
np.unique(F)
np.nonzero(F)
np.argmax(F)
np.cumsum(F)
np.std(F)
np.var(F)
np.any(F)
np.all(Z)
np.take(p, K % 12)
np.expand_dims(F, 0)
np.broadcast_to(F, (2, 2))
np.vectorize(lambda v: v + 1)(F)
np.random.default_rng(K).integers(9)
np.random.default_rng(3).normal(F, 2.0)
np.testing.assert_equal(F, float(F))
np.testing.assert_allclose(F, float(F))
np.testing.assert_equal(F, 3)
sum([F, G])
sum([I, I], 5)
max(F, 0.0)
max(F, G)
min([F, G, 2])
sorted([G, F, Z])
sorted([I, K])
all([F, G])
any([Z, O])
list(map(float, [F, G]))
list(zip([F], [G]))
pickle.loads(pickle.dumps(F))
pickle.loads(pickle.dumps(I, 2))
pickle.loads(pickle.dumps({'x': [F, S, C]}))
copy.copy(F)
copy.deepcopy(F)
copy.deepcopy([F, {'a': I}])
memoryview(F).tobytes()
bytes(F)
bytes(K % 5)
bytearray(F)
struct.pack('d', F)
struct.pack('q', I)
struct.pack('f', S)
struct.pack('i', F)
array.array('d', [F, G])
array.array('q', [I])
statistics.mean([F, G])
statistics.median([F, G, Z])
random.Random(F).random()
random.Random(5).uniform(F, G)
random.Random(I).random()
chr(K % 100 + 40)
hex(I)
bin(I)
oct(I)
hex(F)
str(K).zfill(12)
int(str(I))
float(str(F)) == F
'x' if F > G else 'y'
F and G
Z or G
complex(F, G)
slice(K).indices(5)
divmod(F, p)
F < p
p < F
p == F
operator.add(F, 1)
operator.truediv(1, G)
operator.floordiv(F, 2)
(lambda v: v.__float__())(F)
F.__add__(1)
F.__radd__(1)
F.__mul__(p)
F.__eq__(float(F))
F.__bool__()
F.__format__('.2f')
F.__reduce__()[1][0]
getattr(F, 'dtype').name
eval('F + 1')
np.float64.__add__(F, 1) if False else F + 1
float.__add__(1.0, float(F))
""")


@pytest.mark.parametrize("text", LOOKS)
def test_passes_as_a_scalar(text):
    agree(text)
