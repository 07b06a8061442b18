"""Bytes that the CPU changed and did not clean: from the program that submits a task to the core that runs it. Pure.

They travel where the slot's text will be, which is empty until the task has an answer. In front of them is a copy of
what tells the request, so that a core that finds another one there knows that they are not of its task.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from hbrt.ddr.layout import PAGE_BYTES, SLOT_TEXT_BYTES

KEY: Final = struct.Struct("<IQQQQ")
"""What tells a request from others: the client, and address and size of its input and of its output, as in REQUEST."""
_SIZE: Final = struct.Struct("<I")
MOST_BYTES: Final = SLOT_TEXT_BYTES - KEY.size - _SIZE.size
LINE_BYTES: Final = 64
"""A cache line; emulator's choice, that of the Cortex-A55 of the J5."""


class Uncleaned(NamedTuple):
    """Bytes of one block that a task may use.

    Attributes:
        what: Which memory of the task: "its input block".
        block: Physical address of the block.
        block_bytes: Its size.
        flushed_at: ``file:line`` of the last flush of the block; empty when there was none.
        written_at: ``file:line`` of the write to the first byte of each of the ranges; empty where it is not known.
        given: Where the part of the block begins that the task was given.
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


def watched(one: Uncleaned, start: int, size_bytes: int) -> tuple[int, int]:
    """Where an access counts as one of a range: first address, and the one after the last.

    A guard sees the first access to a page alone, so in a part that the task was given as a whole, an access in front
    of the range, on the page on which it begins, counts as well. Elsewhere the access must meet a line of the range.
    """
    low = max(start // PAGE_BYTES * PAGE_BYTES, one.given) if one.is_whole else start // LINE_BYTES * LINE_BYTES
    return min(low, start), start + size_bytes


def packed(found: list[Uncleaned]) -> bytes:
    """As bytes, at most MOST_BYTES: ranges close to one another become one, and what has no room is left out."""
    import json  # who checks nothing does not load it

    apart = LINE_BYTES
    while found:
        raw = json.dumps(found, separators=(",", ":")).encode()
        if len(raw) <= MOST_BYTES:
            return raw
        if all(len(one.ranges) == 1 for one in found):
            found = found[:-1]  # the first ones are mended first
        else:
            apart *= 4
            found = [one._replace(ranges=tuple(joined(one.ranges, apart))) for one in found]
    return b""


def unpacked(raw: bytes) -> list[Uncleaned]:
    """What ``packed`` made bytes of."""
    if not raw:
        return []
    import json

    return [
        Uncleaned._make((*rest, tuple((start, size) for start, size in ranges))) for *rest, ranges in json.loads(raw)
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


def message(key: bytes, found: list[Uncleaned]) -> bytes:
    """What stands in a slot: the key of the request, the size, the bytes."""
    raw = packed(found)
    return key + _SIZE.pack(len(raw)) + raw


def of_message(raw: bytes, key: bytes) -> list[Uncleaned]:
    """What a slot has for a request; nothing when it has none, or of another request."""
    (size,) = _SIZE.unpack_from(raw, KEY.size)
    begin = KEY.size + _SIZE.size
    return unpacked(raw[begin : begin + size]) if raw[: KEY.size] == key and size <= MOST_BYTES else []
