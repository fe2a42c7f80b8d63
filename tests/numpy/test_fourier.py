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
""")


@pytest.mark.parametrize("text", TEXTS)
def test_fourier(text):
    check(text)


@pytest.mark.parametrize("text", rows("np.fft.fft(x)\nnp.fft.rfft(n, axis=0)\nnp.fft.fft2(x * 1e308)"))
def test_warnings(text):
    check(text, warned=True)
