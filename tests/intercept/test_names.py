"""Every public name of NumPy is in the namespace, looks like NumPy's, and has a way to run on deferred arrays with a reason."""
import copy
import importlib
import inspect
import pickle

import numpy as host
import pytest

import legate.numpy as ours
from legate import _core, policy, rebind

MODULES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.ma", "numpy.polynomial", "numpy.lib", "numpy.strings",
           "numpy.char", "numpy.rec", "numpy.testing", "numpy.dtypes", "numpy.exceptions", "numpy.emath", "numpy.ctypeslib",
           "numpy.polynomial.polynomial", "numpy.lib.stride_tricks")


def pairs():
    """(dotted name, host's object, ours) for every name of every public module."""
    for module in MODULES:
        name = module.partition(".")[2]
        theirs, mine = host, ours
        for part in filter(None, name.split(".")):
            theirs, mine = getattr(theirs, part), getattr(mine, part)
        for attribute in dir(theirs):
            yield f"{module}.{attribute}", getattr(theirs, attribute), getattr(mine, attribute)


def test_every_name_is_there():
    assert set(dir(host)) == set(dir(ours))
    assert ours.__all__ == host.__all__ and ours.__version__ == host.__version__
    assert len(list(pairs())) > 1300


def test_what_differs_looks_like_numpys():
    for name, theirs, mine in pairs():
        if mine is theirs or inspect.ismodule(theirs) or name.partition(".")[2].startswith("__"):
            continue
        for attribute in ("__name__", "__module__", "__doc__"):
            assert getattr(theirs, attribute, None) == getattr(mine, attribute, None), (name, attribute)
        assert callable(theirs) == callable(mine), name


def signature(function):
    try:
        return str(inspect.signature(function))
    except ValueError:
        return None


def test_signatures():
    """Those that CPython can write for builtins; defaults that are classes it cannot."""
    for name, theirs, mine in pairs():
        if mine is not theirs and inspect.isroutine(theirs) and "<class" not in (signature(theirs) or ""):
            if not name.startswith("numpy.random."):
                assert signature(theirs) == signature(mine), name


def dispatched():
    """Every dispatched function of the public modules, by its name."""
    found = {}
    for module in ("numpy", "numpy.linalg", "numpy.fft"):
        for name, value in vars(importlib.import_module(module)).items():
            if rebind.is_dispatched(value):
                found[value] = f"{module}.{name}"
    return found


@pytest.mark.parametrize("function", dispatched(), ids=dispatched().values())
def test_every_dispatched_function_has_a_way(function):
    ours.fft  # is entered when it is asked for
    way, reason = policy.way_of(function.__name__, rebind.implementation(function))
    entered = function in _core.array_function_table
    assert reason, f"{function.__name__} runs on the {way} without a reason in legate/policy.py"
    assert entered or way == "host", f"{function.__name__} is {way} but not in the table"


def test_the_policy_names_only_what_numpy_has():
    names = {function.__name__ for function in dispatched()} | {"_vec_string", "copyto"}
    assert set(policy.HOST_THOUGH_PYTHON) <= names
    assert set(policy.HOST_BECAUSE_C) <= names | {"concat"}


def test_fronts_pickle_and_copy():
    for name, theirs, mine in pairs():
        if mine is not theirs and type(mine).__name__ == "builtin_function_or_method" and not name.startswith("numpy.random."):
            assert copy.copy(mine) is mine and copy.deepcopy(mine) is mine, name
            assert pickle.loads(pickle.dumps(mine)) in (mine, theirs), name


@pytest.mark.parametrize("text", [
    "np.zeros(3)", "np.zeros((2, 3), 'f4', 'F')", "np.ones(shape=[2, 3])", "np.full((2, 2), 7)", "np.empty(0)", "np.arange(5)",
    "np.arange(2, 9, 2.5)", "np.arange(5, dtype='f4')", "np.array([1, 2])", "np.array(3)", "np.asarray([[1.0]])",
    "np.ascontiguousarray(3)", "np.asfortranarray([[1, 2], [3, 4]])", "np.linspace(0, 1, 5)", "np.logspace(0, 1, 3)",
    "np.geomspace(1, 8, 4)", "np.eye(3)", "np.eye(3, 4, k=1)", "np.eye(3, M=2)", "np.identity(3)", "np.tri(3, 4)",
    "np.indices((2, 3))", "np.indices((2, 3), sparse=True)", "np.fromfunction(lambda i, j: i + j, (2, 3))", "np.hanning(5)",
    "np.kaiser(5, 14)", "np.mgrid[0:2, 0:3]", "np.ogrid[0:2, 0:3]", "np.mgrid[0:1:5j]", "np.r_[1:4, 0, 4]", "np.c_[[1, 2], [3, 4]]",
    "np.frombuffer(b'12345678')", "np.fromiter(range(5), int)", "np.fromstring('1 2', sep=' ')", "np.zeros_like([1, 2])",
    "np.full_like([1, 2], 5)", "np.outer([1, 2], [3, 4])", "np.tile([1, 2], 3)", "np.repeat([1, 2], 3)", "np.kron([1, 2], [3, 4])",
    "np.concatenate([[1], [2]])", "np.zeros('x')", "np.zeros(-1)", "np.arange()", "np.arange('a')", "np.linspace(0, 1, -1)",
    "np.zeros(2, foo=3)", "np.eye('x')", "np.array()", "np.triu_indices(3)", "np.diag_indices(3)", "np.require([1, 2], 'f4', 'C')",
    "np.asarray_chkfinite([1.0, np.inf])", "np.fft.fftfreq(5)", "np.fft.rfftfreq(5, d=2)", "np.meshgrid([1, 2], [3, 4])",
    "np.zeros(2**70)", "np.zeros((2**40, 2**40))", "np.zeros(True)", "np.zeros(())", "np.ones(np.int64(3))", "np.zeros(np.array([2, 3]))",
])
def test_small_results_are_the_hosts(text):
    def outcome(module):
        try:
            return repr(eval(text, {"np": module}))
        except Exception as error:  # noqa: BLE001 - any exception is a result to compare
            return f"{type(error).__name__}: {error}"

    assert outcome(ours) == outcome(host)
