"""Dirty bytes, which the CPU changed and did not clean: how the core that runs a task learns of them. Pure.

The program that submits the task writes them where the slot's text will be, which is empty until the task has an
answer. A copy of the key of the request stands before them, so that a core recognizes those of another task.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from hbrt.ddr.layout import PAGE_BYTES, SLOT_TEXT_BYTES

KEY: Final = struct.Struct("<IQQQQ")
"""The key of a request: the client, and address and size of its input and of its output, as in REQUEST."""
_SIZE: Final = struct.Struct("<I")
MAX_BYTES: Final = SLOT_TEXT_BYTES - KEY.size - _SIZE.size
LINE_BYTES: Final = 64
"""A cache line; emulator's choice, that of the Cortex-A55 of the J5."""


class DirtyRanges(NamedTuple):
    """Bytes of one block that a task may use.

    Attributes:
        what: Which memory of the task: "its input block".
        block: Physical address of the block.
        block_bytes: Its size.
        flushed_at: ``file:line`` of the last flush of the block; empty when there was none.
        written_at: ``file:line`` of the write to the first byte of each of the ranges; empty where no line is known.
        given: Start of the part of the block that was passed to the task.
        is_whole: Whether the task was given all of that part, to the last of the ranges; else how far it goes is not
            known.
        ranges: Physical address and size of each run of such bytes.
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
        """Whether a byte is one of them."""
        return any(start <= phy_addr < start + size for start, size in self.ranges)


def watched(one: DirtyRanges, start: int, size_bytes: int) -> tuple[int, int]:
    """Which accesses count as accesses to a range: the first address, and the one after the last.

    A guard sees the first access to a page alone. So in a part that the task was given as a whole, an access before the
    range, on the range's first page, counts as well. Elsewhere the access must meet a cache line of the range.
    """
    low = max(start // PAGE_BYTES * PAGE_BYTES, one.given) if one.is_whole else start // LINE_BYTES * LINE_BYTES
    return min(low, start), start + size_bytes


def packed(found: list[DirtyRanges]) -> bytes:
    """As bytes, at most MAX_BYTES: close ranges become one, and ranges without room are left out."""
    import json  # a program without checks does not load it

    apart = LINE_BYTES
    while found:
        raw = json.dumps(found, separators=(",", ":")).encode()
        if len(raw) <= MAX_BYTES:
            return raw
        if all(len(one.ranges) == 1 for one in found):
            found = found[:-1]  # a user mends the first ones first
        else:
            apart *= 4
            found = [one._replace(ranges=tuple(joined(one.ranges, apart))) for one in found]
    return b""


def unpacked(raw: bytes) -> list[DirtyRanges]:
    """The ranges that ``packed`` made bytes of."""
    if not raw:
        return []
    import json

    return [
        DirtyRanges._make((*rest, tuple((start, size) for start, size in ranges))) for *rest, ranges in json.loads(raw)
    ]


def joined(ranges: Iterable[tuple[int, int]], apart: int) -> list[tuple[int, int]]:
    """Ranges in ascending order, of which those that lie less than ``apart`` bytes from one another are one."""
    found: list[tuple[int, int]] = []
    for start, size in ranges:
        if found and start - sum(found[-1]) < apart:
            first = found[-1][0]
            found[-1] = (first, max(sum(found[-1]), start + size) - first)
        else:
            found.append((start, size))
    return found


def message(key: bytes, found: list[DirtyRanges]) -> bytes:
    """The bytes for a slot: the key of the request, the size, the packed ranges."""
    raw = packed(found)
    return key + _SIZE.pack(len(raw)) + raw


def of_message(raw: bytes, key: bytes) -> list[DirtyRanges]:
    """The ranges that a slot has for a request; none when it holds nothing, or those of another request."""
    (size,) = _SIZE.unpack_from(raw, KEY.size)
    begin = KEY.size + _SIZE.size
    return unpacked(raw[begin : begin + size]) if raw[: KEY.size] == key and size <= MAX_BYTES else []
