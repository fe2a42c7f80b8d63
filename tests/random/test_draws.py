"""Every draw against NumPy's: value bits, dtype, shape, and the generator's state afterwards, on every bit generator.

Promises: walks a table of draws over sizes around tile and word edges, from fresh states and from states that keep a spare half word or
a spare normal deviate, alone and in random sequence. Expected numbers are NumPy's own.
"""
import concurrent.futures
import copy
import os
import pickle
import random

import numpy as host
import pytest

from tests.candidate import python, run
from tests.difference import difference
from tests.numpy.oracle import candidate, rows

ENGINES = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
TINY = os.environ.get("LEGATE_MIN_CPU_CHUNK") == "1"
# Around words of 8, 32 and 64 parts; then around what users' arrays start to be deferred at.
SIZES = (0, 1, 2, 3, 31, 32, 33, 100, 1001) if TINY else (1, 32_767, 32_768, 40_001)
LARGE = 50_003 if TINY else 1_000_007

DRAWS = rows(r"""
g.random(N)
g.random((2, N))
g.random(N, dtype='f4')
g.random(N, np.float32)
g.random(size=N, dtype=float)
g.uniform(-3, 11, N)
g.uniform(size=N)
g.uniform(np.float32(0.1), 2, (N, 1))
g.standard_normal(N)
g.standard_normal(N, dtype='f4')
g.normal(1.5, 2.5, N)
g.normal(size=(N, 2))
g.normal(scale=0, size=N)
g.lognormal(0.5, 0.25, N)
g.standard_exponential(N)
g.standard_exponential(N, dtype='f4')
g.standard_exponential(N, method='inv')
g.standard_exponential(N, 'f4', 'inv')
g.exponential(3.0, N)
g.exponential(size=N)
g.integers(1000, size=N)
g.integers(-5, 3 * 10**9, N)
g.integers(0, 2**32, N)
g.integers(0, 2**32 - 1, N, dtype='u8')
g.integers(0, 2**33, N)
g.integers(-2**62, 2**62 + 12345, N)
g.integers(-2**63, 2**63, N)
g.integers(0, 2**64, N, dtype='u8')
g.integers(7, 8, N)
g.integers(0, 9, N, endpoint=True)
g.integers(0, 3, N, 'i4')
g.integers(-2**31, 2**31, N, dtype='i4')
g.integers(5, 2**31 + 9, N, dtype='u4')
g.integers(0, 6, N, dtype='i2')
g.integers(-2**15, 2**15, N, dtype='i2')
g.integers(0, 60000, N, dtype='u2')
g.integers(0, 7, N, dtype='i1')
g.integers(-128, 127, N, dtype='i1', endpoint=True)
g.integers(0, 200, N, dtype='u1')
g.integers(3, 67, (N, 3), dtype='u1')
g.integers(0, 2, N, dtype=bool)
g.integers(0, 1, N, dtype=bool)
g.choice(1000, N)
g.choice(1000, (N, 2), shuffle=False)
""")

LEGACY = rows(r"""
g.random_sample(N)
g.random((N, 2))
g.rand(N)
g.rand(2, N)
g.uniform(-2, 7, N)
g.uniform(7, -2, N)
g.randn(N)
g.randn(N, 3)
g.standard_normal(N)
g.normal(1, 3, N)
g.lognormal(0.5, 0.25, N)
g.standard_exponential(N)
g.exponential(2.0, N)
g.randint(1000, size=N)
g.randint(-7, 2**40 + 3, N)
g.randint(0, 2**32, N)
g.randint(0, 2**20, (2, N))
g.randint(-2**63, 2**63, N)
g.randint(5, 6, N)
g.randint(0, 3, N, dtype='i4')
g.randint(0, 2**32, N, dtype=np.uint32)
g.randint(0, 6, N, dtype='i2')
g.randint(0, 7, N, 'i1')
g.randint(0, 200, N, dtype='u1')
g.randint(0, 2, N, dtype=bool)
g.random_integers(1, 6, N)
g.choice(1000, N)
""")

# Calls that NumPy answers in its own way: errors, results elsewhere, bounds that are arrays.
OTHERS = rows(r"""
g.uniform(1, 0, N)
g.uniform(0, np.inf, N)
g.normal(0, -1, N)
g.exponential(-1.0, N)
g.integers(5, 5, N)
g.integers(0, 300, N, dtype='u1')
g.integers(0, 9, N, dtype='f8')
g.integers(0, 9, N, dtype='>i4')
g.random(N, dtype='i4')
g.random(N, nonsense=1)
g.normal(np.arange(N), 1.0)
g.normal(np.arange(N), 1.0, N)
g.integers(0, np.arange(1, N + 1), N)
g.random(out=np.empty(N))
g.random(N, out=np.empty(N))
g.standard_gamma(2.0, N)
g.poisson(3.0, N)
g.permutation(N)
g.choice(N, N)
g.choice(9, N, p=np.full(9, 1 / 9))
g.choice(N, N // 2, replace=False)
g.choice(0, N)
g.choice(2.5, N)
g.choice(np.arange(N) * 2, 7, replace=False)
""")


def tell(state):
    """A bit generator's state as text."""
    return repr({name: tell(value) if isinstance(value, dict) else host.asarray(value).tolist() for name, value in state.items()})


def make(module, engine, legacy, seed, used):
    """A generator; `used` ones keep a spare half word, and a spare normal deviate if they are legacy."""
    bits = getattr(module.random, engine)(seed)
    made = module.random.RandomState(bits) if legacy else module.random.Generator(bits)
    if used and legacy:
        made.randint(0, 9, 3, dtype="i4"), made.standard_normal(5)
    elif used:
        made.integers(0, 10, 3), made.standard_normal(17)
    return made


def state_of(generator, legacy):
    return tell(generator.get_state(legacy=False) if legacy else generator.bit_generator.state)


def draw(module, generator, text, size):
    """(result, exception)."""
    try:
        return eval(text, {"np": module, "g": generator, "N": size}), None
    except Exception as raised:  # noqa: BLE001 - any exception is a result to compare
        return None, f"{type(raised).__name__}: {raised}"


def compare(engine, legacy, used, texts_and_sizes, seed=7):
    """Asserts that both worlds make the same draws one after the other."""
    oracle = make(host, engine, legacy, seed, used)
    ours = make(candidate(), engine, legacy, seed, used)
    for text, size in texts_and_sizes:
        wanted, wanted_error = draw(host, oracle, text, size)
        got, got_error = draw(candidate(), ours, text, size)
        case = f"{text} on {engine}, N = {size}, {'used' if used else 'fresh'}"
        assert got_error == wanted_error, f"{case}: raised {got_error}, not {wanted_error}"
        found = difference(wanted, got)
        assert found is None, f"{case}: {found}"
        assert state_of(ours, legacy) == state_of(oracle, legacy), f"{case}: state afterwards"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", DRAWS)
def test_generator(text, engine):
    for used in (False, True):
        for size in SIZES:
            compare(engine, False, used, [(text, size)])


@pytest.mark.parametrize("engine", ("MT19937", "PCG64"))
@pytest.mark.parametrize("text", LEGACY)
def test_random_state(text, engine):
    for used in (False, True):
        for size in SIZES:
            compare(engine, True, used, [(text, size)])


@pytest.mark.parametrize("text", OTHERS)
def test_what_numpy_answers_itself(text):
    for size in SIZES:
        compare("PCG64", False, False, [(text, size)])


@pytest.mark.parametrize("text", ("g.random(N)", "g.standard_normal(N)", "g.integers(0, 1000, N)", "g.exponential(2, N)"))
@pytest.mark.parametrize("engine", ("PCG64", "MT19937"))
def test_large(text, engine):
    compare(engine, False, True, [(text, LARGE)])


@pytest.mark.parametrize("text", ("g.rand(N)", "g.randn(N)", "g.randint(0, 1000, N)"))
def test_large_legacy(text):
    compare("MT19937", True, True, [(text, LARGE)])


@pytest.mark.parametrize("seed", range(12))
def test_draws_in_sequence(seed):
    chance = random.Random(seed)
    legacy = seed % 3 == 0
    texts = LEGACY if legacy else DRAWS
    sequence = [(chance.choice(texts), chance.choice(SIZES)) for _ in range(25)]
    compare(chance.choice(ENGINES), legacy, chance.random() < 0.5, sequence, seed)


def test_the_global_state_is_numpys():
    """The functions of the module and NumPy's own draw from one state."""
    size = SIZES[-1]
    texts = ("g.rand(N)", "g.randn(N)", "g.randint(0, 9, N)", "g.uniform(1, 2, N)", "g.standard_normal(N)", "g.ranf(N)",
             "g.sample((N, 2))", "g.random(N)", "g.exponential(2, N)")
    results = []
    for module in (host, candidate()):
        module.random.seed(15210)
        drawn = [draw(module, module.random, text, size) for text in texts]
        results.append((drawn, repr(host.random.get_state()), host.random.rand(3).tolist()))
    (wanted, *wanted_state), (got, *got_state) = results
    for text, want, have in zip(texts, wanted, got):
        assert have[1] == want[1], text
        assert difference(want[0], have[0]) is None, text
    assert got_state == wanted_state


def test_what_is_drawn_stays():
    """A draw that is still to be made reads the state of its line, not of a later one."""
    np = candidate()
    ours, oracle = np.random.default_rng(3), host.random.default_rng(3)
    size = SIZES[-1]
    first, kept = ours.random(size), oracle.random(size)
    ours.bit_generator.state, oracle.bit_generator.state = ours.bit_generator.state, oracle.bit_generator.state
    ours.bit_generator.advance(5), oracle.bit_generator.advance(5)
    assert difference(oracle.random(size), ours.random(size)) is None
    assert difference(kept, first) is None
    assert [g.random() for g in ours.spawn(2)] == [g.random() for g in oracle.spawn(2)]


@pytest.mark.parametrize("legacy", (False, True))
def test_copies_draw_on(legacy):
    """A pickled or copied generator is of the same type, and goes on where the original was."""
    ours = make(candidate(), "MT19937", legacy, 5, True)
    oracle = make(host, "MT19937", legacy, 5, True)
    size = SIZES[-1]
    for copied in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
        assert type(copied) is type(ours)
        assert difference(copy.deepcopy(oracle).uniform(1, 2, size), copied.uniform(1, 2, size)) is None
    assert state_of(ours, legacy) == state_of(oracle, legacy)


def test_libraries_get_host_arrays():
    """Code of an installed package that was handed a generator draws what NumPy would give it."""
    ours, oracle = make(candidate(), "PCG64", False, 5, False), make(host, "PCG64", False, 5, False)
    library = {"__name__": "installed", "__file__": pytest.__file__}
    exec("def draw(generator, size):\n    return generator.random(size), generator.poisson(3, size)", library)
    for got, wanted in zip(library["draw"](ours, SIZES[-1]), library["draw"](oracle, SIZES[-1])):
        assert type(got) is host.ndarray
        assert difference(wanted, got) is None


@pytest.mark.parametrize("text", ("g.random(N)", "g.standard_normal(N)"))
def test_threads_share_a_generator(text):
    """Threads that draw from one generator get the stream's draws, in some order."""
    size, count = SIZES[-1], 12
    ours, oracle = make(candidate(), "PCG64", False, 9, False), make(host, "PCG64", False, 9, False)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: draw(candidate(), ours, text, size)[0], range(count)))
    wanted = [draw(host, oracle, text, size)[0] for _ in range(count)]
    assert sorted(host.asarray(array).tobytes() for array in drawn) == sorted(array.tobytes() for array in wanted)
    assert state_of(ours, False) == state_of(oracle, False)


def test_what_does_not_fit_draws_nothing():
    ours = make(candidate(), "PCG64", False, 9, False)
    before = state_of(ours, False)
    for text in ("g.random(N)", "g.standard_normal(N)"):
        assert draw(candidate(), ours, text, 10**15)[1].startswith("MemoryError: Unable to allocate 7.11 PiB for an array")
    assert state_of(ours, False) == before


FUSES = """
import legate.numpy as np
from legate import _core
below = int((np.random.default_rng(4).random(100_000) < 0.5).sum())
print(below, _core.counters()["groups"], _core.counters()["unstored"])
"""


def test_a_draw_fuses_with_what_reads_it():
    """A draw that only one expression reads is never stored, neither its items nor their numbers: in a process of its own, since
    pytest records warnings, and so operations run at their lines."""
    outcome = run([*python(), "-c", FUSES])
    below = int((host.random.default_rng(4).random(100_000) < 0.5).sum())
    assert outcome.stdout.split()[:2] == [str(below), "1"], outcome.stderr
    assert int(outcome.stdout.split()[2]) >= 2
