"""iDMA: when bytes move, what is refused, what it costs; and the frames that ops share."""

import gc
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.buffers import bytes_view
from dsp_server.hardware.cycles import IDMA_ISSUE_CYCLES, IDMA_POLL_CYCLES, CycleCounter, idma_cycles
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.frame import hb_dsp_ping_pong_frame, ping_pong
from dsp_server.hardware.idma import (
    idma_buffer_status,
    idma_copy_2d_desc,
    idma_copy_desc,
    idma_desc_done,
    idma_last_error,
)
from dsp_server.hardware.tcm import OutOfTcm
from dsp_server.hardware.tile_manager import XVTM_ERROR, TileManager
from dsp_server.hardware.transfers import (
    IDMA_ERR_BAD_TRANSFER,
    IDMA_ERR_QUEUE_FULL,
    IDMA_ERR_UNKNOWN_HANDLE,
    IDMA_OK,
    BadTransfer,
    QueueFull,
    UnknownHandle,
)
from tests.each import each


@pytest.fixture(autouse=True)
def engine() -> Iterator[Idma]:
    """A core of the test's own: clock at 0, empty queue, two banks."""
    mine = Idma(CycleCounter(), TileManager())
    counter_before, before = cycles.install(mine.counter), descriptors.install(mine)
    yield mine
    descriptors.install(before)
    cycles.install(counter_before)


def tile_manager(engine: Idma) -> TileManager:
    assert engine.tile_manager is not None
    return engine.tile_manager


# -- when bytes move --------------------------------------------------------------------------------------------


def test_bytes_move_when_the_transfer_is_waited_for_and_not_before(engine: Idma) -> None:
    src, dst = bytearray(b"new bytes"), bytearray(9)
    handle = engine.copy(dst, src)
    assert dst == bytes(9)
    src[:3] = b"NEW"  # still the engine's: what is there at the end is what arrives
    engine.wait(handle)
    assert dst == b"NEW bytes"
    assert engine.outstanding == 0


def test_a_loop_of_polls_ends_at_the_modeled_time(engine: Idma) -> None:
    dst = bytearray(64_000)
    handle = engine.copy(dst, b"x" * 64_000)
    assert handle == 1
    polls = 0
    while not engine.desc_done(handle):
        assert dst[0] == 0
        polls += 1
    assert dst == b"x" * 64_000
    assert polls == -(-idma_cycles(64_000) // IDMA_POLL_CYCLES)
    assert engine.counter.cycles == IDMA_ISSUE_CYCLES + polls * IDMA_POLL_CYCLES
    assert engine.desc_done(handle)  # and stays done


def test_the_first_poll_finds_it_done_when_the_core_has_computed_long_enough(engine: Idma) -> None:
    dst = bytearray(4)
    handle = engine.copy(dst, b"data")
    engine.counter.charge(idma_cycles(4) - 1)
    assert not engine.desc_done(handle)
    assert engine.desc_done(handle)
    assert dst == b"data"


def test_transfers_complete_in_the_order_of_issue(engine: Idma) -> None:
    buffers = [bytearray(8) for _ in range(4)]
    handles = [engine.copy(buffers[0], b"12345678")]
    handles += [engine.copy(after, before) for before, after in pairwise(buffers)]
    assert handles == [1, 2, 3, 4]
    engine.wait(handles[2])
    assert buffers[2] == b"12345678"
    assert engine.outstanding == 1
    engine.wait(handles[0])
    assert buffers[3] == bytes(8)
    engine.wait_all()
    assert buffers[3] == b"12345678"


def test_buffer_status_counts_down_as_modeled_time_passes(engine: Idma) -> None:
    dst = bytearray(2)
    idma_copy_desc(memoryview(dst)[:1], b"a", 1)
    idma_copy_desc(memoryview(dst)[1:], b"b", 1)
    seen = [idma_buffer_status()]
    while seen[-1]:
        seen.append(idma_buffer_status())
    assert sorted(set(seen), reverse=True) == [2, 1, 0]
    assert seen == sorted(seen, reverse=True)
    assert IDMA_OK == 0
    assert dst == b"ab"


def test_drain_completes_and_names_what_nobody_waited_for(engine: Idma) -> None:
    dst = bytearray(12)
    engine.wait(engine.copy(memoryview(dst)[:4], b"1111"))
    engine.copy(memoryview(dst)[4:8], b"2222")
    engine.copy_2d(memoryview(dst)[8:], b"3333", 2, 2, src_pitch_bytes=2, dst_pitch_bytes=2)
    forgotten = engine.drain()
    assert dst == b"111122223333"
    assert [(each.handle, each.size_bytes) for each in forgotten] == [(2, 4), (3, 4)]
    assert re.match(rf"descriptor 3, 4 bytes in 2 rows, issued at {re.escape(__file__)}:\d+$", str(forgotten[1]))
    assert engine.drain() == []
    dst.extend(b"no view is left that would forbid this")


def test_a_finished_transfer_keeps_no_view(engine: Idma) -> None:
    src, dst = bytearray(8), bytearray(8)
    engine.wait(engine.copy(dst, src))
    gc.collect()
    src.clear()
    dst.clear()


# -- modeled time ----------------------------------------------------------------------------------------------


def test_transfers_overlap_with_compute_and_queue_behind_each_other(engine: Idma) -> None:
    counter, size_bytes = engine.counter, 16_000
    busy = idma_cycles(size_bytes)
    first = engine.copy(bytearray(size_bytes), bytes(size_bytes))
    counter.charge(busy)
    engine.wait(first)
    assert counter.cycles == IDMA_ISSUE_CYCLES + busy  # the wait cost nothing
    counter.cycles = 10_000
    engine.copy(bytearray(size_bytes), bytes(size_bytes))
    second = engine.copy(bytearray(size_bytes), bytes(size_bytes))
    engine.wait(second)
    assert counter.cycles == 10_000 + IDMA_ISSUE_CYCLES + 2 * busy


def test_ping_pong_takes_less_modeled_time_than_one_buffer(engine: Idma) -> None:
    tm, tiles = tile_manager(engine), 16
    src, dst = np.ones(tiles * 4000, np.float32), np.zeros(tiles * 4000, np.float32)

    def compute(tile_in: NDArray[Any], tile_out: NDArray[Any], _first: int) -> None:
        tile_out[:] = tile_in
        engine.counter.charge(2 * idma_cycles(16_000))

    assert ping_pong(tm, src, dst, compute, in_dtype=np.float32, tile_items=4000) == tiles
    by_ping_pong = engine.counter.cycles
    engine.counter.cycles = 0
    with tm.tile(16_000) as tile:
        for first in range(0, src.nbytes, 16_000):
            engine.wait(engine.copy(tile, bytes_view(src)[first : first + 16_000]))
            engine.counter.charge(2 * idma_cycles(16_000))
            engine.wait(engine.copy(bytes_view(dst)[first : first + 16_000], tile))
    assert by_ping_pong < engine.counter.cycles * 0.6
    assert dst.sum() == src.size


# -- two dimensions ---------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    row_bytes=st.integers(0, 9),
    num_rows=st.integers(0, 20),
    src_gap=st.integers(0, 5),
    dst_gap=st.integers(0, 5),
    seed=st.integers(0, 255),
)
def test_rows_land_where_the_pitches_say_and_gaps_are_left_alone(
    row_bytes: int, num_rows: int, src_gap: int, dst_gap: int, seed: int
) -> None:
    src_pitch, dst_pitch = row_bytes + src_gap, row_bytes + dst_gap
    src = bytes((seed + at * 7) % 251 for at in range(src_pitch * num_rows))
    dst, expected = bytearray(b"\xff" * (dst_pitch * num_rows)), bytearray(b"\xff" * (dst_pitch * num_rows))
    for row in range(num_rows):
        for column in range(row_bytes):
            expected[row * dst_pitch + column] = src[row * src_pitch + column]
    engine = Idma(CycleCounter())
    engine.wait(engine.copy_2d(dst, src, row_bytes, num_rows, src_pitch_bytes=src_pitch, dst_pitch_bytes=dst_pitch))
    assert dst == expected


@pytest.mark.parametrize("num_rows", [3, 30])
def test_the_last_row_needs_no_room_for_its_gap(engine: Idma, num_rows: int) -> None:
    src = bytes(range(num_rows)) * 2
    dst = bytearray((num_rows - 1) * 10 + 2)
    engine.wait(engine.copy_2d(dst, src, 2, num_rows, src_pitch_bytes=2, dst_pitch_bytes=10))
    assert bytes(dst[::10] + dst[1::10]) == src[::2] + src[1::2]


def test_a_part_of_an_image_can_be_copied_beside_itself(engine: Idma) -> None:
    image = bytearray(b"ab......" * 20)
    left = memoryview(image)
    engine.wait(engine.copy_2d(left[4:], left, 2, 20, src_pitch_bytes=8, dst_pitch_bytes=8))
    assert image == b"ab..ab.." * 20
    with pytest.raises(BadTransfer, match="overlap"):
        engine.copy_2d(left[1:], left, 2, 20, src_pitch_bytes=8, dst_pitch_bytes=8)


# -- what is refused --------------------------------------------------------------------------------------------

shared = bytearray(64)
freed = memoryview(bytearray(8))
freed.release()


@pytest.mark.parametrize(
    ("dst", "src", "size_bytes", "sentence"),
    [
        (bytearray(8), bytes(9), 9, "A transfer of 9 bytes runs past the destination, which has 8: make it smaller."),
        (bytearray(9), bytes(8), 9, "A transfer of 9 bytes runs past the source, which has 8: make it smaller."),
        (bytearray(8), bytes(8), -1, "The size in bytes is -1: it must be 0 or more."),
        (bytearray(8), bytes(8), 2.0, "The size in bytes is 2.0: pass an integer."),
        (bytearray(8), bytes(9), None, "The destination has 8 bytes, the source 9: say how many to copy."),
        (bytes(8), bytes(8), 8, "The destination is read-only: iDMA needs a writable buffer."),
        (7, bytes(8), 8, "The destination (int) is not a usable buffer: memoryview: a bytes-like object is required"),
        (bytearray(8), np.zeros(16, np.uint8)[::2], 8, "The source (ndarray) is not a usable buffer: the buffer's"),
        (bytearray(8), freed, 8, "The source was freed: allocate it again."),
        (
            memoryview(shared)[8:24],
            memoryview(shared)[:16],
            16,
            "Source and destination overlap: 16 and 16 bytes that start +8 bytes apart. iDMA moves bytes in no",
        ),
        (shared, memoryview(shared).toreadonly(), 64, "Source and destination overlap: 64 and 64 bytes that"),
    ],
)
def test_a_copy_that_cannot_be_is_refused(
    engine: Idma, dst: Any, src: Any, size_bytes: int | None, sentence: str
) -> None:
    with pytest.raises(BadTransfer, match=f"^{re.escape(sentence)}"):
        engine.copy(dst, src, size_bytes)
    assert engine.outstanding == 0
    if size_bytes is not None:
        assert idma_copy_desc(dst, src, size_bytes) == IDMA_ERR_BAD_TRANSFER
        assert idma_last_error().startswith(sentence)


@each(
    "row_bytes, num_rows, src_pitch, dst_pitch, sentence",
    [
        (8, 3, 8, 4, "The destination pitch of 4 bytes is shorter than a row of 8: give the pitch in bytes, not"),
        (8, 3, 2, 8, "The source pitch of 2 bytes is shorter than a row of 8: give the pitch in bytes, not in"),
        (8, 9, 8, 8, "A transfer of 72 bytes runs past the destination, which has 64: make it smaller."),
        (8, 4, 17, 8, "A transfer of 59 bytes runs past the source, which has 58: make it smaller."),
        (8, -1, 8, 8, "The number of rows is -1: it must be 0 or more."),
        (-8, 1, 8, 8, "The row in bytes is -8: it must be 0 or more."),
        (8, 2, -8, 8, "The source pitch in bytes is -8: it must be 0 or more."),
        (8, 2, 8, -8, "The destination pitch in bytes is -8: it must be 0 or more."),
    ],
)
def test_rows_that_cannot_be_are_refused(
    row_bytes: int, num_rows: int, src_pitch: int, dst_pitch: int, sentence: str
) -> None:
    dst, src = bytearray(64), bytes(58)
    assert idma_copy_2d_desc(dst, src, row_bytes, 0, num_rows, src_pitch, dst_pitch) == IDMA_ERR_BAD_TRANSFER
    assert idma_last_error().startswith(sentence)


def test_buffers_that_touch_do_not_overlap(engine: Idma) -> None:
    both = bytearray(b"abcd....")
    lower, upper = memoryview(both)[:4], memoryview(both)[4:]
    engine.wait(engine.copy(upper, lower))
    assert both == b"abcdabcd"
    upper[:] = b"efgh"
    engine.wait(engine.copy(lower, upper))
    assert both == b"efghefgh"


@pytest.mark.parametrize(("column", "is_refused"), [(3, True), (4, False), (6, False), (7, True)])
def test_rows_beside_each_other_may_touch_but_not_overlap(engine: Idma, column: int, *, is_refused: bool) -> None:
    image = memoryview(bytearray(10 * 5))

    def copy() -> int:
        return engine.copy_2d(image[column:], image, 4, 4, src_pitch_bytes=10, dst_pitch_bytes=10)

    if is_refused:
        with pytest.raises(BadTransfer, match="overlap"):
            copy()
    else:
        engine.wait(copy())


def test_any_item_type_and_size_zero_are_copied(engine: Idma) -> None:
    src, dst = np.arange(6, dtype=np.int32).reshape(2, 3), np.zeros(6, np.int32)
    engine.wait(engine.copy(dst, src))
    assert dst.tolist() == [0, 1, 2, 3, 4, 5]
    for nothing in (engine.copy(bytearray(4), b"", 0), engine.copy(np.zeros((0, 3)), np.zeros(0))):
        engine.wait(nothing)


def test_a_full_queue_refuses_until_one_is_waited_for(engine: Idma) -> None:
    dst = bytearray(65)
    handles = [engine.copy(memoryview(dst)[at : at + 1], b"x") for at in range(64)]
    with pytest.raises(QueueFull) as info:
        engine.copy(memoryview(dst)[64:], b"x")
    assert str(info.value) == "64 iDMA descriptors are outstanding, the maximum: wait for some of them first."
    assert idma_copy_desc(memoryview(dst)[64:], b"x", 1) == IDMA_ERR_QUEUE_FULL
    engine.wait(handles[0])
    assert idma_copy_desc(memoryview(dst)[64:], b"x", 1) == 65
    engine.wait_all()
    assert dst == b"x" * 65


@pytest.mark.parametrize("handle", [0, -1, 2])
def test_a_handle_that_no_transfer_had_is_refused(engine: Idma, handle: int) -> None:
    engine.copy(bytearray(1), b"x")
    for wait in (engine.wait, engine.desc_done, idma_desc_done):
        with pytest.raises(
            UnknownHandle, match=rf"waits for iDMA handle {handle} at .*test_idma.py:\d+, which"
        ) as info:
            wait(handle)
        assert info.value.code == IDMA_ERR_UNKNOWN_HANDLE
        what_to_do = "Start the copy before the wait" if handle >= 0 else "Check the returned value"
        assert what_to_do in str(info.value)
    assert engine.outstanding == 1


def test_a_handle_that_was_never_assigned_is_refused(engine: Idma) -> None:
    with pytest.raises(UnknownHandle, match=r"handle None at .*, which no copy has set; no copy was started yet\."):
        engine.desc_done(None)  # type: ignore[arg-type]


def test_a_wait_for_an_error_code_says_which_call_failed_and_why(engine: Idma) -> None:
    tile = bytearray(4)
    code = idma_copy_desc(tile, b"abcdefgh", 8)
    line = sys._getframe().f_lineno - 1
    with pytest.raises(UnknownHandle) as info:
        idma_desc_done(code)
    assert f"{idma_last_error()} (at {__file__}:{line})" in str(info.value)
    with pytest.raises(UnknownHandle) as info:
        idma_desc_done(-7)  # no call has returned that
    assert idma_last_error() not in str(info.value)
    assert engine.outstanding == 0


def test_the_c_names_report_by_value() -> None:
    dst = bytearray(4)
    handle = idma_copy_desc(dst, b"abcd", 4, 1)
    assert handle == 1
    assert idma_desc_done(handle) == 0
    while idma_desc_done(handle) != 1:
        pass
    assert dst == b"abcd"
    handle = idma_copy_2d_desc(dst, b"wx.yz", 2, 0, 2, 3, 2)
    while idma_desc_done(handle) != 1:
        pass
    assert dst == b"wxyz"


def test_bank_conflicts_are_transfers_in_flight_in_the_bank_of_the_computation(engine: Idma) -> None:
    tm = tile_manager(engine)
    ping, pong, other = tm.allocate(64, 0), tm.allocate(64, 0), tm.allocate(64, 1)
    handle = engine.copy(pong, bytes(64))
    engine.note_compute(other)
    assert tm.bank_conflicts == [0, 0]
    engine.note_compute(ping, other)
    assert tm.bank_conflicts == [1, 0]
    engine.counter.charge(idma_cycles(64))
    engine.note_compute(ping)  # by now the transfer has ended, though nobody has looked
    assert tm.bank_conflicts == [1, 0]
    engine.wait(handle)


# -- the general frame ------------------------------------------------------------------------------------------

TILE = 100


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("items", [0, 1, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1, 7 * TILE + 13])
def test_every_item_is_computed_once_in_order(engine: Idma, items: int, *, in_place: bool) -> None:
    src = np.arange(items, dtype=np.float32)
    dst = np.full(items + 3, 99, np.int8)
    starts: list[tuple[int, int]] = []

    def compute(tile_in: NDArray[Any], tile_out: NDArray[Any], first: int) -> None:
        starts.append((first, len(tile_in)))
        assert len(tile_out) == len(tile_in)
        assert tile_in.dtype == np.float32
        tile_out[:] = tile_in % 50

    tiles = ping_pong(
        tile_manager(engine),
        src,
        dst,
        compute,
        in_dtype=np.float32,
        out_dtype=np.int8,
        tile_items=TILE,
        in_place=in_place,
    )
    assert tiles == len(starts) == -(-items // TILE)
    assert starts == [(first, min(TILE, items - first)) for first in range(0, items, TILE)]
    assert dst[:items].tolist() == [item % 50 for item in range(items)]
    assert dst[items:].tolist() == [99] * 3
    assert engine.outstanding == 0
    assert tile_manager(engine).live() == []
    assert tile_manager(engine).bank_conflicts == [0, 0]


def test_small_items_become_larger_ones(engine: Idma) -> None:
    src, dst = np.arange(-100, 100, dtype=np.int8), np.zeros(200, np.float64)

    def compute(tile_in: NDArray[Any], tile_out: NDArray[Any], _first: int) -> None:
        np.multiply(tile_in, 0.5, out=tile_out)

    ping_pong(tile_manager(engine), src, dst, compute, in_dtype=np.int8, out_dtype=np.float64, tile_items=TILE)
    assert dst.tolist() == [value / 2 for value in range(-100, 100)]


def test_a_pass_without_output_reads_everything(engine: Idma) -> None:
    src = np.arange(1000, dtype=np.float32)
    sums: list[float] = []
    ping_pong(
        tile_manager(engine), src, None, lambda tile, *_: sums.append(tile.sum()), in_dtype=np.float32, tile_items=64
    )
    assert len(sums) == 16
    assert sum(sums) == src.sum()


def test_a_pass_may_write_over_its_source(engine: Idma) -> None:
    values = np.arange(1000, dtype=np.float32)
    narrow = values.view(np.int16)[:1000]

    def double(tile_in: NDArray[Any], tile_out: NDArray[Any], _first: int) -> None:
        np.multiply(tile_in, 2, out=tile_out, casting="unsafe")

    tm = tile_manager(engine)
    ping_pong(tm, values, values, double, in_dtype=np.float32, tile_items=64, in_place=True)
    assert values.tolist() == [2 * value for value in range(1000)]
    ping_pong(tm, values, narrow, double, in_dtype=np.float32, out_dtype=np.int16, tile_items=64)
    assert narrow.tolist() == [4 * value for value in range(1000)]


def test_an_item_may_be_several_numbers(engine: Idma) -> None:
    points = np.arange(50, dtype=np.float32).reshape(10, 5)
    planar = np.zeros((10, 2), np.int32)

    def compute(tile_in: NDArray[Any], tile_out: NDArray[Any], first: int) -> None:
        assert tile_in.tolist() == points[first : first + 3].tolist()
        tile_out[:] = tile_in[:, :2]

    ping_pong(
        tile_manager(engine),
        points,
        planar,
        compute,
        in_dtype=np.dtype((np.float32, 5)),
        out_dtype=np.dtype((np.int32, 2)),
        tile_items=3,
    )
    assert planar.tolist() == points[:, :2].tolist()


@pytest.mark.parametrize(
    ("in_place", "multiple_of", "tile_items", "expected"),
    [
        (True, 1, None, 105_408 // 4),  # all of a bank but for the gap between buffers
        (False, 1, None, 105_408 // 8),
        (True, 1000, None, 26_000),
        (True, 64, 1000, 960),
        (True, 1, 10**9, 105_408 // 4),
    ],
)
def test_tiles_are_as_large_as_the_banks_and_the_caller_allow(
    engine: Idma, multiple_of: int, tile_items: int | None, expected: int, *, in_place: bool
) -> None:
    src = np.zeros(100_000, np.float32)
    sizes: list[int] = []
    ping_pong(
        tile_manager(engine),
        src,
        src,
        lambda tile, *_: sizes.append(len(tile)),
        in_dtype=np.float32,
        tile_items=tile_items,
        multiple_of=multiple_of,
        in_place=in_place,
    )
    assert set(sizes[:-1]) == {expected}
    assert sum(sizes) == 100_000


def test_ping_lies_in_bank_0_and_pong_in_bank_1(engine: Idma) -> None:
    tm = tile_manager(engine)
    seen: set[tuple[int, int, str]] = set()
    ping_pong(
        tm,
        np.zeros(100, np.float32),
        np.zeros(100, np.int8),
        lambda *_: seen.update((tile.bank, tile.size_bytes, tile.where.rsplit(":", 1)[0]) for tile in tm.live()),
        in_dtype=np.float32,
        out_dtype=np.int8,
        tile_items=10,
    )
    assert seen == {(bank, size_bytes, __file__) for bank in (0, 1) for size_bytes in (40, 10)}


def test_a_failing_computation_leaves_nothing_behind(engine: Idma) -> None:
    src, dst = np.zeros(1000, np.float32), np.zeros(1000, np.float32)

    def compute(_tile_in: NDArray[Any], _tile_out: NDArray[Any], first: int) -> None:
        if first:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        ping_pong(tile_manager(engine), src, dst, compute, in_dtype=np.float32, tile_items=100)
    assert engine.drain() == []
    assert tile_manager(engine).reset() == []


def ignore(*_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda tm: ping_pong(tm, bytes(10), None, ignore, in_dtype=np.float32),
            "The input size of 10 bytes is not a multiple of the item size of float32.",
        ),
        (
            lambda tm: ping_pong(tm, bytes(8), bytearray(7), ignore, in_dtype=np.int8),
            "The destination has 7 bytes; the frame needs 8.",
        ),
        (
            lambda tm: ping_pong(tm, bytes(8), bytes(8), ignore, in_dtype=np.int8),
            "The destination is read-only: iDMA needs a writable buffer.",
        ),
        (
            lambda tm: ping_pong(
                tm, bytes(8), bytearray(64), ignore, in_dtype=np.int8, out_dtype=np.int16, in_place=True
            ),
            "Results of type int16 do not fit in the place of inputs of type int8.",
        ),
        (
            lambda tm: ping_pong(tm, bytes(8), None, ignore, in_dtype=np.int8, tile_items=3, multiple_of=4),
            "Tiles of at most 3 items cannot be a multiple of 4: use 1 or more, and a limit of at least one",
        ),
        (
            lambda tm: ping_pong(tm, memoryview(shared)[:32], memoryview(shared)[8:], ignore, in_dtype=np.int8),
            "Source and destination overlap: 32 and 32 bytes that start +8 bytes apart.",
        ),
        (
            lambda tm: ping_pong(tm, memoryview(shared)[:32], shared, ignore, in_dtype=np.int8, out_dtype=np.int16),
            "Source and destination overlap: 32 and 64 bytes that start +0 bytes apart.",
        ),
    ],
)
def test_what_a_frame_refuses(engine: Idma, call: Callable[[TileManager], int], sentence: str) -> None:
    with pytest.raises(BadTransfer, match=f"^{re.escape(sentence)}"):
        call(tile_manager(engine))
    assert engine.outstanding == tile_manager(engine).live_count == 0


def test_a_multiple_that_no_bank_holds_is_out_of_tcm(engine: Idma) -> None:
    src = np.zeros(60_000, np.float32)
    with pytest.raises(OutOfTcm, match=r"^120000 bytes do not fit in TCM bank 0: 105472 are free"):
        ping_pong(tile_manager(engine), src, None, ignore, in_dtype=np.float32, multiple_of=30_000)


# -- the frame in the vendor's call shape -----------------------------------------------------------------------


def softmax_by_frames(tm: TileManager, src: NDArray[np.float32], dst: NDArray[np.float32], tile_bytes: int) -> None:
    """The three passes of the manual's softmax."""
    ping, pong = tm.allocate(tile_bytes, 0), tm.allocate(tile_bytes, 1)
    largest, total = [np.float32(-np.inf)], [np.float32(0)]

    def tile_max(_out: NDArray[Any], values: NDArray[Any], n: int, result: list[Any], _: Any) -> None:
        assert len(values) == n
        result[0] = max(result[0], values.max())

    def tile_sum(out: NDArray[Any], values: NDArray[Any], _n: int, result: list[Any], maximum: Any) -> None:
        np.exp(values - maximum, out=out)
        result[0] += out.sum()

    def tile_mul(out: NDArray[Any], values: NDArray[Any], _n: int, _: Any, factor: Any) -> None:
        np.multiply(values, factor, out=out)

    tiles = [ping, pong]
    assert hb_dsp_ping_pong_frame(None, src, tiles, tiles, src.size, tile_max, largest, 0, False) == 0
    assert hb_dsp_ping_pong_frame(dst, src, tiles, tiles, src.size, tile_sum, total, largest[0]) == 0
    assert hb_dsp_ping_pong_frame(dst, dst, tiles, tiles, src.size, tile_mul, None, 1 / total[0]) == 0
    tm.free(ping)
    tm.free(pong)


@pytest.mark.parametrize("length", [1, 255, 256, 257, 512, 513, 5000])
def test_softmax_in_the_manuals_three_passes(engine: Idma, length: int) -> None:
    src = np.random.default_rng(length).normal(size=length).astype(np.float32)
    dst = np.full(length + 1, -1, np.float32)
    softmax_by_frames(tile_manager(engine), src, dst[:length], 1024)
    expected = np.exp(src.astype(np.float64) - src.max())
    # float32 sums over tiles: a few ulp of 1.2e-7 each
    np.testing.assert_allclose(dst[:length], expected / expected.sum(), rtol=2e-6)
    assert dst[length] == -1
    assert engine.outstanding == tile_manager(engine).live_count == 0
    assert tile_manager(engine).bank_conflicts == [0, 0]


def test_a_frame_of_length_0_calls_nothing(engine: Idma) -> None:
    tiles = [bytearray(64), bytearray(64)]

    def never(*_: object) -> None:
        pytest.fail("a frame of length 0 has no tile to compute")

    assert hb_dsp_ping_pong_frame(bytearray(), b"", tiles, tiles, 0, never, None, None) == IDMA_OK
    assert engine.counter.cycles == 0


def test_the_smallest_buffer_sets_the_tile_and_separate_buffers_work(engine: Idma) -> None:
    ins, outs = [bytearray(400), bytearray(80)], [bytearray(120), bytearray(400)]
    src, dst = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    sizes = []

    def negate(out: NDArray[Any], values: NDArray[Any], n: int, *_: Any) -> None:
        sizes.append(n)
        np.negative(values, out=out)

    assert hb_dsp_ping_pong_frame(dst, src, ins, outs, 50, negate, None, None) == 0
    assert sizes == [20, 20, 10]
    assert dst.tolist() == [-value for value in range(50)]


def test_ping_and_pong_in_one_bank_are_counted_as_conflicts(engine: Idma) -> None:
    tm = tile_manager(engine)
    tiles = [tm.allocate(400, 0), tm.allocate(400, 0)]
    src = np.zeros(1000, np.float32)
    assert hb_dsp_ping_pong_frame(None, src, tiles, tiles, 1000, ignore, None, None, False) == 0
    assert tm.bank_conflicts[0] >= 5
    assert tm.bank_conflicts[1] == 0


one = bytearray(64)


@pytest.mark.parametrize(
    ("dst", "src", "tiles", "length", "sentence"),
    [
        (bytearray(40), bytes(40), [one, bytearray(64)], 11, "The source has 40 bytes; the frame needs 44."),
        (bytearray(40), bytes(44), [one, bytearray(64)], 11, "The destination has 40 bytes; the frame needs 44."),
        (None, bytes(44), [one, bytearray(64)], 11, "A frame that writes results back needs a destination"),
        (bytearray(4), bytes(4), [one, bytearray(64)], -1, "A frame needs a length of 0 or more and two buffers"),
        (bytearray(4), bytes(4), [one], 1, "A frame needs a length of 0 or more and two buffers each way: got 1, 1"),
        (bytearray(4), bytes(4), [one, bytearray(3)], 1, "A TCM buffer is smaller than one item of float32"),
        (bytearray(4), bytes(4), [one, one], 1, "Source and destination overlap: 64 and 64 bytes"),
        (bytearray(4), bytes(4), [one, XVTM_ERROR], 1, "The TCM buffer (XvtmError) is not a usable buffer"),
        (bytearray(4), bytes(4), [one, freed], 1, "The TCM buffer was freed: allocate it again."),
    ],
)
def test_what_the_vendors_frame_refuses(
    engine: Idma, dst: Any, src: Any, tiles: list[Any], length: int, sentence: str
) -> None:
    code = hb_dsp_ping_pong_frame(dst, src, tiles, tiles, length, ignore, None, None)
    assert code == IDMA_ERR_BAD_TRANSFER
    assert idma_last_error().startswith(sentence)
    assert engine.outstanding == 0


def test_what_func_raises_reaches_the_caller_and_leaves_no_transfer(engine: Idma) -> None:
    tiles = [bytearray(8), bytearray(8)]

    def func(*_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hb_dsp_ping_pong_frame(bytearray(40), bytes(40), tiles, tiles, 10, func, None, None)
    assert engine.outstanding == 0


def test_with_no_core_around_it_an_op_finds_an_engine_and_a_counter() -> None:
    fresh = Idma()
    before = descriptors.install(fresh)
    try:
        assert descriptors.current() is fresh
        assert fresh.counter is cycles.current()
        handle = idma_copy_desc(bytearray(1), b"x", 1)
        fresh.wait(handle)
        assert fresh.tile_manager is None
        fresh.note_compute(bytearray(1))
    finally:
        descriptors.install(before)
