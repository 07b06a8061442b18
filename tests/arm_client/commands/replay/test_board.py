"""Where the memory of a recording lies on the board that replays it. No process."""

from __future__ import annotations

from pathlib import Path

import pytest

from arm_client.commands.replay.board import blocks_for, span_of
from hbrt.ddr.layout import plan
from hbrt.recording.format import BadRecordingError, Call, Range, Recorded
from tests.each import each

PAGE = 4096


def ranges(*starts_and_ends: tuple[int, int]) -> tuple[Range, ...]:
    return tuple(Range(start, end - start, "before") for start, end in starts_and_ends)


@each(
    "used, blocks",
    [
        (ranges((5, 6)), [(0, PAGE)]),
        (ranges((5, 6), (100, 200)), [(0, PAGE)]),
        (ranges((0, PAGE), (PAGE, PAGE + 1)), [(0, 2 * PAGE)]),
        (ranges((0, 1), (2 * PAGE, 3 * PAGE)), [(0, PAGE), (2 * PAGE, 3 * PAGE)]),  # a guard page fits between
        (ranges((9 * PAGE - 1, 9 * PAGE + 1), (1, 2)), [(0, PAGE), (8 * PAGE, 10 * PAGE)]),
        ((), []),
    ],
)
def test_blocks_hold_all_ranges_with_room_for_guards(used: tuple[Range, ...], blocks: list[tuple[int, int]]) -> None:
    assert blocks_for(used) == blocks


@pytest.mark.parametrize("low", [0x4000_0000, 0xA_0000_1234])
def test_the_heap_holds_the_lowest_and_the_highest_byte(low: int) -> None:
    call = Recorded("a", Path(), Call(1, ranges=ranges((low, low + 10), (low + (1 << 30), low + (1 << 30) + 1))))
    base, heap_bytes = span_of([call])
    layout = plan(heap_bytes, 1, base)
    assert layout.phy_base <= low < low + (1 << 30) + 1 <= layout.phy_end


def test_memory_that_no_board_can_have_is_refused() -> None:
    with pytest.raises(BadRecordingError, match="has memory at 0x1000"):
        span_of([Recorded("a", Path(), Call(1, ranges=ranges((PAGE, PAGE + 1))))])
