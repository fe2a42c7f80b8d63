"""Printed plans: which operations join, what is never stored, and why others stay apart, as text files in `plans/`.

Promises: the text is a pure function of the program and the settings given here. LEGATE_TEST_BLESS=1 rewrites the files.
"""
import os
from pathlib import Path

import pytest

from tests import candidate

PLANS = Path(__file__).resolve().parent / "plans"
SETTINGS = {"LEGATE_SHOW_PLAN": "1", "LEGATE_CPUS": "2", "LEGATE_PROCESSORS": "2", "LEGATE_MIN_CPU_CHUNK": "4"}

PROGRAMS = {
    "chain": """
a, b = np.arange(6000) * 0.5, np.arange(6000) + 0.25
c = a * b + a - b / 3
""",
    "chain_with_a_kept_middle": """
a = np.arange(6000.0)
b = a * 2
c = b + 1
""",
    "reduction": """
x, y = np.arange(6000) * 0.5, np.arange(6000) + 0.25
total = ((x - y) ** 2).sum()
""",
    "stencil": """
grid = np.zeros((80, 90))
for _ in range(2):
    grid[1:-1, 1:-1] = 0.2 * (grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
""",
    "row_softmax": """
x = np.arange(6000.0).reshape(60, 100)
e = np.exp(x - np.max(x, axis=1, keepdims=True))
p = e / np.sum(e, axis=1, keepdims=True)
""",
    "nearest_centre": """
x, c = np.arange(6000.0).reshape(2000, 3), np.arange(12.0).reshape(4, 3)
labels = np.argmin(((x[:, None] - c) ** 2).sum(2), 1)
""",
    "shifted_in_place": """
a = np.arange(6000.0)
a[1:] += a[:-1]
a *= 2
""",
    "masked_iterations": """
c, z = np.arange(6000.0).reshape(60, 100) * 1e-3 + 1j, np.zeros((60, 100), complex)
count = np.zeros(c.shape, dtype=np.int64)
for _ in range(2):
    alive = np.abs(z) <= 2.0
    z[alive] = z[alive] * z[alive] + c[alive]
    count[alive] += 1
""",
    "cast_and_where": """
a = np.arange(6000)
b = np.where(a % 3 == 0, a.astype('f4'), 0)
""",
}
ENDING = "\nfrom legate import _core\n_core.flush()\nprint(_core.plan_text())\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_plan(name):
    env = {**SETTINGS, "PYTHONPATH": str(candidate.TOP / "site-packages")}
    words = [*candidate.python(), "-c", "import legate.numpy as np" + PROGRAMS[name] + ENDING]
    outcome = candidate.run(words, env=env, limit_s=60)
    assert outcome.code == 0, outcome.stderr
    expected = PLANS / f"{name}.txt"
    if os.environ.get("LEGATE_TEST_BLESS") == "1":
        expected.write_text(outcome.stdout)
    assert outcome.stdout == expected.read_text()
    assert candidate.run(words, env=env, limit_s=60).stdout == outcome.stdout
