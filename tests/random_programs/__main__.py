"""Command line: python -m tests.random_programs --seed S --count N [--stage STAGE] [--scale SCALE] [--length N] [--summary]."""
import argparse
import collections
import sys
import time

from tests.candidate import STAGES_OF_RANKS
from tests.random_programs.campaign import campaign
from tests.random_programs.known import reason
from tests.random_programs.program import SCALES


def show(failure):
    """Prints a failing program."""
    print(f"--- seed {failure.task.seed}{' eager' if failure.task.eager else ''}{' warned' if failure.task.warned else ''}: "
          f"statement {failure.statement}: {failure.text}")
    print("\n".join(f"    {text}" for text in failure.task.statements), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="tests.random_programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--stage", choices=STAGES_OF_RANKS, default="tiny")
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--length", type=int, default=14)
    parser.add_argument("--ranks", type=int, default=1, help="shards that each program runs on")
    parser.add_argument("--chaos", type=int, help="seed with which messages between shards are delayed and put in another order")
    parser.add_argument("--all", action="store_true", help="print every failing program, not one of each kind")
    parser.add_argument("--self", action="store_true", help="NumPy against itself: nothing may differ")
    options = parser.parse_args()
    env = {**STAGES_OF_RANKS[options.stage], **({"SUITE_SELF": "1"} if options.self else {})}
    if options.ranks > 1:
        env["LEGATE_RANKS_PER_NODE"] = str(options.ranks)
    if options.chaos is not None:
        env["LEGATE_CHAOS"] = str(options.chaos)
    began, kinds = time.monotonic(), set()

    def report(failure):
        if options.all or failure.kind not in kinds:
            show(failure)
        kinds.add(failure.kind)

    failures = campaign(range(options.seed, options.seed + options.count), env, options.scale, options.length, report)
    kinds = collections.Counter(failure.kind for failure in failures)
    for kind, count in kinds.most_common(40):
        print(f"{count:5} {kind}")
    known = collections.Counter(why for failure in failures if (why := reason(failure)))
    for why, count in known.most_common():
        print(f"{count:5} known: {why}")
    alike = options.count - len(failures) + known.total()
    print(f"{alike} of {options.count} programs alike ({known.total()} but for what is known), {time.monotonic() - began:.0f} s")
    return 1 if alike < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
