"""Executes programs sent as lines of JSON with the host NumPy and with legate.numpy, and answers how they differ.

Promises: one answer line per program: null, or the statement's number and the difference. A crash ends this process only.
With SUITE_SELF set the candidate is the host NumPy itself: nothing may differ then.
"""
import json
import os
import sys
import warnings

import numpy as host

from tests.difference import difference, is_generator, values_difference

if os.environ.get("SUITE_SELF"):
    np = host
else:
    import legate.numpy as np


def execute(module, statements, watch):
    """Runs the statements; watch(i, values, outcome) after each."""
    values = {"np": module, "h": host, **whose(module)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, text in enumerate(statements):
            outcome = None
            try:
                exec(compile("\n" * number + text, "program", "exec"), values)
            except Exception as error:  # noqa: BLE001 - any exception is a result to compare
                outcome = f"{type(error).__name__}: {error}"
            watch(number, values, outcome)
    return values, [(str(item.message), item.lineno if item.filename == "program" else 0) for item in caught if issubclass(item.category, RuntimeWarning)]


def whose(module):
    """Globals that say whose code it is: the oracle's is a library's, where the host NumPy's own functions are left alone."""
    return {"__name__": "oracle", "__file__": "/site-packages/oracle.py"} if module is host else {"__name__": "__main__"}


def assigned(text):
    """The name that a statement binds, if it binds one."""
    name = text.split(" = ")[0].strip()
    return name if name.isidentifier() else None


def judge(statements, eager, warned):
    """(statement, difference) or None."""
    oracle_at = []

    def watch_oracle(number, values, outcome):
        value = values.get(assigned(statements[number]))
        if isinstance(value, host.ndarray):
            oracle_at.append((outcome, value.view(), value.copy() if eager else None))
        else:
            oracle_at.append((outcome, value, snapshot(value) if eager else None))

    found = []

    def watch_ours(number, values, outcome):
        if found:
            return
        expected, value, kept = oracle_at[number]
        if outcome != expected:
            found.append((number, f"raised {outcome}, not {expected}"))
        elif outcome is None and (name := assigned(statements[number])):
            ours = values.get(name)
            text = difference(value, ours, deep=False)
            if not text and eager:
                text = difference_now(kept, ours)
            if text:
                found.append((number, text))

    with host.errstate(all="warn" if warned else "ignore"):
        oracle, oracle_warnings = execute(host, statements, watch_oracle)
        ours, our_warnings = execute(np, statements, watch_ours)
    if found:
        return found[0]
    names = [name for name in oracle if name.startswith("v")]
    if not eager:  # some results are dropped before anyone looks, while what was issued may not have run
        for name in set(names) - set(names[::-4]):
            ours.pop(name, None)
        names = names[::-4]
    for name in names:
        if text := difference(oracle[name], ours.get(name)):
            return len(statements), f"at the end {name}: {text}"
    if warned and set(our_warnings) != set(oracle_warnings):
        lost, extra = set(oracle_warnings) - set(our_warnings), set(our_warnings) - set(oracle_warnings)
        return len(statements), f"warnings missing {sorted(lost)}, extra {sorted(extra)}"
    return None


def snapshot(value):
    """The value as it is now, safe from later writes."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(snapshot, value)) if type(value) in (tuple, list) else value
    # A scalar of a structured array is a view of the element.
    return value.copy() if isinstance(value, (host.ndarray, host.void)) else value


def difference_now(kept, ours):
    """The first difference in values between a snapshot and what the candidate holds now."""
    if type(kept) in (tuple, list):
        return next((f"item {i}: {text}" for i, pair in enumerate(zip(kept, ours)) if (text := difference_now(*pair))), None)
    if is_generator(kept):
        return None  # moves on; compared at the end
    return values_difference(kept, host.asarray(ours)) if isinstance(kept, host.ndarray) else difference(kept, ours)


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        task = json.loads(line)
        answers.write(json.dumps(judge(task["statements"], task["eager"], task["warned"])) + "\n")


if __name__ == "__main__":
    main()
