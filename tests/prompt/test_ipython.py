"""IPython at a terminal, over 1 and 3 ranks.

Promises that each session ends with nothing left. What IPython does with a cell is IPython's; here is tested that all ranks run it.
"""
import subprocess

import pytest

from tests import candidate
from tests.prompt.terminal import CTRL_C, CTRL_D, TAB, After, talk
from tests.prompt.test_console import RANKS, legate

pytest.importorskip("IPython")
SIMPLE = {"IPY_TEST_SIMPLE_PROMPT": "1"}


def cells(*lines):
    """Steps that type these cells of one line."""
    return [(f"In [{number}]: ", line + "\n") for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize("ranks", RANKS)
def test_cells(ranks, tmp_path):
    steps = cells("import numpy as np; a = np.arange(1_200_000)", "(a * 2)[-1] + 0", "1 / 0", "_2 + 1", "while True: a = a + 1")
    steps += [("", After(2, CTRL_C)), *cells(*[""] * 5, "int((a - a[0]).sum())", "x = !echo $((6 * 7))", "x, In[2]", "%timeit -n 2 -r 1 a + 1",
                                              "y = input('name? ')")[5:]]
    steps += [("\nname? ", "Ada\n"), ("In [11]: ", "y * 2\n"), ("In [12]: ", "exit\n")]
    shown, code = talk(legate(ranks, "--ipython"), tmp_path, steps, SIMPLE)
    for part in ("Out[2]: np.int64(2399998)", "ZeroDivisionError: division by zero", "Out[4]: np.int64(2399999)", "KeyboardInterrupt",
                 "Out[6]: 719999400000", "(['42'], '(a * 2)[-1] + 0')", "2 loops each", "Out[11]: 'AdaAda'"):
        assert part in shown
    assert code == 0 and shown.count("KeyboardInterrupt") in (1, 2)


@pytest.mark.parametrize("ranks", RANKS)
def test_editing_completion_and_startup(ranks, tmp_path):
    folder = tmp_path / ".ipython" / "profile_default" / "startup"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text("length_of = len\n")
    steps = [("In [1]: ", "import numpy as np; a = np.ones(1_200_000)\r"), ("In [2]: ", After(0.5, "length_" + TAB)), ("length_of", "(a)\r"),
             ("Out[2]: 1200000", ""), ("In [3]: ", After(0.5, "a.cumpr" + TAB)), ("cumprod", "().sum()\r"), ("Out[3]: np.float64(1200000.0)", ""),
             ("In [4]: ", After(0.5, CTRL_D)), ("exit", "y\r")]
    shown, code = talk(legate(ranks, "--ipython"), tmp_path, steps, {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"})
    assert code == 0, shown


@pytest.mark.parametrize("ranks", RANKS)
def test_after_a_script_and_from_a_pipe(ranks, tmp_path):
    (tmp_path / "app.py").write_text("import numpy as np\na = np.arange(1_200_000)\n")
    seen = candidate.run(legate(ranks, "--ipython", "app.py"), cwd=tmp_path, stdin="print('sum', a.sum())\n", env={"HOME": str(tmp_path)})
    assert "sum 719999400000" in seen.stdout and seen.code == 0, seen.stderr


def test_without_ipython_it_says_so(tmp_path):
    (tmp_path / "IPython.py").write_text("raise ImportError('no such package')\n")
    process = subprocess.run(legate(1, "--ipython"), cwd=tmp_path, env=candidate.environment({"PYTHONPATH": str(tmp_path)}), text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert process.stderr.strip() == "legate: --ipython needs IPython: pip install ipython (no such package)"
    assert process.returncode == 1
