"""How many messages rank 0 sends for small programs, and how many bytes: exactly, on two and four ranks.

Promises: counts are those between two moments at which everything issued has run; messages of agreement are counted apart.
"""
import pytest

from tests import candidate
from tests.shards.ranks import FAMILIES, needs_mpi, words

pytestmark = needs_mpi

SIDE = 1024
ROW_BYTES = SIDE * 8
START = f"""
import numpy as np
from legate import _core

SIDE = {SIDE}

def counted(what):
    before = _core.counters()
    result = what()
    after = _core.counters()
    print(after["messages"] - before["messages"], after["message_bytes"] - before["message_bytes"])
    return result

def sweep():
    grid[1:-1, 1:-1] = 0.2 * (grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])

grid = np.zeros(({SIDE}, {SIDE})) + 1
other = np.ones(({SIDE}, {SIDE}))
_core.flush()
"""
# A row without one end: short gaps between values are carried along.
HALO = (1, ROW_BYTES - 8)
# What is done, and the messages and bytes (None: not compared) that rank 0 sends, given log2 of the ranks.
ROWS = {
    "a stencil sweep": ("counted(sweep)\ncounted(sweep)", lambda steps: [HALO, HALO]),
    "an aligned chain": ("counted(lambda: (grid * 2 + other) / 3)", lambda steps: [(0, 0)]),
    "an unchanged halo": ("kept = [counted(lambda: grid[2:] + grid[:-2] + grid[1:-1]) for _ in range(2)]",
                          lambda steps: [(1, ROW_BYTES), (0, 0)]),
    "one value by a mask": ("mask = grid < other\ncounted(lambda: grid.__setitem__(mask, 7))", lambda steps: [(0, 0)]),
    "new values by a mask": ("mask = grid < other + 1\ndef step():\n    grid[mask] = grid[mask] * grid[mask] + other[mask]\n    grid[mask] += 1\n"
                             "counted(step)", lambda steps: [(0, 0)]),
    # Whose result is shared out as evenly as what it is picked from: only the counts go around.
    "elements by a mask": ("kept = counted(lambda: grid[grid <= other])", lambda steps: [(steps, steps * 8 * 2**steps)]),
    # The first half of the rows makes up a result that is shared out evenly.
    "elements of a half": ("grid[SIDE // 2:] = 5\nkept = counted(lambda: grid[grid <= other])",
                           lambda steps: [(steps + 1, steps * 8 * 2**steps + SIDE * ROW_BYTES // 2**steps // 2)]),
    "values by a mask": ("kept = grid[grid <= other]\ncounted(lambda: grid.__setitem__(grid <= other, kept))",
                         lambda steps: [(steps, steps * 8 * 2**steps)]),
    "a diagonal": ("counted(lambda: grid.flat.__setitem__(slice(None, None, %d), 3))\ncounted(lambda: np.eye(%d))" % (SIDE + 1, SIDE),
                   lambda steps: [(0, 0), (0, 0)]),
    "a diagonal of the diagonal": ("counted(lambda: np.diag(np.diag(grid)))", lambda steps: [(0, 0)]),
    "a slice of all elements": ("counted(lambda: grid.flat.__setitem__(slice(5, -9, 7), 3))", lambda steps: [(0, 0)]),
    "a stream of draws": ("counted(lambda: np.random.rand(%d, %d))\ncounted(lambda: np.random.randn(%d, %d))" % (4 * (SIDE,)),
                          lambda steps: [(0, 0), (0, 0)]),
    "running totals along rows": ("counted(lambda: grid.cumsum(1))", lambda steps: [(0, 0)]),
    "running totals down the columns": ("counted(lambda: grid.cumsum(0))", lambda steps: [(4, ROW_BYTES)]),
    "running totals of whole numbers": ("line = np.arange(%d)\n_core.flush()\ncounted(line.cumsum)" % SIDE ** 2,
                                        lambda steps: [(steps, 9 * steps)]),
    "a running product of all": ("counted(grid.cumprod)", lambda steps: [(1, 8)]),
    # Every shard has the indices: the owners write, and a read puts together what each has.
    "rows by a list": ("counted(lambda: grid.__setitem__([0, 500, -1], 5))\nkept = counted(lambda: grid[[0, 500, -1]])",
                       lambda steps: [(0, 0), (steps, steps * 3 * ROW_BYTES)]),
    # Indices of what lives at the shard: it is agreed that they are in range and, each time, that nothing is asked for.
    "elements by an index array": ("flat, places = grid.ravel(), np.arange(SIDE * SIDE)\n"
                                   "kept = [counted(lambda: flat[places]) for _ in range(2)]",
                                   lambda steps: [(2 * steps, steps * (16 + 4 * 2**steps)), (steps, steps * 4 * 2**steps)]),
    # The other half of the elements: all of them are asked for, eight bytes each, and come, as many.
    "elements from afar": ("flat, places = grid.ravel(), (np.arange(SIDE * SIDE) + SIDE * SIDE // 2) % (SIDE * SIDE)\n"
                           "kept = counted(lambda: flat[places])",
                           lambda steps: [(2 * steps + 2, steps * (16 + 4 * 2**steps) + 2 * SIDE * ROW_BYTES // 2**steps)]),
    # Sums go on from rank to rank: of what is whole, of the block that is not, and from the last one to all. Twice before, it is agreed that
    # all places are among the edges.
    "sums of weights by bin": ("flat, weights = grid.ravel() + 0.5, other.ravel()\n_core.flush()\n"
                               "counted(lambda: np.histogram(flat, 64, (0, 3), weights=weights))", lambda steps: [(3 * steps + 1, (steps + 1) * 130 * 8 + 2 * steps * 16)]),
    "counts between edges": ("counted(lambda: np.histogram(grid, [0.0, 0.5, 2.0, 7.0]))", lambda steps: [(steps, steps * 5 * 8)]),
    # Rows of a result are made where those of its operands live; of overlapping ones the neighbour's are fetched.
    "sums of products of rows": ("counted(lambda: np.einsum('ij,ij->i', grid, other))\ncounted(lambda: np.einsum('ij,jk->ik', grid, np.ones((SIDE, 4))))\n"
                                 "stack = grid.reshape(64, -1, SIDE)\ncounted(lambda: np.einsum('bij,bij->b', stack, stack))",
                                 lambda steps: [(0, 0), (0, 0), (0, 0)]),
    "values between points": ("counted(lambda: np.interp(grid, [0.0, 1.0, 2.0], [3.0, 4.0, 6.0]))", lambda steps: [(0, 0)]),
    "a correlation with few": ("line = grid.ravel()\ncounted(lambda: np.correlate(line, np.ones(9)))\ncounted(lambda: np.convolve(line, np.ones(9), 'same'))",
                               # The last rank needs nothing, and the first one is asked for nothing but the line's first nine.
                               lambda steps: [(0, 0), (steps, 9 * 8 * steps)]),
    "rows by counts": ("counted(lambda: np.repeat(grid, 2, 1))\ncounted(lambda: np.repeat(grid, np.full(SIDE, 4), 0))",
                       lambda steps: [(0, 0), (steps, steps * 4 * 2**steps)]),
    # A place and an element for each column go around; in blocks of rows nothing does.
    "places of the largest": ("counted(lambda: grid.argmax(0))\nstack = grid.reshape(16, -1, SIDE)\ncounted(lambda: stack.argmax(1))",
                              lambda steps: [(steps, steps * 2 * ROW_BYTES), (0, 0)]),
    # Rows are picked from where they live; NumPy's memory of the other form has the picked columns first, which live apart.
    "columns by an index array": ("places = np.arange(0, SIDE, 16)\nkept = [counted(lambda: grid.take(places, 1)), counted(lambda: grid[:, places])]",
                                  lambda steps: [(0, 0), (2**steps - 1, (2**steps - 1) * 64 * ROW_BYTES // 4**steps)]),
    # It is agreed that the indices are in range and, each time, that nothing is sent.
    "new values of columns": ("places = np.arange(SIDE)[::-1].copy()\ncounted(lambda: grid.__setitem__((slice(None), places), 5))",
                              lambda steps: [(2 * steps, steps * (16 + 4 * 2**steps))]),
    # The smallest and largest index in one exchange, the counts in another.
    "counts by bin": ("labels = np.arange(SIDE * SIDE) % 64\n_core.flush()\nkept = counted(lambda: np.bincount(labels))",
                      lambda steps: [(2 * steps, None)]),
    "values among edges": ("edges = np.linspace(0, 2, 9)\nkept = counted(lambda: np.searchsorted(edges, grid))",
                           lambda steps: [(0, 0)]),
    "an array to a file and back": ("np.save('kept', grid)\ncounted(lambda: np.save('kept', grid))\nkept = counted(lambda: np.load('kept.npy'))",
                                    lambda steps: [(0, 0), (0, 0)]),
    # Values that live in columns go to the shards of their rows first; then a few messages, however long the columns are.
    "rows from columns": ("target, places = np.zeros((513, 64), 'i4'), np.arange(40000) % 513\n"
                          "values = np.asfortranarray(np.ones((40000, 64), 'i4'))\n_core.flush()\n"
                          "counted(lambda: target.__setitem__(places, values))",
                          lambda steps: [(3 * 2**steps - 2, None)]),
    "a product of stacks": ("stack = grid.reshape(16, SIDE // 16, SIDE)\n_core.flush()\ncounted(lambda: stack @ stack.transpose(0, 2, 1))",
                            lambda steps: [(0, 0)]),
    # What events there were is agreed on; where lines lie across the shards, each gets some of them at a time, and sends them back.
    "lines to be transformed": ("kept = counted(lambda: np.fft.fft(grid))", lambda steps: [(steps, steps)]),
    "a transform of two axes": ("kept = counted(lambda: np.fft.fft2(grid))",
                                lambda steps: [(2 * steps + 2 * (2**steps - 1) * 32 // 4**steps,
                                                2 * steps + 2 * (2**steps - 1) * 2 * SIDE * ROW_BYTES // 4**steps)]),
    "few distinct values": ("labels = np.arange(SIDE * SIDE) % 64\n_core.flush()\nkept = counted(lambda: np.unique(labels))",
                            lambda steps: [(2 * steps, None)]),
    "rows to be sorted": ("counted(lambda: grid.sort())", lambda steps: [(0, 0)]),
    # What is peculiar among the values, least and greatest, as many halvings as a place has bits, what is less, how many are
    # equal before, how many come: then all of this shard's part goes to the last one.
    "a line to be sorted": ("line = np.arange(SIDE * SIDE)[::-1].copy()\n_core.flush()\ncounted(line.sort)",
                            lambda steps: [(25 * steps + 1, steps * (49 + 22 * 8 * (2**steps - 1) + 8 * 2**steps // 2)
                                            + SIDE * ROW_BYTES // 2**steps)]),
    # Of a line that is spread a sample and what lies near its middle go around, in many small steps; of rows their medians.
    "a median": ("line = np.arange(SIDE * SIDE) * 1.5\n_core.flush()\nkept = counted(lambda: np.median(line))",
                 lambda steps: [(60 * steps + 2, (18054, 27548)[steps - 1])]),
    "medians of rows": ("kept = counted(lambda: np.median(grid, 1))", lambda steps: [(2 * steps, None)]),
    "a total": ("counted(lambda: float(grid.sum()))", lambda steps: [(steps, None)]),
}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", ROWS)
def test_messages(name, ranks, tmp_path):
    text, expected = ROWS[name]
    path = tmp_path / "app.py"
    path.write_text(START + text + "\n")
    seen = candidate.run(words(FAMILIES[0], ranks, path), cwd=tmp_path, limit_s=60)
    assert seen.code == 0, seen.stderr
    found = [tuple(map(int, line.split())) for line in seen.stdout.splitlines()]
    wanted = expected(ranks.bit_length() - 1)
    assert [messages for messages, _ in found] == [messages for messages, _ in wanted]
    exact = [(found_bytes, known) for (_, found_bytes), (_, known) in zip(found, wanted) if known is not None]
    assert [found_bytes for found_bytes, _ in exact] == [known for _, known in exact]
