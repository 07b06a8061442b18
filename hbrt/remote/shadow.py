"""Rules for synchronizing two copies of a memory on two machines. Pure functions over numpy bytes.

Each side keeps a *base*: the last contents known to both. A byte that differs from the base was changed here and is
sent; a byte from the other side is accepted if this side has not changed it since. So newer bytes on one side are never
overwritten by older ones from the other, whatever is in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import CHUNK_BYTES

GAP_PAGES = 4  # unchanged pages between changed ones not worth a separate message
_WORDS = PAGE_BYTES // 8
_FEW_BYTES = 4 * PAGE_BYTES

Bytes = NDArray[np.uint8]
Bits = NDArray[np.uint8]  # which bytes: one bit each, lowest first, so one element per eight-byte word
_ALL = 0xFF


class Change(NamedTuple):
    """Changed bytes of a range.

    Args:
        size_bytes: The range: whole pages, at most CHUNK_BYTES.
        mask: Bits of the changed bytes; empty if all changed.
        data: All bytes of the range, or only the changed ones.
    """

    size_bytes: int
    mask: bytes
    data: bytes


def changed_runs(now: Bytes, base: Bytes) -> list[tuple[int, int]]:
    """Yield ranges of whole pages, in bytes from the start, that contain all differences between two copies."""
    if len(now) <= _FEW_BYTES and now.tobytes() == base.tobytes():
        return []  # most blocks are small and unchanged: numpy's calls would cost more than this check
    differs = (now.view(np.uint64).reshape(-1, _WORDS) != base.view(np.uint64).reshape(-1, _WORDS)).any(axis=1)
    pages = np.flatnonzero(differs)
    if not len(pages):
        return []
    cuts = np.flatnonzero(np.diff(pages) > GAP_PAGES + 1)
    firsts = pages[np.concatenate(([0], cuts + 1))]
    lasts = pages[np.concatenate((cuts, [len(pages) - 1]))]
    return [(int(a) * PAGE_BYTES, (int(b) + 1) * PAGE_BYTES) for a, b in zip(firsts, lasts, strict=True)]


def take(now: Bytes, base: Bytes) -> tuple[Change, Bits]:
    """Take the changes since the base, and update it. Returns the change and the bits of its bytes."""
    snapshot = now.copy()  # the next check finds later writes
    mask = snapshot != base
    base[:] = snapshot
    count, size = int(np.count_nonzero(mask)), len(mask)
    bits = np.packbits(mask, bitorder="little")
    if count == size:
        return Change(size, b"", snapshot.tobytes()), bits
    data = snapshot[mask] if 8 * count < size else snapshot  # selecting bytes costs more than sending a few extra
    return Change(size, bits.tobytes(), data.tobytes()), bits


def spread(change: Change) -> tuple[Bytes, Bits]:
    """Return the bytes of a change in their places, and the bits of the changed ones.

    Raises:
        MalformedMessageError: inconsistent sizes; nothing larger than CHUNK_BYTES is allocated.
    """
    size, data = change.size_bytes, np.frombuffer(change.data, np.uint8)
    if not 0 < size <= CHUNK_BYTES or size % PAGE_BYTES or len(change.mask) not in {0, size // 8}:
        raise MalformedMessageError(f"A change of {size} bytes with a mask of {len(change.mask)} bytes is malformed.")
    bits = np.frombuffer(change.mask, np.uint8) if change.mask else np.full(size // 8, _ALL, np.uint8)
    if len(data) == size:
        return data, bits
    mask = np.unpackbits(bits, bitorder="little").view(np.bool_)
    if len(data) != int(np.count_nonzero(mask)):
        raise MalformedMessageError(f"A change of {size} bytes has {len(data)} bytes of data; its mask says otherwise.")
    values = np.zeros(size, np.uint8)
    values[mask] = data
    return values, bits


def accept(now: Bytes, base: Bytes, values: Bytes, bits: Bits) -> None:
    """Accept the other side's bytes unconditionally. This side's changes elsewhere are kept."""
    _put(now, values, bits)
    _put(base, values, bits)


def learn(base: Bytes, values: Bytes, bits: Bits) -> None:
    """Record the other side's contents without accepting them: differing bytes count as changed here."""
    _put(base, values, bits)


def merge(now: Bytes, base: Bytes, values: Bytes, bits: Bits, under_way: Sequence[tuple[int, Bits]]) -> None:
    """Accept the other side's bytes where this side has nothing newer.

    Args:
        now: This side's bytes.
        base: The last common contents known to this side.
        values: The other side's bytes.
        bits: The ones that changed there.
        under_way: This side's changes that the other had not seen when it sent these: start, in bytes from this range's
            start (negative if before it), and which bytes. They will win there, too.
    """
    if under_way:
        bits = bits.copy()
        for start, newer in under_way:
            word = start // 8
            first, last = max(word, 0), min(word + len(newer), len(bits))
            if first < last:
                bits[first:last] &= ~newer[first - word : last - word]
    clean = bits
    changed = np.flatnonzero(now.view(np.uint64) != base.view(np.uint64))
    if len(changed):
        clean = bits.copy()
        same = now.reshape(-1, 8)[changed] == base.reshape(-1, 8)[changed]
        clean[changed] &= np.packbits(same, axis=1, bitorder="little")[:, 0]
    _put(now, values, clean)
    _put(base, values, bits)


def _put(target: Bytes, values: Bytes, bits: Bits) -> None:
    """Write only the bytes whose bits are set, since others may be writing the rest."""
    whole = bits == _ALL
    np.copyto(target.view(np.uint64), values.view(np.uint64), where=whole)
    parts = np.flatnonzero((bits != 0) & ~whole)
    if len(parts):
        at = (parts[:, np.newaxis] * 8 + np.arange(8))[
            np.unpackbits(bits[parts, np.newaxis], axis=1, bitorder="little") != 0
        ]
        target[at] = values[at]
