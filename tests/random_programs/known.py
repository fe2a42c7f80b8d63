"""Differences that are known and not mended yet: which failing programs show them, and what is behind each.

Promises: a row names one cause, by the text of the difference and, where that is not enough, of the program. The campaign counts and prints
them apart; anything else fails the run. The table only shrinks.
"""
import re

# (in the difference, in the failing statement or the whole program, reason)
TABLE = [
    (r"(^|: )strides .*\d{4}", r"order='F'.*\n(.*\n)*.*\w\)* [-+*/&|^] ",
     "memory order of an expression in which NumPy reuses a temporary of 256 KiB or more, whose order the result then has"),
    (r"raised TypeError: (int|float)\(\) argument must be .* 'complex'", r"copyto", "the host's copyto of a complex scalar into a deferred array, unsafely"),
    (r"Casting complex values to real discards", r"(reduce|where=)", "ComplexWarning of a reduction with dtype= or of a masked output"),
    (r"warnings missing \[\('[a-z ]+ in reduce', 0\)\], extra \[\('[a-z ]+ in reduce', \d+\)\]$", r"\.(sum|mean|prod)\(",
     "the line of a method's warning: the program's, by design, where NumPy names a line of its own"),
    (r"np\.\w+\(-?0\.0\), not np\.\w+\(-?0\.0\)$", r"(min|max)", "the sign of a zero that is the extreme of zeros of both signs"),
    (r"ndarray which is no \w+$", r"axis=None, keepdims=True", "a reduction of a 0-d array with keepdims gives an array, not a scalar"),
    (r"elements? differ", r"\*\*=", "the last bit of a power whose operand and result lie interleaved: NumPy's loop then takes its scalar path"),
]


def reason(failure) -> str | None:
    """Why the failure is known, or None."""
    statements = failure.task.statements
    last = statements[min(failure.statement, len(statements) - 1)] if statements else ""
    for difference, program, why in TABLE:
        if re.search(difference, failure.text) and (re.search(program, last) or re.search(program, "\n".join(statements))):
            return why
    return None
