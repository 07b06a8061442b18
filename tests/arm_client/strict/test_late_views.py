"""The check memory and arrays of blocks that were freed: the first use is named, and the program keeps running."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from hbrt.board.paths import BoardPaths
from tests.watched import findings_of, program_with, shared_board

IMAGE = Path(__file__).parents[2] / "dsp_server" / "images" / "halts.py"
COUNT = 2000


@pytest.fixture(scope="module")
def paths() -> Iterator[BoardPaths]:
    with shared_board(IMAGE) as paths:
        yield paths


@pytest.fixture
def board(paths: BoardPaths, request: pytest.FixtureRequest) -> Iterator[Board]:
    with program_with(paths, getattr(request, "param", "memory")) as board:
        yield board


def of_buffer(board: Board, *, cached: bool) -> tuple[Any, Callable[[], object]]:
    buffer = board.alloc(COUNT, cached=cached)
    return buffer.array(np.uint8, COUNT), buffer.free


def plain(board: Board, *, cached: bool) -> tuple[Any, Callable[[], object]]:
    array, free = of_buffer(board, cached=cached)
    return np.asarray(array), free


def a_view(board: Board, *, cached: bool) -> tuple[Any, Callable[[], object]]:
    buffer = board.alloc(COUNT, cached=cached)
    return buffer.view(), buffer.free


def by_the_c_names(board: Board, *, cached: bool) -> tuple[Any, Callable[[], object]]:
    del board  # the C names are on it
    mem = hb.hbSysMem()
    assert (hb.hbSysAllocCachedMem if cached else hb.hbSysAllocMem)(mem, COUNT) == 0
    return np.asarray(mem.view())[100:], lambda: hb.hbSysFreeMem(mem)


MAKERS = [of_buffer, plain, a_view, by_the_c_names]


def read(array: Any) -> None:
    bytes(array)


def write(array: Any) -> None:
    array[7] = 1


# Each kind of array; each kind of block and of check with one of them.
CASES = [*(("memory", make, False) for make in MAKERS), ("memory", of_buffer, True), ("memory,coherence", plain, True)]
in_each_case = pytest.mark.parametrize(("board", "make", "cached"), CASES, indirect=["board"])


@in_each_case
@pytest.mark.parametrize("use", [read, write])
def test_the_first_use_is_named(
    board: Board, make: Callable[..., Any], use: Callable[[Any], None], *, cached: bool
) -> None:
    array, free = make(board, cached=cached)
    array[:8] = bytes(range(8)) if isinstance(array, memoryview) else np.arange(8)
    free()
    assert findings_of(board) == []
    use(array)
    (found,) = findings_of(board)
    assert found.kind == "use-after-free"
    assert f" is {'read' if use is read else 'written'} through an array or a view: the block " in found.text
    used, freed, allocated = found.places
    assert str(used.site).startswith(f"{__file__}:{use.__code__.co_firstlineno + 1}")
    assert all(str(place.site).startswith(__file__) for place in (freed, allocated))
    assert list(array[:7]) == list(range(7))  # its last bytes
    use(array)
    assert len(findings_of(board)) == 1


@in_each_case
def test_nothing_is_said_of_arrays_that_nobody_uses(board: Board, make: Callable[..., Any], *, cached: bool) -> None:
    kept = []
    for number in range(20):
        array, free = make(board, cached=cached)
        array[:8] = bytes(8) if isinstance(array, memoryview) else 1
        free()
        if number % 2:
            kept.append(array)
        del array, free
    gc.collect()
    again = board.empty(COUNT, np.uint8)
    again[:] = 3
    assert again.sum() == 3 * COUNT
    assert findings_of(board) == []


def test_a_board_that_ends_opens_them(paths: BoardPaths) -> None:
    with program_with(paths, "memory") as board:
        array, free = of_buffer(board, cached=False)
        array[:] = 5
        free()
    assert array.sum() == 5 * COUNT


def test_a_freed_block_that_an_op_was_to_get_is_refused_as_ever(board: Board) -> None:
    array, free = of_buffer(board, cached=False)
    free()
    with pytest.raises(hb.CallerError):
        board.call(0x0, array, None)
    assert findings_of(board) == []
