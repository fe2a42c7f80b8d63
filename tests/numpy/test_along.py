"""Picks by an index array along another axis than the first, and writes by one.

Promises NumPy's elements, memory orders and errors for every layout of the array and of the index array, few rows included.
"""
import pytest

from tests.numpy.oracle import check, rows

SETUP = """
r = np.array(host.random.default_rng(10).normal(size=(ROWS * 3, COLUMNS, 3)))
o = host.random.default_rng(11).integers(-COLUMNS, COLUMNS, 40)
y = np.array(host.random.default_rng(13).normal(size=(2, COLUMNS * 40, 3)))
g = np.array(host.random.default_rng(14).integers(-COLUMNS, COLUMNS, (ROWS, 3)))
v = np.array(host.random.default_rng(15).integers(0, COLUMNS, ROWS * 9))
o2 = np.asfortranarray(g[:ROWS // 2])
"""

TEXTS = rows(r"""
w[:, o], w[:, o[:5]], r[:, o], r[:, :, o % 3], r[:, o, :], r[:, o.reshape(8, 5)], w[:, o.tolist()], w[:, o][:, ::-1].copy(), f[:, o], w.T[:, k]
w[:, o].strides, r[:, o].strides, r[:, o.reshape(8, 5)].strides, w[:, o].flags.owndata, w[:, i[0] % 7], w[..., o], w[1:, o], w[:, o[:0]], c[:, o], d[:, o]
w.take(o, 1), np.take(r, o, axis=1), np.take(r, o % 3, -1), np.take(w, o.reshape(8, 5), 1), np.take(w, o, 1, mode='wrap'), np.take(w, i[:9] % 9, axis=1)
w[:, o + COLUMNS]
w.take(o + COLUMNS, axis=1)
w[:, o] = 0\nresult = w
f[:, o], f[:, o].strides, w.T[:, k], w.T[:, k].strides, w[::-1, ::-1][:, o], s[:, o % 3], s[:, o % 3].strides, r[:, :, ::-1][:, o], r.transpose(2, 1, 0)[:, o].strides
r.transpose(0, 2, 1)[:, o % 3], r.transpose(0, 2, 1)[:, o % 3].strides, r.transpose(1, 0, 2)[:, :, o % 3].strides, r.transpose(1, 0, 2)[:, o].strides, r[..., o % 3, :2]
y[:, o], y[:, o].strides, y[:, o, :1], y[1:, o], y[:, v], y[:, :, o % 3], y.take(o, 1), y.take(v, 1), y.take(o2, axis=1), y.take(o2, axis=1).flags.c_contiguous
w[:, v], w.take(v, 1), w[:, o2].strides, w[:, o2], w.take(o2, -1), f.take(o, 1), w.T.take(k, 1), s.take(o % 3, 1), f.take(o, 1).flags.c_contiguous
w[2:-3, o], w[::2, o], w[5:2, o], w[:, None][:, :, o], w[1:2, o], w[:, l > 0.5], w[:, np.array(l > 0.5)], w[1:, m[0]], w[:, i[0] > 99], w[3, o], w[3:5, o.tolist()]
w[:, o, None], w[None, :, o], w[o % 3, :][:, o], w[o[:3], 1:4], w[1:4, o[:3], ...], np.delete(w, [1, 3], axis=1), np.delete(w, slice(1, 9, 3), 1), w[:, np.array([], int)]
w[:, [0, COLUMNS]]
w[:, o2 + COLUMNS]
w[:, [[0, 1], [2]]]
w[:, v - 99 * COLUMNS]
w[:, m[0][:-1]]
w[:, o] = 0\nresult = w
w[:, o] = np.arange(40)\nresult = w
w[:, o] = w[:, :40 % COLUMNS + 1][:, :1]\nresult = w
w[:, o] = np.arange(ROWS * 40).reshape(ROWS, 40)\nresult = w
w[:, v] = np.arange(ROWS * 9) / 3\nresult = w
w[2:, o] = i[2:, :1]\nresult = w
w[:, o] += 1\nresult = w
w[:, l > 0.5] = -1\nresult = w
w[..., o2] = 3\nresult = w
f[:, o] = 4\nresult = f
r[:, o] = np.arange(3)\nresult = r
r[:, :, [2, 0, 2]] = np.arange(3)\nresult = r
y[:, v] = np.arange(ROWS * 27).reshape(-1, 3)\nresult = y
i[:, o] = 2.7\nresult = i
w[:, o] = [1, 2]
w[:, o + COLUMNS] = 1
np.take_along_axis(w, g, 1), np.take_along_axis(w, g % 7, 0), np.take_along_axis(w.T, g.T, 0), np.take_along_axis(f, g, 1), np.take_along_axis(s, g[:s.shape[0]] % 3, 1)
np.take_along_axis(r, r.argsort(1, kind='stable'), 1), np.take_along_axis(r, r.argmax(1, keepdims=True), 1), np.take_along_axis(w, v, None), np.take_along_axis(w, o2, 1)
np.take_along_axis(w, g + COLUMNS, 1)
np.put_along_axis(w, g, 5, 1)\nresult = w
np.put_along_axis(w, g % 7, np.arange(3), 0)\nresult = w
np.put_along_axis(f, g, 5, 1)\nresult = f
""")


@pytest.mark.parametrize("text", TEXTS)
def test_along(text):
    check(text, SETUP, warned=True)
