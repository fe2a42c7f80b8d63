"""The Jupyter kernel over 1 and 3 ranks, driven by jupyter_client, and the command that installs it.

Promises that each kernel is shut down and that nothing of it is left.
"""
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests import candidate
from tests.prompt.terminal import MARK, marked
from tests.prompt.test_console import RANKS

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")
# Seconds that a start or a cell may take.
LIMIT_S = 120


def install(folder, *words):
    """Runs `legate-jupyter` with Jupyter's folder in `folder`; the finished process."""
    path = os.pathsep.join([str(Path(candidate.command()[0]).parent), os.environ["PATH"]])
    environment = candidate.environment({"PATH": path, "JUPYTER_DATA_DIR": str(folder), "HOME": str(folder)})
    return subprocess.run([*candidate.python(), "-m", "legate.prompt.kernelspec", *words], env=environment, text=True, capture_output=True,
                          timeout=LIMIT_S)


class Notebook:
    """A kernel and its client."""

    def __init__(self, ranks, folder):
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        installed = install(folder, "--name", "ours", *(["--ranks-per-node", str(ranks)] if ranks > 1 else []))
        assert installed.returncode == 0, installed.stderr
        specifications = jupyter_client.kernelspec.KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
        self.kernel = jupyter_client.KernelManager(kernel_name="ours", kernel_spec_manager=specifications)
        self.kernel.start_kernel(cwd=str(folder), env=candidate.environment({MARK: self.mark, "HOME": str(folder), "IPYTHONDIR": str(folder)}))
        self.client = self.kernel.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT_S)

    def run(self, code, interrupt_after=None, answer=None):
        """Runs a cell: its texts, its results as MIME bundles, and the name of its error."""
        texts, bundles, errors = [], [], []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                texts.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data"):
                bundles.append(content["data"])
            elif message["msg_type"] == "error":
                errors.append(content["ename"])

        if interrupt_after is not None:
            threading.Timer(interrupt_after, self.kernel.interrupt_kernel).start()
        self.client.execute_interactive(code, output_hook=hear, timeout=LIMIT_S, allow_stdin=answer is not None,
                                        stdin_hook=lambda _: self.client.input(answer))
        return "".join(texts), bundles, errors

    def value(self, code):
        """The text of a cell's value."""
        texts, bundles, errors = self.run(code)
        assert not errors and len(bundles) == 1, (texts, errors)
        return bundles[0]["text/plain"]

    def close(self):
        """Shuts the kernel down; what is left of it."""
        self.client.stop_channels()
        self.kernel.shutdown_kernel()
        until = time.monotonic() + 10
        while (found := marked(self.mark)) and time.monotonic() < until:
            time.sleep(0.1)
        return found


@pytest.fixture(params=RANKS)
def notebook(request, tmp_path):
    notebook = Notebook(request.param, tmp_path)
    try:
        yield notebook
    finally:
        left = notebook.close()
    assert not left


def test_cells_errors_and_rich_output(notebook):
    assert notebook.run("import numpy as np; a = np.arange(1_200_000); print('here')") == ("here\n", [], [])
    assert notebook.value("a * 2") == "array([      0,       2,       4, ..., 2399994, 2399996, 2399998],\n      shape=(1200000,))"
    assert notebook.run("1 / 0")[2] == ["ZeroDivisionError"]
    assert notebook.run("a + np.ones(7)")[2] == ["ValueError"]
    assert notebook.value("int(a.sum())") == "719999400000"
    html = "class Rich:\n    def _repr_html_(self):\n        return f'<b>{int(a.sum())}</b>'\n\nRich()"
    assert notebook.run(html)[1][0]["text/html"] == "<b>719999400000</b>"
    assert notebook.run("!echo $((6 * 7))")[0].strip() == "42"
    assert notebook.run("x = input('name? ')", answer="Ada") == ("", [], [])
    assert notebook.value("x * 2") == "'AdaAda'"


def test_pictures(notebook):
    pytest.importorskip("matplotlib")
    code = "import numpy as np, matplotlib.pyplot as plt\nplt.plot(np.arange(1_200_000)[::100_000])\nplt.show()"
    texts, bundles, errors = notebook.run(code)
    assert not errors and "image/png" in bundles[0], texts


def test_completion_and_inspection(notebook):
    notebook.run("import numpy as np; a = np.ones(1_200_000)")
    assert "cumprod" in notebook.client.complete("a.cumpr", reply=True, timeout=LIMIT_S)["content"]["matches"]
    found = notebook.client.inspect("a", reply=True, timeout=LIMIT_S)["content"]
    assert found["found"] and "1200000" in found["data"]["text/plain"]
    # What a pager would show comes with the reply.
    assert notebook.run("a.sum?") == ("", [], [])
    asked = notebook.client.execute("", user_expressions={"sum": "float(a.sum())"}, reply=True, timeout=LIMIT_S)
    assert asked["content"]["user_expressions"]["sum"]["data"]["text/plain"] == "1200000.0"
    assert notebook.value("float(a.sum())") == "1200000.0"


def test_interrupts(notebook):
    notebook.run("import numpy as np, time; i = 0; a = np.zeros(1_200_000)")
    for code in ("while True: i += 1", "while True: a = a + 1", "time.sleep(100)", "while True: float((a + 1).sum())"):
        began = time.monotonic()
        assert notebook.run(code, interrupt_after=1)[2] == ["KeyboardInterrupt"]
        assert time.monotonic() - began < 15
        assert notebook.value("bool((a == a[0]).all()), float(np.full(1_200_000, float(i)).std()) < 1e-3 * i") == "(True, True)"


def test_restart(notebook):
    notebook.run("x = 5")
    notebook.kernel.restart_kernel()
    notebook.client.wait_for_ready(timeout=LIMIT_S)
    assert notebook.value("'x' in globals()") == "False"


def test_the_specification(tmp_path):
    done = install(tmp_path, "--name", "four", "--display-name", "Four ranks", "--ranks-per-node", "4", "--cpus=1")
    assert done.stdout == f"Installed the kernel four (Four ranks) in {tmp_path / 'kernels' / 'four'}\n" and not done.stderr
    written = json.loads((tmp_path / "kernels" / "four" / "kernel.json").read_text())
    assert written["display_name"] == "Four ranks" and written["argv"][3:6] == ["--ranks-per-node", "4", "--cpus=1"]
    assert install(tmp_path, "--name", "here", "--prefix", str(tmp_path / "env")).returncode == 0
    assert (tmp_path / "env" / "share" / "jupyter" / "kernels" / "here" / "kernel.json").is_file()


@pytest.mark.parametrize("words, said", [
    (["--name", "a/b"], "--name a/b: letters, digits, '.', '_' and '-' make a kernel's name"),
    (["--name", "ours", "--rank-per-node", "4"], "no option --rank-per-node; did you mean --ranks-per-node?"),
], ids=["name", "option"])
def test_what_is_wrong_is_said_in_a_line(words, said, tmp_path):
    done = install(tmp_path, *words)
    assert done.stderr == f"legate-jupyter: {said}\n" and done.returncode == 2
    assert not (tmp_path / "kernels").exists()


def test_without_ipykernel_it_says_so(tmp_path):
    hide = "import sys, importlib.util as u; find = u.find_spec; u.find_spec = lambda name: None if name == 'ipykernel' else find(name); "
    done = subprocess.run([*candidate.python(), "-c", hide + "from legate.prompt.kernelspec import main; main()", "--name", "ours"], text=True,
                          env=candidate.environment({"JUPYTER_DATA_DIR": str(tmp_path)}), capture_output=True, timeout=LIMIT_S)
    assert done.stderr.startswith("legate-jupyter: needs ipykernel, which ") and done.stderr.count("\n") == 1 and done.returncode == 1
