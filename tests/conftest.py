"""Options of the test run: the stage (how finely work is split), the ranks of programs that are run, and full program sizes.

Promises: the chosen stage's environment is set before anything imports legate. Does not start anything.
"""
import os
import sys

from tests.candidate import STAGES_OF_RANKS, TOP


def pytest_addoption(parser):
    parser.addoption("--stage", choices=sorted(STAGES_OF_RANKS), default="tiny", help="how finely the tests in this process split work")
    parser.addoption("--ranks", type=int, help="how many ranks each program under test runs on")
    parser.addoption("--full", action="store_true", help="run the example programs at their full sizes")


def pytest_configure(config):
    for name in [name for name in os.environ if name.startswith("LEGATE_") and "TEST" not in name]:
        del os.environ[name]
    os.environ.update(STAGES_OF_RANKS[config.getoption("--stage")])
    if ranks := config.getoption("--ranks"):
        os.environ["LEGATE_TEST_RANKS"] = str(ranks)
    try:
        import legate  # noqa: F401
    except ImportError:
        sys.path.append(str(TOP / "site-packages"))


def pytest_report_header(config):
    return f"stage: {config.getoption('--stage')}"
