"""TCM: where buffers go, what comes back, and the sentences for what is refused."""

import inspect
import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dsp_server.hardware.buffers import address_of, bytes_view
from dsp_server.hardware.tcm import TCM_BASES, BadTile, OutOfTcm
from dsp_server.hardware.tile_manager import (
    XV_MEM_BANK_COLOR_0,
    XV_MEM_BANK_COLOR_1,
    XV_MEM_BANK_COLOR_ANY,
    XVTM_ERROR,
    XVTM_FREE_ERROR,
    XVTM_SUCCESS,
    TileManager,
    xvAllocateBuffer,
    xvFreeBuffer,
    xvGetErrorInfo,
)
from tests.each import each

USABLE = 105_472


def places(tm: TileManager) -> list[tuple[int, int, int]]:
    return [(tile.bank, tile.offset_bytes, tile.size_bytes) for tile in tm.live()]


def test_two_banks_of_103_kib_by_default() -> None:
    tm = TileManager()
    assert tm.pool_bytes == (USABLE, USABLE)
    assert all(base % 64 == 0 for base in TCM_BASES)
    assert tm.largest_free_bytes(0) == tm.largest_free_bytes(1) == USABLE
    tm.allocate(USABLE, XV_MEM_BANK_COLOR_0)
    tm.allocate(USABLE, XV_MEM_BANK_COLOR_1)
    assert tm.largest_free_bytes(0) == tm.largest_free_bytes(1) == 0


@each(
    "requests, expected",
    [
        ([(100, 0, 64), (100, 0, 64)], [(0, 0, 100), (0, 128, 100)]),
        ([(100, 0, 64), (100, 0, 1)], [(0, 0, 100), (0, 100, 100)]),
        ([(1, 1, 1), (8, 1, 4096)], [(1, 0, 1), (1, 4096, 8)]),
        ([(900, 255, 64), (900, 255, 64)], [(0, 0, 900), (1, 0, 900)]),  # any: bank 0 while it has room
        ([(10, 255, 64), (10, 1, 64), (10, 0, 64)], [(0, 0, 10), (0, 64, 10), (1, 0, 10)]),
    ],
)
def test_first_fit_in_the_bank_of_the_color(
    requests: list[tuple[int, int, int]], expected: list[tuple[int, int, int]]
) -> None:
    tm = TileManager(1024, 8192)
    for size_bytes, color, align in requests:
        tm.allocate(size_bytes, color, align)
    assert places(tm) == expected


def test_a_hole_is_used_again_and_the_lowest_first() -> None:
    tm = TileManager(1024, 0)
    views = [tm.allocate(128, XV_MEM_BANK_COLOR_0) for _ in range(8)]
    tm.free(views[5])
    tm.free(views[1])
    tm.free(views[2])
    assert tm.largest_free_bytes(0) == 256
    tm.allocate(200, XV_MEM_BANK_COLOR_0)
    assert (0, 128, 200) in places(tm)
    tm.allocate(128, XV_MEM_BANK_COLOR_0)
    assert (0, 5 * 128, 128) in places(tm)


@settings(deadline=None)
@given(
    requests=st.lists(
        st.tuples(
            st.integers(1, 400),
            st.sampled_from([0, 1, 255]),
            st.sampled_from([1, 16, 64, 256]),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_buffers_are_aligned_apart_and_all_of_them_come_back(
    requests: list[tuple[int, int, int, bool]],
) -> None:
    tm = TileManager(1000, 777)
    held: dict[int, memoryview] = {}
    for number, (size_bytes, color, align, is_freed) in enumerate(requests, 1):
        try:
            view = tm.allocate(size_bytes, color, align)
        except OutOfTcm:
            banks = (0, 1) if color == XV_MEM_BANK_COLOR_ANY else (color,)
            assert all(tm.largest_free_bytes(bank, align) < size_bytes for bank in banks)
            continue
        assert len(view) == size_bytes
        view[:] = bytes([number]) * size_bytes
        held[number] = view
        if is_freed:
            oldest = min(held)
            assert held[oldest] == bytes([oldest]) * len(held[oldest])
            tm.free(held.pop(oldest))
    for number, view in held.items():
        assert view == bytes([number]) * len(view)
    live = tm.live()
    assert len(live) == tm.live_count == len(held)
    for tile in live:
        assert tile.tcm_addr % tile.align == 0
        assert tile.offset_bytes + tile.size_bytes <= tm.pool_bytes[tile.bank]
    for lower, upper in pairwise(live):
        assert (lower.bank, lower.offset_bytes + lower.size_bytes) <= (upper.bank, upper.offset_bytes)
    for view in held.values():
        tm.free(view)
    assert (tm.largest_free_bytes(0), tm.largest_free_bytes(1)) == (1000, 777)
    assert tm.used_bytes == (0, 0)


def test_a_write_past_the_end_is_impossible() -> None:
    tm = TileManager()
    view, neighbor = tm.allocate(64, 0), tm.allocate(64, 0)
    neighbor[:] = b"n" * 64
    with pytest.raises(IndexError):
        view[64] = 1
    with pytest.raises(ValueError, match="different structures"):
        view[:] = bytes(65)
    with pytest.raises(ValueError, match="smaller than requested"):
        np.frombuffer(view, np.float32, 17)
    assert neighbor == b"n" * 64


def test_a_buffer_that_was_freed_cannot_be_used() -> None:
    tm = TileManager()
    view = tm.allocate(64)
    tm.free(view)
    with pytest.raises(ValueError, match="released memoryview"):
        view[0] = 1


def test_the_view_of_all_of_a_buffer_frees_it_whatever_its_type() -> None:
    tm = TileManager()
    for view_of in (
        lambda view: view,
        lambda view: view.cast("f"),
        lambda view: np.frombuffer(view, np.int16),
    ):
        tm.free(view_of(tm.allocate(128)))
        assert tm.live() == []


def part(tm: TileManager) -> memoryview:
    return tm.allocate(128)[:64]


def middle(tm: TileManager) -> memoryview:
    return tm.allocate(128)[64:]


def twice(tm: TileManager) -> memoryview:
    view = tm.allocate(128)
    tm.free(view)
    return view


def twice_as_array(tm: TileManager) -> memoryview:
    array = np.frombuffer(tm.allocate(128), np.uint8)
    tm.free(array)
    return bytes_view(array)


def never(tm: TileManager) -> memoryview:
    return tm._banks[1].memory[256:320]


@each(
    "give, sentence",
    [
        (
            part,
            r"64 bytes at 0x3ffc0000 in TCM bank 0 are part of a buffer \(128 bytes .*\): free the whole",
        ),
        (middle, r"64 bytes at 0x3ffc0040 in TCM bank 0 are part of a buffer \(128 bytes at 0x3ffc0000 in"),
        (twice, r"This TCM buffer was already freed: free each buffer only once\."),
        (
            twice_as_array,
            r"128 bytes at 0x3ffc0000 in TCM bank 0 were already freed \(they were 128 bytes at ",
        ),
        (never, r"64 bytes at 0x3ffe0100 in TCM bank 1 were never allocated: free what xvAllocateBuffer"),
        (
            lambda _: memoryview(bytearray(8)),
            r"Cannot free a buffer of 8 bytes that is not in TCM\.",
        ),
        (
            lambda _: memoryview(b"read-only"),
            r"Cannot free a buffer of 9 bytes that is not in TCM\.",
        ),
        (lambda _: memoryview(b""), r"Cannot free a buffer of 0 bytes that is not in TCM\."),
        (lambda _: 7, r"int is not a TCM buffer: "),
    ],
)
def test_free_says_what_is_wrong(give: Callable[[TileManager], memoryview], sentence: str) -> None:
    tm = TileManager()
    buffer = give(tm)
    before = tm.live()
    with pytest.raises(BadTile, match=f"^{sentence}"):
        tm.free(buffer)
    assert xvFreeBuffer(tm, buffer) == XVTM_FREE_ERROR
    assert re.match(sentence, xvGetErrorInfo(tm))
    assert tm.live() == before


def test_out_of_tcm_says_asked_bank_free_and_largest() -> None:
    tm = TileManager(1024, 512)
    tm.free(tm.allocate(1024, 0))
    holes = [tm.allocate(256, 0) for _ in range(4)]
    tm.free(holes[0])
    tm.free(holes[2])
    with pytest.raises(OutOfTcm) as info:
        tm.allocate(400, XV_MEM_BANK_COLOR_0)
    assert str(info.value) == (
        "400 bytes do not fit in TCM bank 0: 512 are free, 256 in one piece. Use smaller tiles, or free a buffer first."
    )
    assert (info.value.asked_bytes, info.value.bank) == (400, 0)
    with pytest.raises(OutOfTcm, match=r"^600 bytes do not fit in either TCM bank: 1024 are free, 512 in one") as info:
        tm.allocate(600, XV_MEM_BANK_COLOR_ANY)
    assert (info.value.bank, info.value.free_bytes, info.value.largest_free_bytes) == (None, 1024, 512)


@each(
    "size_bytes, color, align, sentence",
    [
        (0, 0, 64, "Cannot allocate a TCM buffer of 0 bytes: the minimum is 1."),
        (-4, 0, 64, "Cannot allocate a TCM buffer of -4 bytes: the minimum is 1."),
        (64, 0, 48, "Alignment 48 must be a power of two, such as 64."),
        (64, 0, 0, "Alignment 0 must be a power of two, such as 64."),
        (64, 2, 64, "2 is not a bank color: use XV_MEM_BANK_COLOR_0, _1 or _ANY."),
        (64.0, 0, 64, "Size 64.0 and alignment 64 must be integers, in bytes."),
    ],
)
def test_arguments_that_no_buffer_can_have(size_bytes: int, color: int, align: int, sentence: str) -> None:
    tm = TileManager()
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        tm.allocate(size_bytes, color, align)
    assert xvAllocateBuffer(tm, size_bytes, color, align) is XVTM_ERROR
    assert xvGetErrorInfo(tm) == sentence


@each("pools", [(131_073, 0), (0, 131_073), (-1, 0)])
def test_a_pool_must_fit_its_bank(pools: tuple[int, int]) -> None:
    with pytest.raises(BadTile, match="does not fit in TCM bank"):
        TileManager(*pools)
    assert TileManager(131_072, 131_072).largest_free_bytes(1) == 131_072


def test_the_c_names_report_by_value() -> None:
    tm = TileManager(256, 256)
    assert xvGetErrorInfo(tm) == ""
    buffer = xvAllocateBuffer(tm, 200, XV_MEM_BANK_COLOR_1, 64)
    assert isinstance(buffer, memoryview)
    assert not buffer.readonly
    nothing = xvAllocateBuffer(tm, 200, XV_MEM_BANK_COLOR_1, 64)
    assert nothing is XVTM_ERROR
    assert not nothing
    assert repr(nothing) == "XVTM_ERROR"
    assert xvGetErrorInfo(tm).startswith("200 bytes do not fit in TCM bank 1: 56 are free, 0 in one piece.")
    assert xvFreeBuffer(tm, buffer) == XVTM_SUCCESS == 0
    assert tm.live_count == 0


def test_the_live_map_names_the_line_that_allocated() -> None:
    tm = TileManager()

    def next_line() -> str:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        return f"{__file__}:{frame.f_back.f_lineno + 1}"

    expected = [next_line()]
    tm.allocate(1)
    expected.append(next_line())
    xvAllocateBuffer(tm, 1, 0, 64)
    expected.append(next_line())
    with tm.tile(1):
        assert [tile.where for tile in tm.live()] == expected


def test_a_tile_lives_as_long_as_its_block_even_when_that_fails() -> None:
    tm = TileManager()
    with tm.tile(100, XV_MEM_BANK_COLOR_1, 128) as view:
        assert places(tm) == [(1, 0, 100)]
        assert len(view) == 100
    assert tm.live() == []
    with pytest.raises(KeyError), tm.tile(100):
        raise KeyError
    assert tm.live() == []


def test_reset_frees_what_an_op_leaked_and_returns_it() -> None:
    tm = TileManager()
    view = tm.allocate(100, 1)
    array = np.frombuffer(tm.allocate(64, 0), np.uint8)
    leaked = tm.reset()
    assert [(tile.bank, tile.size_bytes) for tile in leaked] == [(0, 64), (1, 100)]
    assert str(leaked[1]).startswith(f"100 bytes at 0x3ffe0000 in bank 1 from {__file__}:")
    assert tm.reset() == tm.live() == []
    assert array.sum() >= 0  # an array keeps its bytes
    with pytest.raises(ValueError, match="released memoryview"):
        bytes(view)
    assert tm.allocate(USABLE, 1).nbytes == USABLE


def test_used_bytes_are_those_of_live_buffers() -> None:
    tm = TileManager()
    tm.free(tm.allocate(1000, 0))
    kept = tm.allocate(10, 0)
    tm.allocate(5, 1)
    assert tm.used_bytes == (10, 5)
    tm.free(kept)
    assert tm.used_bytes == (0, 5)


def test_bank_at() -> None:
    tm = TileManager()
    assert tm.bank_at(address_of(tm.allocate(8, 1)[7:])) == 1
    assert tm.bank_at(address_of(tm.allocate(8, 0))) == 0
    assert tm.bank_at(address_of(memoryview(bytearray(8)))) is None
