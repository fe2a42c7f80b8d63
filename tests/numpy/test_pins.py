"""Memory handed out: host aliases, buffers, pickles and copies of deferred arrays, and writes seen on both sides.

Promises: while an alias lives, reads and writes on either side are seen on the other at once. Does not test libraries (tests/cases does).
"""
import copy
import gc
import pickle
import threading

import numpy as host
import pytest

from legate import _core
from tests.numpy.oracle import candidate, sizes


@pytest.fixture
def grid():
    rows, columns = sizes()["r"], sizes()["c"]
    return candidate().arange(rows * columns, dtype="f8").reshape(rows, columns) * 1.0


def test_an_alias_sees_deferred_writes(grid):
    alias = host.asarray(grid)
    assert isinstance(alias, host.ndarray) and alias[0, 1] == 1
    grid[0, 1] = 50
    grid += 1
    assert alias[0, 1] == 51
    assert alias[1, 0] == sizes()["c"] + 1


def test_deferred_work_sees_an_alias_write(grid):
    alias = host.asarray(grid)
    view = grid[:, 1]
    alias[0, 1] = -7
    assert view[0] == -7
    assert (grid * 2)[0, 1] == -14
    alias[:] = 3
    assert grid.sum() == 3 * grid.size


def test_an_alias_of_a_view_is_a_view(grid):
    alias = host.asarray(grid[1:3, ::2])
    assert alias.strides == grid[1:3, ::2].strides
    alias[...] = 0
    assert grid[1, 0] == 0 and grid[1, 1] != 0


def test_an_alias_outlives_its_array(grid):
    expected = float(grid[2, 3]) + 1
    alias = host.asarray(grid + 1)
    del grid
    gc.collect()
    others = [candidate().zeros((sizes()["r"], sizes()["c"])) for _ in range(5)]
    assert sum(float(other.sum()) for other in others) == 0
    assert alias[2, 3] == expected


def test_buffers(grid):
    with memoryview(grid) as view:
        assert view.shape == grid.shape and view.strides == grid.strides and view.format == "d"
        grid[0, 0] = 9
        assert view[0, 0] == 9
    assert bytes(grid[0, :2].tobytes()) == host.asarray(grid)[0, :2].tobytes()


def test_dlpack(grid):
    other = host.from_dlpack(grid)
    assert host.shares_memory(other, host.asarray(grid))
    grid[0, 0] = 4
    assert other[0, 0] == 4


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(grid, protocol):
    back = pickle.loads(pickle.dumps(grid, protocol=protocol))
    assert host.array_equal(host.asarray(back), host.asarray(grid))
    assert pickle.dumps(host.asarray(grid), protocol=protocol) and back.dtype == grid.dtype


def test_copies_are_apart(grid):
    shallow, deep = copy.copy(grid), copy.deepcopy([grid])[0]
    grid += 1
    assert float(shallow[0, 0]) == 0 and float(deep[0, 0]) == 0


def test_host_operands_are_read_before_their_next_write(grid):
    row = host.ones(sizes()["c"])
    results = []
    for turn in range(5):
        results.append(grid * 0 + row)
        row[:] = turn + 10
    assert [float(result[0, 0]) for result in results] == [1, 10, 11, 12, 13]


def test_host_outputs_are_filled_at_once(grid):
    output = host.empty(grid.shape)
    candidate().add(grid, 1, out=output)
    assert output[0, 0] == 1
    output += grid
    assert output[0, 1] == 3


@pytest.mark.skipif(_core.shards() > 1, reason="arrays that are spread out belong to the main thread")
def test_threads_share_and_own_arrays(grid):
    failures = []

    def work(number):
        try:
            own = grid + number
            for turn in range(20):
                own = own * 0.5 + grid
                own[turn % 5] += 1
            oracle = host.asarray(grid).copy() + number
            for turn in range(20):
                oracle = oracle * 0.5 + host.asarray(grid)
                oracle[turn % 5] += 1
            assert host.array_equal(host.asarray(own), oracle)
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads), failures
