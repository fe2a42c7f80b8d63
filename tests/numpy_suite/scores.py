"""Compares the candidate's outcomes with stock NumPy's, scores them, and holds them against the list of known failures.

Promises: only what stock NumPy passes counts; a missing outcome is a failure; the known list can only shrink unless its writer asks.
Does not run tests.
"""
import re
from collections import defaultdict
from pathlib import Path

from tests.numpy_suite.nodes import HERE, function


def failing(stock: dict, ours: dict, broken: dict) -> dict[str, tuple[int, int, str]]:
    """Function -> (failing cases, cases that stock passes, one message); functions with nothing failing are left out."""
    counts, messages = defaultdict(lambda: [0, 0]), {}
    for identity, (outcome, *_rest) in stock.items():
        if outcome not in ("passed", "xfailed"):
            continue
        name = function(identity)
        counts[name][1] += 1
        mine = ours.get(identity)
        if mine is None or mine[0] not in ("passed", "xfailed"):
            counts[name][0] += 1
            missing = broken.get(name.split("::")[0], "not run").splitlines() or [""]
            messages.setdefault(name, mine[2] or mine[0] if mine else missing[-1])
    return {name: (bad, all_, messages[name]) for name, (bad, all_) in counts.items() if bad}


def score_by_cases(stock: dict, bad: dict) -> float:
    """The share of the cases which stock passes that pass."""
    passed = sum(outcome[0] in ("passed", "xfailed") for outcome in stock.values())
    return 1 - sum(row[0] for row in bad.values()) / max(passed, 1)


def score_by_functions(stock: dict, bad: dict) -> float:
    """The mean over test functions of the share of each one's cases that pass."""
    names = {function(identity) for identity, outcome in stock.items() if outcome[0] in ("passed", "xfailed")}
    return 1 - sum(bad[name][0] / bad[name][1] for name in bad) / max(len(names), 1)


def known_file(way: str) -> Path:
    """Where the known failures of one way of running are kept."""
    return HERE / f"known_failures_{way}.txt"


def read_known(way: str) -> dict[str, tuple[int, str]]:
    """Function -> (failing cases allowed, reason)."""
    rows = {}
    path = known_file(way)
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            name, rest = line.split("  ", 1)
            count, reason = rest.split("  # ", 1)
            rows[name] = (int(count.split("/")[0]), reason)
    return rows


def write_known(way: str, bad: dict, known: dict, ran: set[str], may_grow: bool) -> None:
    """Shrinks the list to what still fails (and, if asked, adds the rest with its message as the reason)."""
    rows = {}
    for name, (allowed, reason) in known.items():
        if name not in ran:
            rows[name] = (f"{allowed}/?", reason)
        elif name in bad:
            count = bad[name][0] if may_grow else min(bad[name][0], allowed)
            rows[name] = (f"{count}/{bad[name][1]}", reason)
    if may_grow:
        for name, (count, total, message) in bad.items():
            rows.setdefault(name, (f"{count}/{total}", message.replace("\n", " ")[:140]))
    head = "# test function  failing cases/cases that stock passes  # reason; the list grows only where more tests are run\n"
    known_file(way).write_text(head + "".join(f"{name}  {count}  # {reason}\n" for name, (count, reason) in sorted(rows.items())))


def outside_known(bad: dict, known: dict) -> dict[str, tuple[int, int, str]]:
    """What fails beyond the list."""
    return {name: row for name, row in bad.items() if row[0] > known.get(name, (0, ""))[0]}


def groups(bad: dict, most: int = 40) -> list[tuple[float, int, str, str]]:
    """What fails by its message without names and numbers: (weight in functions, functions, message, one function), heaviest first."""
    found = defaultdict(lambda: [0.0, 0, ""])
    for name, (count, total, message) in bad.items():
        row = found[re.sub(r"0x[0-9a-f]+|[\d.]+", "#", message)[:110]]
        row[0] += count / total
        row[1] += 1
        row[2] = row[2] or name
    rows = [(weight, functions, message, name) for message, (weight, functions, name) in found.items()]
    return sorted(rows, reverse=True)[:most]
