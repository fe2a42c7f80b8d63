"""Every form of import, by caller: user code gets ours, installed packages and the standard library the host NumPy.

Runs whole programs under the command and compares what they print; errors are compared with plain `python`'s, traceback and all.
"""
import pytest

from tests.candidate import command, python, run
from tests.intercept.programs import FILES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def printed(folder, *words, env=None):
    outcome = run([*command(), *words], cwd=folder, env=env)
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout


def test_forms(folder):
    assert printed(folder, "forms.py").strip() == FILES["forms.expected"].strip()


def test_module_and_package(folder):
    assert printed(folder, "-m", "package") == "package ours\nmain ours\n"


def test_command(folder):
    assert printed(folder, "-c", "import numpy; from whose import whose; print(whose(numpy))") == "ours\n"


def test_threads(folder):
    assert printed(folder, "threads.py") == "1 ours\n"


def test_names_that_user_code_adds_reach_libraries(folder):
    assert printed(folder, "added.py") == "5 5 False\n"


def test_doctest(folder):
    assert printed(folder, "doc.py") == "TestResults(failed=0, attempted=2)\n"


@pytest.mark.parametrize("reach, script, installed", [
    ("user", "ours", "host"),
    ("all", "ours", "ours"),
    ("none", "host", "host"),
    ("installed", "ours", "ours"),
    ("other,installed", "ours", "ours"),
])
def test_reach(folder, reach, script, installed):
    text = "import sys; sys.path.insert(0, 'lib/site-packages'); import numpy, installed; from whose import whose\n" \
           "print(whose(numpy), whose(installed.numpy))"
    assert printed(folder, "--intercept", reach, "-c", text) == f"{script} {installed}\n"


@pytest.mark.parametrize("name", ["missing.py", "bad_call.py", "bad_inside.py"])
def test_no_frame_of_ours_in_a_traceback(folder, name):
    ours, pythons = (run([*start, name], cwd=folder) for start in (command(), python()))
    assert (ours.stderr, ours.code) == (pythons.stderr, pythons.code)


def test_pickled_functions_are_numpys(folder):
    lines = printed(folder, "pickled.py").splitlines()
    assert lines[0] == "True"
    assert "'default_rng'" in lines[1] and lines[1].endswith("False")


@pytest.mark.parametrize("env", [{}, {"LEGATE_MIN_CPU_CHUNK": "1"}])
def test_own_classes_may_give_deferred_arrays(folder, env):
    assert printed(folder, "own_class.py", env=env) == run([*python(), "own_class.py"], cwd=folder).stdout


def test_numpys_tests_count_as_user_code_when_named(folder):
    text = "from legate import _core\n" \
           "for name in 'numpy.lib.tests.test_io', 'numpy.conftest', 'numpy.lib._npyio_impl', 'numpy':\n" \
           "    print(_core.caller_kind({'__name__': name, '__file__': '/x/site-packages/f.py'}))"
    assert printed(folder, "--intercept", "numpy", "-c", text).split() == ["user", "user", "numpy", "numpy"]


def test_callers_are_judged_by_name_and_file(folder):
    rows = {
        "{'__name__': '__main__'}": "user",
        "{'__name__': 'm', '__file__': '/home/u/m.py'}": "user",
        "{'__name__': 'm', '__file__': '/usr/lib/python3/dist-packages/m.py'}": "library",
        "vars(__import__('os'))": "library",
        "vars(__import__('sys'))": "library",
        "vars(__import__('encodings.utf_8'))": "library",
        "vars(__import__('numpy'))": "numpy",
        "vars(__import__('legate'))": "library",
        "{'__name__': 'm'}": "None",
        "{}": "None",
    }
    text = "from legate import _core\n" + "".join(f"print(_core.caller_kind({expression}))\n" for expression in rows)
    assert printed(folder, "-c", text).split() == list(rows.values())


def test_plain_python_can_import_the_namespace(folder):
    text = "import legate.numpy as np, sys; import numpy; print(np is numpy, sys.modules['numpy'] is numpy, np.zeros(3).sum())"
    outcome = run([*python(), "-c", text], cwd=folder)
    assert outcome.stdout == "False True 0.0\n", outcome.stderr


def test_numpy_is_not_imported_for_those_who_do_not_ask(folder):
    text = "import sys; print([name for name in sys.modules if name == 'numpy' or name == 'inspect' or name == 'typing'])"
    assert printed(folder, "-c", text) == "[]\n"


@pytest.mark.parametrize("env", [{}, {"LEGATE_MIN_CPU_CHUNK": "1"}])
def test_libraries_that_ask_for_an_ndarray_are_given_one(folder, env):
    assert printed(folder, "asks.py", env=env) == run([*python(), "asks.py"], cwd=folder).stdout
