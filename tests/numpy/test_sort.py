"""Sorting, order statistics, sets, search.

Promises: sorted values and stable orders are NumPy's; ties of unstable sorts are not compared. Does not time.
"""
import pytest

from tests.numpy.oracle import check, rows

TEXTS = rows(r"""
np.sort(a)
np.sort(a, 0)
np.sort(a, None)
np.sort(u)
np.sort(n)
np.sort(c)
np.sort(m, None)
np.sort(h)
np.sort(f, 0)
np.sort(s)
np.sort(d)
np.sort(t, 0)
np.sort(a, kind='stable')
np.sort(i, kind='heapsort')
a.sort()
a.sort(0)
a.T.sort()
s.sort()
a[::-1].sort(0)
np.argsort(a, kind='stable')
np.argsort(i, 0, kind='stable')
np.argsort(w.ravel())
i.argsort(None, kind='stable')
np.lexsort((i[0], b))
np.partition(w, 3)[:, 3]
np.partition(w, (1, 4), axis=0)[[1, 4]]
np.argpartition(w.ravel(), 2)[2]
np.unique(i)
np.unique(a)
np.unique(n)
np.unique(i, return_counts=True)
np.unique(i, return_index=True, return_inverse=True)
np.unique(i[:6, :2], axis=0)
np.unique(c)
np.unique_values(k)
np.unique_counts(k)
np.searchsorted(np.sort(b), a)
np.searchsorted(np.sort(i, None), [1, 2], 'right')
np.sort(b).searchsorted(0.5)
np.searchsorted(b, 1, sorter=np.argsort(b, kind='stable'))
np.isin(i, [3, 4])
np.intersect1d(i, k)
np.union1d(i, k)
np.setdiff1d(i, k)
np.setxor1d(k, [1, 9])
np.sort_complex(k)
np.median(w, 1)
np.percentile(w, [5, 95], axis=0)
np.flip(np.sort(w, 0), 0)
np.argwhere(np.sort(k) > 0)
np.sort(e)
np.sort(z)
np.sort(np.array(['b', 'a', 'cc']))
np.sort(np.array([3, 1], dtype=object))
np.sort(np.array([(2, 1.0), (1, 3.0)], dtype=[('a', 'i4'), ('b', 'f8')]), order='a')
np.trim_zeros([0, 1, 0])
np.sort(w, axis=7)
np.sort(w, kind='no')
""")


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text):
    check(text)
