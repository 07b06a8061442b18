"""Two copies of one memory, on two machines, that are brought together: the rules. Pure functions over numpy bytes.

Each side keeps a *base*: what it knows both to have held last. A byte that differs from the base was changed here, and
travels; a byte that came from the other side is taken where this side has not changed it since. So newer bytes of one
side are never overwritten by older ones of the other, whatever is on its way between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbrt.layout import PAGE_BYTES
from hbrt.wire import MalformedMessageError

CHUNK_BYTES = 1 << 20  # the most that one Change covers
GAP_PAGES = 4  # unchanged pages between changed ones that are not worth a message of their own
_WORDS = PAGE_BYTES // 8

Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]


class Change(NamedTuple):
    """Bytes of a range that changed.

    Args:
        size_bytes: The range: whole pages, at most CHUNK_BYTES.
        mask: One bit a byte, lowest first: whether it changed; empty when all did.
        data: All bytes of the range, or the changed ones alone.
    """

    size_bytes: int
    mask: bytes
    data: bytes


def changed_runs(now: Bytes, base: Bytes) -> list[tuple[int, int]]:
    """Ranges of whole pages, in bytes from the start, that hold all differences between two copies."""
    differs = (now.view(np.uint64).reshape(-1, _WORDS) != base.view(np.uint64).reshape(-1, _WORDS)).any(axis=1)
    pages = np.flatnonzero(differs)
    if not len(pages):
        return []
    cuts = np.flatnonzero(np.diff(pages) > GAP_PAGES + 1)
    firsts = pages[np.concatenate(([0], cuts + 1))]
    lasts = pages[np.concatenate((cuts, [len(pages) - 1]))]
    return [(int(a) * PAGE_BYTES, (int(b) + 1) * PAGE_BYTES) for a, b in zip(firsts, lasts, strict=True)]


def take(now: Bytes, base: Bytes) -> tuple[Change, Mask]:
    """What changed since the base, which then knows it. Returns the change and the mask of its bytes."""
    snapshot = now.copy()  # whoever writes meanwhile is found by the next look
    mask = snapshot != base
    base[:] = snapshot
    count = int(np.count_nonzero(mask))
    if count == len(mask):
        return Change(count, b"", snapshot.tobytes()), mask
    bits = np.packbits(mask, bitorder="little").tobytes()
    data = snapshot[mask] if 2 * count < len(mask) else snapshot
    return Change(len(mask), bits, data.tobytes()), mask


def spread(change: Change) -> tuple[Bytes, Mask]:
    """The bytes of a change in their places, and which of them changed.

    Raises:
        MalformedMessageError: sizes that do not fit each other; nothing larger than CHUNK_BYTES is made.
    """
    size, data = change.size_bytes, np.frombuffer(change.data, np.uint8)
    if not 0 < size <= CHUNK_BYTES or size % PAGE_BYTES or len(change.mask) not in {0, size // 8}:
        raise MalformedMessageError(f"A change of {size} bytes with a mask of {len(change.mask)} bytes is none.")
    if change.mask:
        mask = np.unpackbits(np.frombuffer(change.mask, np.uint8), bitorder="little").view(np.bool_)
    else:
        mask = np.ones(size, np.bool_)
    if len(data) == size:
        return data, mask
    if len(data) != int(np.count_nonzero(mask)):
        raise MalformedMessageError(f"A change of {size} bytes has {len(data)} bytes of data; its mask says otherwise.")
    values = np.zeros(size, np.uint8)
    values[mask] = data
    return values, mask


def accept(now: Bytes, base: Bytes, values: Bytes, mask: Mask) -> None:
    """Take the other side's bytes over: its word is the last one. What this side changed elsewhere stays."""
    np.copyto(now, values, where=mask)
    np.copyto(base, values, where=mask)


def merge(now: Bytes, base: Bytes, values: Bytes, mask: Mask, under_way: Sequence[tuple[int, Mask]]) -> None:
    """Take the other side's bytes over where this side has nothing newer.

    Args:
        now: This side's bytes.
        base: What both sides held last, as this side knows it.
        values: The other side's bytes.
        mask: Which of them changed there.
        under_way: Changes of this side that the other one had not seen when it sent these: where they start, in bytes
            from the start of this range (negative when before it), and which bytes. They will win there, too.
    """
    if under_way:
        mask = mask.copy()
        for start, newer in under_way:
            first, last = max(start, 0), min(start + len(newer), len(mask))
            if first < last:
                mask[first:last] &= ~newer[first - start : last - start]
    np.copyto(now, values, where=mask & (now == base))
    np.copyto(base, values, where=mask)
