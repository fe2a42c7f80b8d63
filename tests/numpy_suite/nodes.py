"""Which of NumPy's own tests are run: the two lists, and their test files with the number of cases each holds.

Promises: nothing outside `api_tests.txt` or inside `excluded.txt` runs. Does not run anything.
"""
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES_PER_PART = 1500


@dataclass(frozen=True)
class Piece:
    """One process's work: a share of one test file."""

    file: str
    part: int
    parts: int
    wanted: tuple[str, ...]


def read(name: str) -> dict[str, int]:
    """Node id -> number of cases, from one of the lists."""
    rows = {}
    for line in (HERE / name).read_text().splitlines():
        if not line.startswith("#"):
            node, count = line.split("#")[0].strip(), line.split("#")[1].split()[0]
            rows[node] = int(count)
    return rows


def function(identity: str) -> str:
    """The test function of a case: its node id without parameters."""
    return identity.split("[", 1)[0]


def pieces(names: list[str]) -> list[Piece]:
    """The work, one piece per file or share of a file; only of files whose path contains one of `names`, if any are given."""
    files: dict[str, dict[str, int]] = {}
    for node, count in read("api_tests.txt").items():
        files.setdefault(node.split("::")[0], {})[node] = count
    found = []
    for file, nodes in files.items():
        if names and not any(name in file for name in names):
            continue
        parts = max(1, round(sum(nodes.values()) / CASES_PER_PART))
        found += [Piece(file, part, parts, tuple(nodes)) for part in range(parts)]
    return found


def unwanted() -> list[str]:
    """Node ids that are never run."""
    return list(read("excluded.txt"))
