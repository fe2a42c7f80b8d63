"""The example programs: the candidate prints what `python` prints, bit for bit or to the rounding of its matrix products.

Promises: every line but the timings is compared, with the exit code and the last line of stderr; `--full` uses each program's own
sizes. Does not measure (scripts/bench does).
"""
import functools
import math
import re

import pytest

from tests import candidate

PROGRAMS = candidate.TOP / "tests" / "programs"
TIMINGS = ("elapsed", "gflops")
EXACT = 0.0

# program: (arguments for tiny tiles, arguments large enough to be deferred as users run, relative tolerance)
TABLE = {
    "attention": ("--n 90 --d 16 --heads 2", "--n 700 --heads 2", 1e-9),
    "black_scholes": ("--n 5000", "--n 700000", EXACT),
    "cavity_flow": ("--n 41 --steps 2 --nit 4", "--n 600 --steps 1 --nit 4", EXACT),
    "cg_poisson": ("--n 60 --iters 6", "--n 700 --iters 5", EXACT),
    "element_loops": ("--n 24 --iters 1", "--n 120 --iters 1", EXACT),
    "fft_poisson": ("--n 64", "--n 512", 1e-9),
    "gemm": ("--n 90 --iters 2", "--n 700 --iters 2", 1e-9),
    "jacobi": ("--n 90 --iters 8", "--n 900 --iters 8", 1e-9),
    "kmeans": ("--n 3000 --iters 3", "--n 60000 --iters 3", 1e-9),
    "logreg": ("--n 3000 --iters 5", "--n 60000 --iters 5", 1e-9),
    "mandelbrot": ("--h 50 --w 70 --maxiter 8", "--h 400 --w 600 --maxiter 8", EXACT),
    "medium_ops": ("--turns 20 --n 3000", "--turns 50 --n 300000", EXACT),
    "monte_carlo_pi": ("--n 9000 --batches 3", "--n 900000 --batches 2", EXACT),
    "nbody": ("--n 80 --steps 2", "--n 800 --steps 2", EXACT),
    "pca": ("--n 2000 --d 16 --k 4", "--n 40000 --d 16 --k 4", 1e-9),
    "row_loops": ("--n 90 --m 14", "--n 1500 --m 60", 1e-5),
    "row_softmax": ("--rows 90 --cols 70", "--rows 900 --cols 700", EXACT),
    "small_loop": ("--iters 200", "--iters 5000", EXACT),
    "sort_hist": ("--n 9000", "--n 900000", EXACT),
    "stencil2d": ("--n 60 --iters 4", "--n 900 --iters 4", EXACT),
}
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)")


def outcome(words, name, arguments, stage):
    return candidate.run([*words, f"{name}.py", *arguments.split()], env=candidate.STAGES[stage], cwd=PROGRAMS, limit_s=600)


def lines(text):
    return [line for line in text.splitlines() if not line.startswith(TIMINGS)]


def differs(ours, oracle, relative):
    """The first pair of lines that differ by more than the tolerance, or None."""
    if len(ours) != len(oracle):
        return ours, oracle
    for mine, theirs in zip(ours, oracle):
        if mine == theirs:
            continue
        numbers = list(zip(map(float, NUMBER.findall(mine)), map(float, NUMBER.findall(theirs))))
        same_words = NUMBER.sub("#", mine) == NUMBER.sub("#", theirs)
        if not same_words or not all(math.isclose(a, b, rel_tol=relative, abs_tol=1e-8 if relative else 0) for a, b in numbers):
            return mine, theirs
    return None


@pytest.fixture(scope="session")
def expected():
    return functools.cache(lambda name, arguments: outcome(candidate.python(), name, arguments, "plain"))


def test_every_program_has_a_row():
    assert sorted(TABLE) == sorted(path.stem for path in PROGRAMS.glob("*.py"))


@pytest.mark.parametrize("stage", candidate.STAGES)
@pytest.mark.parametrize("name", TABLE)
def test_program_prints_what_python_prints(name, stage, expected, request):
    tiny, medium, relative = TABLE[name]
    arguments = medium if stage == "plain" else tiny
    if stage == "plain" and request.config.getoption("--full"):
        arguments = ""
    oracle, ours = expected(name, arguments), outcome(candidate.command(), name, arguments, stage)
    assert oracle.code == 0, oracle.stderr
    assert differs(lines(ours.stdout), lines(oracle.stdout), relative) is None, ours.stderr[-2000:]
    assert ours.last_error_line == oracle.last_error_line
    assert ours.code == oracle.code
