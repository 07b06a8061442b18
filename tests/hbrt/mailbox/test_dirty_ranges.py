"""What the CPU has not cleaned, on its way from a program to a core."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.mailbox.dirty_ranges import (
    KEY,
    MAX_BYTES,
    DirtyRanges,
    joined,
    message,
    of_message,
    packed,
    unpacked,
    watched,
)

ONE = DirtyRanges(
    "its input block", 0x8000_0000, 1 << 20, "main.py:7", "main.py:9", 0x8000_0100, True, ((0x8000_1234, 10),)
)
RANGES = st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 1 << 20)), min_size=1, max_size=600).map(
    lambda pairs: tuple(joined(sorted(pairs), 1))
)


@given(st.lists(st.builds(ONE._replace, ranges=RANGES, is_whole=st.booleans()), max_size=40))
def test_what_has_room_arrives_and_covers_the_bytes(found: list[DirtyRanges]) -> None:
    raw = packed(found)
    assert len(raw) <= MAX_BYTES
    there = unpacked(raw)
    assert len(there) == len(found) or len(raw) > MAX_BYTES // 2
    for sent, come in zip(found, there, strict=False):
        assert come._replace(ranges=()) == sent._replace(ranges=())
        for start, size in sent.ranges:
            assert any(low <= start and start + size <= low + length for low, length in come.ranges)


def test_ranges_that_have_room_are_those_that_were_sent() -> None:
    found = [ONE._replace(ranges=tuple((0x8000_0000 + 200 * at, 8) for at in range(100)))]
    assert unpacked(packed(found)) == found


def test_a_core_finds_what_is_of_its_request_alone() -> None:
    key, other = KEY.pack(1, 2, 3, 4, 5), KEY.pack(1, 2, 3, 4, 6)
    raw = message(key, [ONE]).ljust(4000, b"\xff")
    assert of_message(raw, key) == [ONE]
    assert of_message(raw, other) == []
    assert of_message(message(key, []).ljust(4000, b"\xff"), key) == []
    assert of_message(key + b"\xff" * 3000, key) == []


def test_an_access_in_front_counts_in_what_was_given_whole() -> None:
    start = 0x8000_1234
    assert watched(ONE, start, 10) == (0x8000_1000, start + 10)
    assert watched(ONE._replace(given=0x8000_1200), start, 10) == (0x8000_1200, start + 10)
    assert watched(ONE._replace(is_whole=False), start, 10) == (0x8000_1200, start + 10)
    assert watched(ONE._replace(is_whole=False), PAGE_BYTES, 1) == (PAGE_BYTES, PAGE_BYTES + 1)
