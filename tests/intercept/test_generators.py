"""numpy.random as user code sees it: NumPy's numbers, states, classes and pickles, for small draws and large ones."""
import copy
import pickle

import numpy as host
import pytest

import legate.numpy as ours
from tests.difference import difference

# A draw as text over a generator `g`; {n} is a size.
DRAWS = [
    "g.random({n})", "g.random({n}, dtype='f4')", "g.random(size=({n}, 2))", "g.standard_normal({n})", "g.normal(1, 2, {n})",
    "g.normal(size={n})", "g.uniform(-1, 1, {n})", "g.integers(0, 10, {n})", "g.integers(5, size={n}, dtype='i4')",
    "g.integers(0, 2**40, {n}, endpoint=True)", "g.exponential(2, {n})", "g.standard_exponential({n})", "g.poisson(3, {n})",
    "g.gamma(2, 3, {n})", "g.beta(1, 2, {n})", "g.binomial(10, .3, {n})", "g.choice(9, {n})", "g.choice({n}, 3, replace=False)",
    "g.permutation({n})", "g.permutation(np.arange({n}) * 2)", "g.permuted(np.arange({n}))", "g.triangular(0, 1, 3, {n})",
    "g.multivariate_normal([0, 1], [[2, 0], [0, 3]], {n})", "g.dirichlet([1, 2], {n})", "g.normal(np.arange({n}), 1)",
    "g.integers(np.arange({n}) + 1)", "g.random(out=np.zeros({n}))", "g.random()", "g.normal(0, -1, {n})", "g.integers(5, 5, {n})",
    "g.choice(3, {n}, p=[.2, .3, .5])", "g.bytes({n})", "g.laplace(size={n})", "g.vonmises(0, 1, {n})",
]
LEGACY = [
    "g.rand({n})", "g.rand({n}, 2)", "g.randn({n})", "g.randint(0, 7, {n})", "g.random_sample({n})", "g.normal(3, 2, {n})",
    "g.uniform(size={n})", "g.permutation({n})", "g.choice(9, {n})", "g.exponential(1, {n})", "g.poisson(2, {n})", "g.rand()",
    "g.standard_normal({n})", "g.gamma(2, 1, {n})", "g.random_integers(5, size={n})", "g.tomaxint({n})", "g.normal(0, -1, {n})",
]
SIZES = (3, 0, 200_001)


def drawn(module, make, text):
    """The value of a draw or its exception, and the next number of the generator."""
    values = {"np": module}
    exec(f"g = {make}", values)
    try:
        value = eval(text, values)
    except Exception as error:  # noqa: BLE001 - any exception is a result to compare
        value = f"{type(error).__name__}: {error}"
    return value, eval("g.random_sample() if hasattr(g, 'random_sample') else g.random()", values)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("bits", ["PCG64", "MT19937"])
def test_generator(draw, bits, n):
    text = draw.format(n=n)
    make = f"np.random.Generator(np.random.{bits}(5))"
    assert difference(drawn(host, make, text), drawn(ours, make, text)) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("draw", LEGACY)
def test_random_state(draw, n):
    text = draw.format(n=n)
    assert difference(*(drawn(module, "np.random.RandomState(5)", text) for module in (host, ours))) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("draw", LEGACY)
def test_global_state(draw, n):
    if "tomaxint" in draw:
        pytest.skip("not a function of the module")
    text = draw.format(n=n)

    def outcome(module):
        module.random.seed(15)
        values = {"np": module, "g": module.random}
        try:
            value = eval(text, values)
        except Exception as error:  # noqa: BLE001 - any exception is a result to compare
            value = f"{type(error).__name__}: {error}"
        state = host.random.get_state()
        return value, module.random.randn(), state[2], state[3], bytes(state[1])

    assert difference(outcome(host), outcome(ours)) is None


def test_shuffle_in_place():
    for n in SIZES:
        arrays = [module.arange(n) for module in (host, ours)]
        for module, array in zip((host, ours), arrays):
            module.random.default_rng(4).shuffle(array)
        assert difference(*arrays) is None


def test_classes():
    mine, theirs = ours.random.default_rng(3), host.random.default_rng(3)
    for generator in (mine, theirs):
        for module in (ours, host):
            assert isinstance(generator, module.random.Generator)
        assert ours.random.default_rng(generator) is generator
    assert repr(mine).partition(" at ")[0] == repr(theirs).partition(" at ")[0] and str(mine) == str(theirs)
    assert type(mine).__name__ == "Generator" and type(mine).__module__ == type(theirs).__module__
    assert isinstance(ours.random.RandomState(3), host.random.RandomState)
    assert not isinstance(mine, ours.random.RandomState) and not isinstance(3, ours.random.Generator)

    class Derived(ours.random.Generator):
        def twice(self):
            return self.random() * 2

    assert Derived(ours.random.PCG64(3)).twice() == theirs.random() * 2
    assert not isinstance(mine, Derived)


def test_pickle_and_copy():
    generator = ours.random.default_rng(3)
    generator.random(7)
    expected = copy.deepcopy(generator).random()
    assert pickle.loads(pickle.dumps(generator)).random() == expected
    state = ours.random.RandomState(3)
    state.randn(7)
    assert copy.deepcopy(state).randn() == pickle.loads(pickle.dumps(state)).randn()


def test_spawn_and_seeds():
    for module in (ours, host):
        assert [g.random() for g in module.random.default_rng(5).spawn(2)] == [g.random() for g in host.random.default_rng(5).spawn(2)]
    assert ours.random.default_rng(ours.random.SeedSequence(5)).random() == host.random.default_rng(5).random()
    assert ours.random.default_rng(ours.random.PCG64(5)).random() == host.random.default_rng(5).random()
