"""Dirty bytes, which the CPU changed but did not clean: how the core that runs a task learns about them. Pure.

The submitting program writes them where the slot's text will be, which is empty until the task has an answer. A copy of
the request's key precedes them, so that a core recognizes those of another task.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from hbrt.ddr.layout import PAGE_BYTES, SLOT_TEXT_BYTES

KEY: Final = struct.Struct("<IQQQQ")
"""Key of a request: the client, and address and size of input and output, as in REQUEST."""
_SIZE: Final = struct.Struct("<I")
MAX_BYTES: Final = SLOT_TEXT_BYTES - KEY.size - _SIZE.size
LINE_BYTES: Final = 64
"""Cache line size; the emulator's choice, that of the J5's Cortex-A55."""


class DirtyRanges(NamedTuple):
    """Bytes of one block that a task may use.

    Attributes:
        what: The task's memory, such as "its input block".
        block: Physical address of the block.
        block_bytes: Its size.
        flushed_at: ``file:line`` of the block's last flush; empty if there was none.
        written_at: ``file:line`` of the write to each range's first byte; empty if unknown.
        given: Start of the part of the block that was passed to the task.
        is_whole: Whether the task got all of that part, up to the last range; otherwise its extent is unknown.
        ranges: Physical address and size of each run of dirty bytes.
    """

    what: str
    block: int
    block_bytes: int
    flushed_at: str
    written_at: str
    given: int
    is_whole: bool
    ranges: tuple[tuple[int, int], ...]

    def holds(self, phy_addr: int) -> bool:
        """Whether a byte is dirty."""
        return any(start <= phy_addr < start + size for start, size in self.ranges)


def watched(one: DirtyRanges, start: int, size_bytes: int) -> tuple[int, int]:
    """Return which accesses count as accesses to a range: the first address, and the one after the last.

    A guard sees only the first access to a page. So in a part that the task got as a whole, an access before the range,
    on the range's first page, also counts. Elsewhere the access must touch a cache line of the range.
    """
    low = max(start // PAGE_BYTES * PAGE_BYTES, one.given) if one.is_whole else start // LINE_BYTES * LINE_BYTES
    return min(low, start), start + size_bytes


def packed(found: list[DirtyRanges]) -> bytes:
    """Pack into at most MAX_BYTES: nearby ranges are merged, and ranges that do not fit are dropped."""
    import json  # not loaded by programs without checks

    apart = LINE_BYTES
    while found:
        raw = json.dumps(found, separators=(",", ":")).encode()
        if len(raw) <= MAX_BYTES:
            return raw
        if all(len(one.ranges) == 1 for one in found):
            found = found[:-1]  # users fix the first ones first
        else:
            apart *= 4
            found = [one._replace(ranges=tuple(joined(one.ranges, apart))) for one in found]
    return b""


def unpacked(raw: bytes) -> list[DirtyRanges]:
    """Unpack the ranges from ``packed``'s bytes."""
    if not raw:
        return []
    import json

    return [
        DirtyRanges._make((*rest, tuple((start, size) for start, size in ranges))) for *rest, ranges in json.loads(raw)
    ]


def joined(ranges: Iterable[tuple[int, int]], apart: int) -> list[tuple[int, int]]:
    """Yield ranges in ascending order, merging those less than ``apart`` bytes apart."""
    found: list[tuple[int, int]] = []
    for start, size in ranges:
        if found and start - sum(found[-1]) < apart:
            first = found[-1][0]
            found[-1] = (first, max(sum(found[-1]), start + size) - first)
        else:
            found.append((start, size))
    return found


def message(key: bytes, found: list[DirtyRanges]) -> bytes:
    """Return the bytes for a slot: the request's key, the size, the packed ranges."""
    raw = packed(found)
    return key + _SIZE.pack(len(raw)) + raw


def of_message(raw: bytes, key: bytes) -> list[DirtyRanges]:
    """Return a slot's ranges for a request; none if it holds nothing, or those of another request."""
    (size,) = _SIZE.unpack_from(raw, KEY.size)
    begin = KEY.size + _SIZE.size
    return unpacked(raw[begin : begin + size]) if raw[: KEY.size] == key and size <= MAX_BYTES else []
