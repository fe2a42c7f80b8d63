"""Fourier transforms along one axis and several.

Promises NumPy's bits: the same loops transform the same lines. Does not time.
"""
import pytest

from tests.numpy.oracle import check, rows

TEXTS = rows(r"""
np.fft.fft(w)
np.fft.fft(w, axis=0)
np.fft.fft(c, None, -2)
np.fft.ifft(c)
np.fft.ifft(w, axis=0)
np.fft.rfft(w)
np.fft.rfft(w[:, :-1], axis=1)
np.fft.rfft(w, axis=0)
np.fft.irfft(c)
np.fft.irfft(c, axis=0)
np.fft.irfft(c, 2 * COLUMNS - 2)
np.fft.irfft(c, 2 * COLUMNS - 1)
np.fft.fft2(w)
np.fft.ifft2(c).real
np.fft.fftn(c)
np.fft.rfft2(w)
np.fft.irfft2(c)
np.fft.fftn(q)
np.fft.rfftn(q, axes=(0, 1))
np.fft.irfftn(q + 1j, axes=(2, 1))
np.fft.ifftn(q, axes=(1, 1))
np.fft.fftn(w, s=(7, 9), axes=(0, 1))
np.fft.fft(w, norm='ortho')
np.fft.ifft(c, norm='forward')
np.fft.rfft(w, axis=0, norm='forward')
np.fft.irfft(c, norm='ortho')
np.fft.fft(w.astype('f4'))
np.fft.irfft(c.astype('c8'), axis=0, norm='ortho')
np.fft.fft(w.astype('f4'), norm='ortho')
np.fft.rfft(w.astype('f4'))
np.fft.rfft(w.astype('f4'), axis=0, norm='forward')
np.fft.ifft(c.astype('c8'))
np.fft.fft(c.real, axis=0)
np.fft.rfft(c.imag)
np.fft.fft(c[:, ::3])
np.fft.fft(i)
np.fft.fft(m)
np.fft.fft(h)
np.fft.fft(w, 5)
np.fft.fft(w, COLUMNS + 3)
np.fft.fft(w.T)
np.fft.fft(f, axis=0)
np.fft.fft(s)
np.fft.fft(w.ravel())
np.fft.fft(w[:1])
np.fft.fft(w[:, :1])
np.fft.fft(e)
np.fft.fft(w.astype('>f8'))
np.fft.hfft(c)
np.fft.ihfft(w)
np.fft.fft(w, out=np.empty_like(c))
v = c.copy()\nnp.fft.fft(v, out=v)\nresult = v
np.fft.fft(w, axis=2)
np.fft.fft(w, 0)
np.fft.rfft(c)
np.fft.fft(w, norm='none')
np.fft.fft2(w, axes=(0, 5))
np.fft.fftshift(np.fft.fft2(w))
np.fft.fft(c), np.fft.ifft(c), np.fft.ifft(c, axis=0)
np.fft.fft(c, axis=-2, norm='ortho')
np.fft.fft(w, 32), np.fft.fft(w, 8, axis=0), np.fft.ifft(c, 1000, 0, 'forward')
np.fft.rfft(w), np.fft.rfft(w, axis=0), np.fft.rfft(w, 9), np.fft.rfft(w, 10, 0)
np.fft.irfft(c), np.fft.irfft(c, axis=0), np.fft.irfft(c, 11), np.fft.irfft(w, axis=0)
np.fft.fft2(w), np.fft.ifft2(c), np.fft.rfft2(w), np.fft.irfft2(c)
np.fft.fftn(q), np.fft.fftn(q, axes=(0, 2)), np.fft.ifftn(q, axes=(1,)), np.fft.rfftn(q), np.fft.irfftn(q)
np.fft.fft(q, axis=1), np.fft.fft(q, axis=0), np.fft.fft(q)
np.fft.fft(f), np.fft.fft(f, axis=0), np.fft.fft(c.T), np.fft.fft(c.T, axis=0)
np.fft.fft(s), np.fft.fft(s, axis=0), np.fft.fft(c[::-1, ::3])
np.fft.fft(q.transpose(1, 2, 0)), np.fft.fft(q.transpose(2, 0, 1), axis=1)
np.fft.fft(w.astype('f4')), np.fft.rfft(w.astype('f4'), axis=0), np.fft.ifft(c.astype('F'))
np.fft.fft(i), np.fft.rfft(u), np.fft.fft(m), np.fft.fft(h), np.fft.fft(w.astype('g'))
np.fft.fft(w.astype('>f8')), np.fft.fft(c.astype('>c16'), axis=0)
np.fft.fft(w.ravel()), np.fft.rfft(w.ravel()), np.fft.fft(e)
np.fft.fft(d)
np.fft.fft(w, out=np.zeros((ROWS, COLUMNS), 'D'))
np.fft.fft(w, out=np.zeros((ROWS, COLUMNS), 'D').T)
np.fft.fft(w, out=np.zeros((ROWS, COLUMNS)))
np.fft.fft(w, axis=0, out=np.zeros((ROWS, COLUMNS), 'D', 'F'))
y = np.array(c)\nnp.fft.fft(y, out=y)\nresult = y
y = np.array(c)\nnp.fft.fft(y, axis=0, out=y)\nresult = y
y = np.zeros((ROWS, 2 * COLUMNS), 'D')\nnp.fft.ifft(c, axis=0, out=y[:, ::2])\nresult = y
np.fft.fftshift(np.fft.fft(w), axes=0), np.abs(np.fft.fft(w)) ** 2
np.fft.fft(n), np.fft.fft(x), np.fft.ifft(x, axis=0)
np.fft.fft(np.where(i % 5 == 0, np.inf, w))
np.fft.fft(np.broadcast_to(w, (2, ROWS, COLUMNS)), axis=1), np.fft.fft(np.broadcast_to(l, (ROWS, COLUMNS)), axis=0)
np.fft.fft(c[3:], axis=0), np.fft.ifft(c[3:-1, 1:], axis=0), np.fft.rfft(w.ravel()[5:]), np.fft.irfft(c, 5, 0)
np.fft.fft(w.reshape(2, -1)), np.fft.fft(w.reshape(2, -1, 7), axis=1), np.fft.ifft(c.reshape(1, -1, 2), axis=1)
np.fft.fft2(q, s=(5, 7)), np.fft.irfftn(c, s=(9, 12)), np.fft.fft(w, host.int64(6)), np.fft.hfft(c, 9, 0), np.fft.fft(h, axis=0, norm='ortho')
np.fft.irfft(h), np.fft.fft(q.transpose(1, 0, 2), axis=0), np.fft.fft(q[:, ::-2, 1:], axis=1), np.fft.fft(w, 3.5)
""")


@pytest.mark.parametrize("text", TEXTS)
def test_fourier(text):
    check(text, warned=True)


@pytest.mark.parametrize("text", rows("np.fft.fft(x)\nnp.fft.rfft(n, axis=0)\nnp.fft.fft2(x * 1e308)"))
def test_warnings(text):
    check(text, warned=True)
