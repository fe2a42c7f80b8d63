"""Deferred arrays as keys, columns, labels and operands of pandas objects: one program under the command and under python.

pandas asks for `numpy.ndarray` by isinstance where it tells masks and indices from labels. Promises that each line prints what python
prints. Without pandas the test is left out.
"""
import pytest

from tests.candidate import command, python, run

PROGRAM = """
import numpy as np
import pandas as pd

n = 60_000
x = (np.arange(n) * 7919 % 1009 - 500) / 64
g = np.arange(n) * 31 % 50
mask = x > 1
index = np.argsort(g, kind="stable")
days = np.arange(n).astype("M8[m]")
s = pd.Series(x * 2)
df = pd.DataFrame({"x": x, "g": g})
LINES = '''
s[mask]
df[mask]
df[x > 0].x
df[(df.x > 0) & mask].x
df.loc[mask, "x"]
df.loc[~mask].x
s.loc[index]
s.iloc[index]
s.iloc[mask]
df.iloc[index].x
s.where(mask)
df.where(np.stack([mask, mask], axis=1))
s.isin(x[:n // 2])
s + x
x + s
x > s
np.maximum(s, x)
np.concatenate([s, x])
df.groupby(g).x.sum()
df.groupby([g, mask]).x.sum()
s.groupby(mask).mean()
df.set_index(g).x
df.reindex(index).x
df.drop(index[:n // 2]).x
pd.unique(g)
pd.factorize(g)[0]
pd.cut(x, 5).codes
pd.Categorical(g).codes
pd.crosstab(g, mask)
pd.Index(np.unique(g)).get_indexer(g)
pd.Series(x, index=days).loc[days[5]:days[9]]
pd.MultiIndex.from_arrays([g, mask]).nlevels
x[s > 0]
x[df.g == 3]
df.x.values[mask]
df.query("x > @x.mean()").x
df.eval("x + @x")
df.assign(y=x, z=lambda d: d.y + x).z
s.clip(x, None)
s.dot(x)
df.loc.__setitem__((mask, "x"), 0.0)
s.__setitem__(mask, x[mask])
df.__setitem__("w", mask)
s
df
x
'''.split("\\n")
for line in filter(None, LINES):
    value = eval(line)
    value = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    print(line, value.dtype, value.shape, value.astype("f8").sum().round(6) if value.dtype != object else value.ravel()[:3])
"""


@pytest.mark.parametrize("env", [{}, {"LEGATE_MIN_CPU_CHUNK": "1"}])
def test_pandas(tmp_path, env):
    pytest.importorskip("pandas")
    (tmp_path / "program.py").write_text(PROGRAM)
    outcome = run([*command(), "program.py"], cwd=tmp_path, env=env)
    expected = run([*python(), "program.py"], cwd=tmp_path)
    assert expected.code == 0, expected.stderr
    assert (outcome.stdout, outcome.code) == (expected.stdout, 0), outcome.stderr
