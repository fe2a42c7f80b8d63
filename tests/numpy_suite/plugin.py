"""A pytest plugin for one process of NumPy's own tests: runs the chosen cases and writes each outcome down as it happens.

Promises: what ran before a crash stays known (one flushed line per event in SUITE_RESULTS), a test over its time limit ends the
process with a stack trace, and the counts of native, rebound and host operations are written at the end. Does not judge.

Events: `start ID`, `end ID passed|failed|skipped|xfailed seconds message`, `collected N`, `broken FILE message`, `ran HOW CALLS`.
"""
import collections
import faulthandler
import json
import os
import sys

import pytest

RESULTS = os.environ["SUITE_RESULTS"]
CHOICE = os.environ["SUITE_CHOICE"]
LIMIT_S = float(os.environ.get("SUITE_TEST_LIMIT_S", "60"))

stream = open(RESULTS, "a", buffering=1)
kinds: dict[str, tuple[str, float, str]] = {}


def write(*words):
    stream.write(json.dumps(words) + "\n")


def named_by(entries, identity):
    """Whether a list entry names the case, its function, its class or its file."""
    bare = identity.split("[", 1)[0]
    parts = bare.split("::")
    return identity in entries or any("::".join(parts[:depth]) in entries for depth in range(1, len(parts) + 1))


def pytest_collection_modifyitems(config, items):
    with open(CHOICE) as file:
        choice = json.load(file)
    wanted, unwanted, done = set(choice["wanted"]), set(choice["unwanted"]), set(choice["done"])
    part, parts = choice["part"]
    chosen = [item for item in items if named_by(wanted, item.nodeid) and not named_by(unwanted, item.nodeid)
              and (choice["slow"] or not item.get_closest_marker("slow"))]
    size = -(-len(chosen) // parts)
    mine = {item for item in chosen[part * size:(part + 1) * size] if item.nodeid not in done}
    kept = [item for item in chosen if item in mine]
    dropped = [item for item in items if item not in mine]
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)
    write("collected", len(kept))


def pytest_collectreport(report):
    if report.failed:
        write("broken", report.nodeid, str(report.longrepr)[-600:])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    write("start", item.nodeid)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
    outcome, seconds, message = kinds.pop(item.nodeid, ("failed", 0.0, "no report"))
    write("end", item.nodeid, outcome, round(seconds, 4), message)


def pytest_runtest_logreport(report):
    outcome, seconds, message = kinds.get(report.nodeid, ("passed", 0.0, ""))
    seconds += report.duration
    if report.failed:
        outcome, message = "failed", reason(report)
    elif report.skipped and outcome != "failed":
        outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
    kinds[report.nodeid] = (outcome, seconds, message)


def reason(report):
    """The failure's last line, as pytest words it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return " ".join(text.split())[:300]


def pytest_sessionfinish():
    core = sys.modules.get("legate._core")
    if core is None:
        return
    totals = collections.Counter()
    for _file, _line, _operation, how, calls, _bytes, _seconds in core.report_rows():
        totals[str(how)] += calls
    for how, calls in totals.items():
        write("ran", how, calls)
