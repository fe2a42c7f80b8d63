"""Code that asks for exactly a float or an int takes futures as it takes NumPy scalars: the standard library and installed libraries.

Promises: each text prints the same under `python` and under the command, with futures that nobody has looked at. One process for each
group of texts, since what is patched stays so. Libraries that are not installed are left out.
"""
import importlib.util

import pytest

from tests import candidate
from tests.numpy.oracle import rows

# F(), S() and I() are fresh futures of a float, a short float and a whole number.
OPENING = """
import io, sys, warnings
from time import sleep
import numpy as np
x, y = np.linspace(0, 1, 500_000), np.arange(500_000)
def F(factor=1): return (x * factor).sum() / 1e5
def S(): return x.astype('f4').sum()
def I(): return y.argmax()
def Z(): return y.argmin()
F()
"""
EACH = """
for text in TEXTS:
    try:
        value = eval(text)
    except Exception as error:
        value = f'{type(error).__name__}: {error}'
    print(text, '->', repr(value) if isinstance(value, np.generic) else value)
"""

STANDARD = """
import array, asyncio, bisect, collections, csv, ctypes, datetime, decimal, fractions, functools, heapq, itertools, json, logging, math
import numbers, operator, pprint, queue, random, select, sqlite3, statistics, struct, threading, time, typing
class Late(datetime.timedelta): pass
base = sqlite3.connect(':memory:')
base.execute('create table t(a real, b, c)')
def stored():
    base.execute('insert into t values (?, ?, ?)', (F(), F(), I()))
    return base.execute('select *, typeof(a), typeof(b), typeof(c) from t').fetchall()
def written():
    text = io.StringIO()
    csv.writer(text).writerow([F(), I()])
    return text.getvalue()
def seeded(seed):
    np.random.seed(seed)
    return np.random.rand()
"""

GROUPS = {
    "standard": (STANDARD, rows(r"""
sleep(F() / 100)
time.sleep(F() / 100)
time.gmtime(F() * 1e9)
time.gmtime(I())
time.ctime(F())[:3]
datetime.timedelta(seconds=F())
datetime.timedelta(F(), F())
datetime.timedelta(I())
datetime.timedelta(1) * F()
datetime.timedelta(1) / F()
F() * datetime.timedelta(1)
Late(F())
Late.__new__(Late, F())
datetime.timedelta.__new__(Late, F())
datetime.datetime.fromtimestamp(F() * 1e9, datetime.timezone.utc)
datetime.date.fromtimestamp(F() * 1e9)
decimal.Decimal(F())
decimal.Decimal(I())
decimal.Decimal.from_float(F())
decimal.Context(prec=3).create_decimal(F())
json.dumps(F())
json.dumps([F(), {'a': F()}])
json.dumps({'a': F(), 'b': [F()]}, indent=1)
json.dumps({F(): [1, {F(2): 2}]})
json.dumps({F(): 1}, indent=1)
json.dumps(I())
json.dumps(S())
json.dumps(float('nan') * F())
json.dumps([I()], default=int)
json.dumps([I()], default=lambda value: F() * int(value))
json.JSONEncoder().encode(F())
list(json.JSONEncoder().iterencode([F()]))
threading.Lock().acquire(timeout=F())
threading.Event().wait(F() / 100)
threading.RLock().acquire(True, F())
select.select([], [], [], F() / 100)
queue.Queue().get(timeout=F() / 100)
asyncio.run(asyncio.sleep(F() / 100))
stored()
written()
random.Random(F()).random()
random.Random(1).gauss(F(), 1)
random.Random(1).choice(range(I()))
random.Random(1).sample(range(5), Z() + 2)
random.seed(I())
statistics.stdev([F(), 2.0, F(3)])
statistics.mean([F(), F(2)])
statistics.fmean([F(), F(2)])
math.dist([F()], [0])
math.hypot(F(), 1)
math.isclose(F(), 0.25)
ctypes.c_double(F())
ctypes.c_int(I())
struct.pack('<dq', F(), I())
array.array('d', [F()])
pprint.pformat([F(), {'a': I()}])
bisect.bisect([0, 9], F())
heapq.nsmallest(2, [F(3), F(), F(2)])
collections.Counter([F(), F()])
list(itertools.repeat(1, Z() + 2))
functools.reduce(operator.add, [F(), F()])
isinstance(F(), typing.SupportsFloat)
functools.singledispatch(lambda value: type(value).__name__)(F())
np.random.default_rng(I()).integers(9)
np.random.SeedSequence(I()).entropy
np.random.PCG64(I()).state['state']['state']
np.random.RandomState(I()).randint(9)
np.random.default_rng(1).choice(I(), 3)
seeded(Z())
print(F(), I(), sep='|')
""")),
    "pandas": ("""
import pandas as pd
d = pd.DataFrame({'a': [1.0, 2.0]})
def located():
    d.loc[0, 'a'], d['c'], d.at[1, 'a'], d.loc[2] = F(), F(), F(3), [F(), F()]
    d.iloc[1, 0] = F(4)
    return d.to_string(), d.dtypes.to_dict()
""", rows(r"""
pd.Series([F(), F(2)])
pd.DataFrame({'a': [F(), 1.0], 'b': [I(), 2]}).dtypes
pd.Series([1.0, 2.0]) * F()
F() * pd.Series([1.0, 2.0])
pd.Series([1, 2, 3]).loc[Z()]
pd.Series([1, 2, 3]) + I()
pd.DataFrame({'a': [1.0, 2]}).assign(b=F())
located()
pd.DataFrame([{'loss': F(), 'k': I()}, {'loss': F(2), 'k': I()}]).dtypes.to_dict()
pd.DataFrame([[F(), 1], [F(2), 2]]).dtypes.to_dict()
pd.Timedelta(seconds=F())
pd.Timedelta(F(), 's')
pd.to_timedelta(F(), 's')
pd.Timestamp(F() * 1e9)
pd.isna(F())
pd.Series([1.0, None]).fillna(F())
pd.cut([1.0, 2.0], [0, F(), 9])
pd.Series({'a': F()})
pd.Series(F(), index=[1, 2])
pd.Index([F(), F(2)])
pd.Series([1.0, 2.5]) > F()
pd.Series([1.0, 2.0]).clip(F())
pd.Series([1, 2]).replace(1, F())
pd.Series([F(), 'a'])
pd.DataFrame({'a': F()}, index=[0])
pd.api.types.is_float(F())
pd.api.types.is_scalar(F())
""")),
    "scipy": ("import scipy.stats, scipy.optimize, scipy.special, scipy.integrate, scipy.sparse, scipy.linalg, scipy.interpolate", rows(r"""
scipy.stats.norm.cdf(F())
scipy.stats.norm(F(), 2).ppf(0.3)
scipy.special.gamma(F())
scipy.special.comb(10, Z() + 2)
scipy.optimize.brentq(lambda v: v - F(), 0, 9)
scipy.optimize.minimize(lambda v: ((v - 1) ** 2).sum() * F(), [0.0]).x.round(4)
scipy.integrate.quad(lambda v: v * F(), 0, F())
scipy.integrate.solve_ivp(lambda t, v: -v * F(), (0, F()), [F()]).y[0, -1]
(scipy.sparse.eye(3) * F()).toarray()
(F() * scipy.sparse.eye(3)).toarray()
scipy.linalg.expm(np.eye(2) * F())
scipy.interpolate.interp1d([0, 9], [1, 2])(F())
scipy.stats.ttest_1samp([1.0, 2.0, 4.0], F()).pvalue
""")),
    "matplotlib": ("""
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
""", rows(r"""
axes.plot([F(), F(2)], [F(), I()])[0].get_ydata()
axes.set_xlim(0, F(5))
axes.axhline(F()).get_ydata()
axes.text(F(), F(), f'{F():.2f}').get_position()
axes.set_title(F()).get_text()
len(axes.bar([1, 2], [F(), F(2)]))
axes.scatter([F()], [F()], s=F()).get_offsets()
axes.imshow([[F(), 1], [2, 3]], vmin=F(), vmax=F(3)).get_clim()
figure.savefig(io.BytesIO())
""")),
    "numba": ("""
import numba
@numba.njit
def doubled(value): return value * 2
@numba.njit
def counted(count):
    total = 0
    for step in range(count): total += step
    return total
@numba.vectorize
def added(left, right): return left + right
""", rows(r"""
doubled(F())
doubled(I())
doubled(S())
doubled((x + 1j).sum())
counted(I())
added(F(), 1.0)
added(np.ones(3), F())
""")),
    "sklearn": ("import sklearn.linear_model, sklearn.cluster", rows(r"""
sklearn.linear_model.Ridge(alpha=F()).fit([[1.0], [2.0]], [F(), F(2)]).coef_
sklearn.cluster.KMeans(n_clusters=Z() + 2, n_init=1, random_state=0).fit([[0.0], [1.0], [9.0]]).inertia_
""")),
    "h5py": ("""
import h5py
file = h5py.File(io.BytesIO(), 'w')
def kept():
    file.attrs['loss'], file.attrs['k'], file['s'] = F(), I(), F()
    file.create_dataset('d', (3,), dtype='f8')[0] = F()
    values = file.attrs['loss'], file.attrs['k'], file['s'][()], file['d'][0]
    file.close()
    return values
""", ["kept()"]),
}


@pytest.mark.parametrize("group", GROUPS)
def test_prints_the_same(group, tmp_path):
    if group != "standard" and importlib.util.find_spec(group) is None:
        pytest.skip(f"{group} is not installed")
    setup, texts = GROUPS[group]
    program = tmp_path / "program.py"
    program.write_text(f"{OPENING}{setup}\nTEXTS = {texts!r}\n{EACH}")
    oracle = candidate.run([*candidate.python(), str(program)], limit_s=120)
    ours = candidate.run([*candidate.command(), str(program)], limit_s=120)
    assert oracle.code == 0, oracle.stderr
    assert ours.stdout.splitlines() == oracle.stdout.splitlines(), ours.stderr
    assert ours.code == 0, ours.stderr
