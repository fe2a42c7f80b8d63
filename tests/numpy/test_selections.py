"""Elements read by a mask and assigned to it again in one statement (`z[m] = z[m] * 2`): what is then never picked out, and who looks at it.

Promises: values, errors and warnings are NumPy's whatever happens to the array, the mask and the selection in between. Does not count
launches (test_plans does).
"""
import pytest

from tests.numpy.oracle import check, rows

WRITES = rows(r"""
a[m] = a[m] * a[m] + w[m]
a[m] += 1
a[m] *= w[m]
a[m] = a[m]
a[m] = w[m]
a[m] = np.sqrt(np.abs(a[m])) * 2 - w[m]
i[m] += 1
i[m] //= 2
u[m] += 3
u[m] = -u[m]
h[m] = h[m] * 2
h[m] = np.exp(h[m])
h.T[m.T] = np.log(abs(h.T[m.T]))
j[m] = j[m] * 100
c[m] = c[m] * c[m] + c[m]
c[m] = a[m]
a[m] = i[m]
a[m] = a[m] > 0
i[m] = a[m] > 0
i[m] = a[m] * 2
i[m] += a[m]
u[m] = i[m]
a[m] = c[m]
b[m] = b[m]
f[m] = f[m] * 2 + a[m]
f[m] = a[m]
a[m] = f[m]
m = m.T; f.T[m] = f.T[m] + 1
m = m[::-2, 1::3]; s[m] = s[m] * 3
m = m[::-2, 1::3]; s[m] = np.exp(s[m]); s[m] += s[m]
m = m[:, 1:]; a[:, 1:][m] = a[:, :-1][m]
m = m[:, 1:]; a[:, 1:][m] += a[:, :-1][m]
a[m] = a[::-1][m]
a[m] = a[::-1][m] + a[m]
m = i == i; a[m] = np.log1p(abs(a[::-1, ::-1][m]))
m = i == i; a[m] = np.expm1(a.T.ravel()[::-1].reshape(a.shape)[m])
m = i == i; s[m[::-2, 1::3]] = np.tanh(s[m[::-2, 1::3]])
np.log1p(abs(a)[::-1, ::-1], out=a, where=m)
np.log1p(abs(a)[::-1, ::-1], out=a, where=i == i)
np.exp(a[:, ::-1], out=f, where=m)
m[m] = m[m]
m[m] = ~m[m]; a[m] = 0
m[m] = np.invert(m[m]); a[m] = 5; m[m] = a[m] > 5
d[m] = d[m] + t[m]
t[m] = t[m] * 2
t[m] += t[m]
m = i > 1e9; a[m] = a[m] * 2 + w[m]
m = i > -1e9; a[m] = a[m] * 2 + w[m]
m = i > 1e9; a[m] = np.log(a[m] * 0)
m = n == n; n[m] = np.sqrt(n[m] ** 2)
m = m[:, 0]; a[m] = a[m] * 2
m = m[:, 0]; k[m] = k[m] * 2 + 1
m = m[0]; a[:, m] = a[:, m] * 2
m = np.broadcast_to(m[0], a.shape); a[m] = a[m] * 2
m = np.broadcast_to(m[:, :1], a.shape); a[m] += w[m]
a[m] = a[m] ** 2
a[m] = 2 ** a[m]
a[m] = np.float32(3) * a[m]
j[m] = j[m] + 1000
u[m] = u[m] + np.int16(300)
a[m] = a[m] + z
a[m] = a[m] + np.array([1.5])
a[m] = a[m] * a.max()
a[m] = (a[m] + 1)[::-1]
a[m] = np.sort(a[m])
a[m] = a[m].sum()
a[m] = a[m] - a[m].mean()
a[m] = a[m] / len(a[m])
a[m] = np.where(a[m] > 0, a[m], 1)
a[m] = np.divmod(a[m], 2)[0] + np.divmod(a[m], 2)[1]
a[m], i[m] = np.modf(a[m])
a[m] = np.maximum(a[m], w[m]) if len(a[m]) else 0
a[m] = a[m].astype('f4')
a[m] = a[m].real + a[m].imag
a[m] = np.cumsum(a[m])
a[m] = np.round(a[m], 1)
a[m] = np.clip(a[m], -1, 1)
a[m] = a[m].clip(-1, 1)
a[m] = np.add(a[m], 1, dtype='f4')
a[m] = np.add(a[m], w[m], out=a[m])
a[m] = np.add(a[m], 1, where=a[m] > 0, out=a[m])
a[m] = 1 / a[m] if a[m].all() else 0
a[m] = a[m].reshape(-1, 1)[:, 0]
a[m] = list(a[m])
a[m] += a[~m]
a[m] = a[i > 4]
a[m] += a[:5][m[:5]]
a[m] += [1, 2]
a[m] += 'x'
i[m] += 1.5
i[m] /= 2
m[m] += a[m]
i[m] = i[m] @ i[m]
a[m] -= np.ones(3)
a.flags.writeable = False; a[m] = a[m] * 2
a.flags.writeable = False; a[m] += 1
m = m * 1; a[m] = a[m] * 2
m = host.asarray(m); a[m] = a[m] * 2
m = m.tolist(); a[m] = a[m] * 2
a = host.asarray(a); a[m] = a[m] * 2
a[m][0] = a[m][1]
""")

HELD = rows(r"""
a[m] = b = a[m]; result = b
a[m] = b = w[m]; w[1:] = 0; result = b
a[m] = b = w[m]; w += 1; a[m] = b; result = b
a[m] = b = w[m]; m[::2] = True; result = b + 1
a[m] = b = w[m]; m[0] = ~m[0]; a[m] = 3; result = b
a[m] = b = w[m]; m[0, 0] = not m[0, 0]; w[0, 0] = 55; result = b
a[m] = b = w[m]; host.asarray(m)[...] = True; result = b
a[m] = b = w[m]; host.asarray(w)[...] = 7; result = b
a[m] = b = w[m]; w.fill(2); result = b
a[m] = b = w[m]; w.sort(); result = b
a[m] = b = w[m]; w.resize(3, 4, refcheck=False); result = b
a[m] = b = w[m]; w.shape = (-1,); result = b
a[m] = b = w[m]; np.add(w, 1, out=w); result = b
a[m] = b = w[m]; np.cumsum(w, 0, out=w); result = b
a[m] = b = w[m]; np.copyto(w, 3); result = b
a[m] = b = w[m]; w[m] = 2; result = b
a[m] = b = w[m]; w[[0, 1]] = 2; result = b
a[m] = b = w[m]; np.random.default_rng(3).random(out=w); result = b
a[m] = b = w[m]; del w; result = b
a[m] = b = w[m] * 2; w[...] = 0; b += 1; result = b
a[m] = b = w[m] * 2; c = b; b += 1; result = c
a[m] = b = w[m] * 2; c = b; a[m] = b = b + 1; result = c, b
a[m] = b = w[m]; b *= 3; result = b, w
a[m] = b = w[m]; b[0] = 9; result = b, w
a[m] = b = w[m]; c = b[1:]; b += 1; result = c
a[m] = b = w[m]; b **= 2; result = b
i[m] = b = i[m]; b /= 2; result = b
i[m] = b = i[m]; b += 2.5; result = b
a[m] = b = a[m] / 2; m[...] = ~m; a[m] = 0; result = b
a[m] = b = w[m]; result = b.shape, b.size, b.ndim, b.dtype, len(b), b.strides, b.nbytes
a[m] = b = w[m]; result = b.flags.owndata, b.flags.c_contiguous, b.flags.writeable, b.base is None
a[m] = b = w[m] + 1; result = b.flags.owndata, b.flags.c_contiguous, b.flags.writeable, b.base is None
a[m] = b = w[m] + 1; result = float(b.sum()), float(b.max()), b.argmax()
a[m] = b = w[m]; result = [float(one) for one in b][:5]
a[m] = b = w[m]; result = str(b), repr(b + 1)
a[m] = b = w[m]; result = b == w[m]
a[m] = b = w[m]; result = (b == b).all(), bool((b * 2 == b + b).all())
a[m] = b = w[m]; import pickle; result = pickle.loads(pickle.dumps(b))
a[m] = b = w[m]; import copy; result = copy.copy(b), copy.deepcopy(b)
a[m] = b = w[m]; result = b[::2], b[3], b[b > 0], b[[0, 1]]
a[m] = b = w[m]; result = np.concatenate([b, b]), np.stack([b, b]), np.dot(b > 0, b > 0)
a[m] = b = w[m]; result = host.asarray(b).sum(), b.tolist()[:3], b.tobytes()[:9]
a[m] = b = w[m]; result = np.sum(b), np.mean(b), np.median(b), np.sort(b)
a[m] = b = w[m]; result = isinstance(b, np.ndarray), hasattr(b, 'shape'), np.shape(b), np.ndim(b)
a[m] = b = w[m]; result = b if len(b) else None
a[m] = b = w[m]; result = np.where(b > 0, b, -b)
m = i > 1e9; a[m] = b = w[m] * 2; result = b, b.sum(), b.shape
m = i > 1e9; a[m] = b = w[m]; result = b.max()
m = i == i.max(); a[m] = b = w[m] * 2; result = b, float(b[0])
a[m] = b = w[m]; b.shape = (-1, 1); result = b
a[m] = b = w[m]; b.resize(2, refcheck=False); result = b
i[m] = b = i[m]; result = b.view('u8'), b.astype('f4')
c[m] = b = c[m]; result = b.real, b.imag, b.conj()
m[m] = b = m[m]; m[0] = False; result = b
def step(one, two):\n    return one * two + 1\na[m] = step(a[m], w[m])
def step(one):\n    one += 1\n    return one\na[m] = step(a[m]); result = a
def step(one):\n    a[0] = 5\n    return one\na[m] = step(a[m])
def step(one):\n    m[0] = ~m[0]\n    return one\na[m] = step(a[m])
def step(one):\n    m[0] = m[0]\n    return one + 1\na[m] = step(a[m])
def step(one):\n    return one.sum()\na[m] = step(a[m])
class A: pass\nA.a, A.m = a, m\nA.a[A.m] = A.a[A.m] * 2 + 1; A.a[A.m] += 1
for b in range(5):\n    m = np.abs(c) <= 9\n    c[m] = c[m] * c[m] / 7 + c[m]\n    i[m] += 1
for b in range(3):\n    m[b::3] = True\n    a[m] = a[m] * 2 + w[m]\n    i[m] += 1
for b in range(3):\n    m &= a < 3\n    a[m] = a[m] * 2 + 1\n    m[b] = True
result = []\nfor b in range(3):\n    a[m] = c = a[m] * 2\n    result.append(c)
""")

WARNED = rows(r"""
a[m] = 1 / (a[m] * 0)
m = a > 0; a[m] = np.log(a[m])
m = a < 0; a[m] = np.log(a[m])
m = x == x; a[m] = x[m] - x[m]
m = x < 9; x[m] = x[m] - x[m]
m = i != 0; i[m] = 9 // i[m]
m = i == 0; i[m] = 9 // i[m]
m = a > 0; a[m] = a[m] / 0; a[m] = a[m] - a[m]
m = n == n; i[m] = n[m] * 1e300
m = n == n; i[m] = n[m]
b = np.divide(1, a - a[0, 0], where=a != a[0, 0], out=a)
b = np.log(a, where=a > 0, out=w)
b = np.log(a, where=a < 0, out=w)
np.floor_divide(i, i, where=i != 0, out=i)
np.sqrt(x, where=x > 0, out=x)
np.add(h, h * np.float16(60000), where=abs(h) < 1, out=h)
h[m] = h[m] * np.float16(60000)
m = abs(h) < 1; h[m] = h[m] * np.float16(60000)
m = c != 0; c[m] = 1 / c[m]
m = c == 0; c[m] = 1 / c[m]
a[m] = c[m]
a[m] += c[m]
with np.errstate(all='ignore'):\n    a[m] = 1 / (a[m] * 0)
with np.errstate(all='raise'):\n    a[m] = 1 / (a[m] * 0)
with np.errstate(divide='raise'):\n    m = a > 0\n    a[m] = np.log(a[m])
with np.errstate(invalid='raise'):\n    m = a < 0\n    a[m] = np.log(a[m])
with np.errstate(divide='call', call=lambda *one: None):\n    a[m] = a[m] / 0
with np.errstate(over='raise'):\n    a[m] = b = a[m] * 1e308 * 10\nresult = 1
""")


@pytest.mark.parametrize("text", WRITES)
def test_write(text):
    check(text)


@pytest.mark.parametrize("text", HELD)
def test_held(text):
    check(text)


@pytest.mark.parametrize("text", WARNED)
def test_warned(text):
    check(text, warned=True)
