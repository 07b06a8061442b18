"""One side's copy of a board's memory, synchronized with another machine's copy: see ``hbrt.remote.shadow``.

The base is in private memory that costs nothing until something differs from zero; untouched parts are holes in the DDR
file and are never read, so that checking costs no memory.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedDict

from hbrt.ddr.file import Ddr, data_runs
from hbrt.ddr.layout import PAGE_BYTES, extent_of
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import CHUNK_BYTES
from hbrt.remote.shadow import Bits, Change, accept, changed_runs, learn, merge, spread, take

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class Holding(NamedTuple):
    """A block that a client holds."""

    size_bytes: int
    extent: int  # bytes from its start to synchronize: whole pages, and the guard
    is_owned: bool
    registrations: int


class Holdings:
    """The blocks that one client owns or has registered, by physical address. Callers must lock."""

    def __init__(self, phy_end: int) -> None:
        self._phy_end = phy_end
        self._by_start: SortedDict[int, Holding] = SortedDict()

    def hold(self, phy_addr: int, size_bytes: int, *, is_owned: bool) -> Holding:
        """Record that the client owns a block, or has registered it once more."""
        before: Holding | None = self._by_start.get(phy_addr)
        if before is None:
            extent = extent_of(phy_addr, size_bytes, self._phy_end)
            held = Holding(size_bytes, extent, is_owned, int(not is_owned))
        elif is_owned:
            held = before._replace(is_owned=True)
        else:
            held = before._replace(registrations=before.registrations + 1)
        self._by_start[phy_addr] = held
        return held

    def release(self, phy_addr: int, *, is_owned: bool) -> Holding | None:
        """Undo ``hold``; returns the remaining holding, None if the client no longer has the block."""
        held: Holding | None = self._by_start.get(phy_addr)
        if held is None:
            return None
        if is_owned:
            held = held._replace(is_owned=False)
        else:
            held = held._replace(registrations=max(0, held.registrations - 1))
        if held.is_owned or held.registrations:
            self._by_start[phy_addr] = held
            return held
        del self._by_start[phy_addr]
        return None

    def find(self, phy_addr: int, size_bytes: int) -> tuple[int, Holding] | None:
        """Return the block whose extent contains the whole range, and its start."""
        at = self._by_start.bisect_right(phy_addr) - 1
        if at < 0 or size_bytes < 0:
            return None
        start, held = self._by_start.peekitem(at)
        return (start, held) if phy_addr + size_bytes <= start + held.extent else None

    def all(self) -> list[tuple[int, Holding]]:
        """Every block, by address."""
        return list(self._by_start.items())


class ShadowMemory:
    """A DDR mapping with its base.

    Args:
        ddr: This side's copy.
    """

    def __init__(self, ddr: Ddr) -> None:
        self._ddr = ddr
        self._bytes = np.frombuffer(ddr.map, np.uint8)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        self._image = mmap.mmap(-1, ddr.layout.file_bytes, flags=flags)
        self._image.madvise(mmap.MADV_NOHUGEPAGE)  # one changed page must not cost 2 MiB
        self._base = np.frombuffer(self._image, np.uint8)
        self.lock = threading.Lock()  # for the base, and for the copy while it is compared with the base

    def changes(
        self, phy_addr: int, size_bytes: int, note: Callable[[int, Bits], int]
    ) -> Iterator[tuple[int, Change, int]]:
        """Yield local changes in a range since the base, and update it.

        Args:
            phy_addr: Start of the range, page-aligned.
            size_bytes: Whole pages.
            note: Called under ``lock`` with the address and bits of each change as it is taken.

        Yields:
            Address, change, what ``note`` returned. At most CHUNK_BYTES are held at a time.
        """
        start = self._ddr.offset_of(phy_addr)
        base_address = phy_addr - start
        for run in data_runs(self._ddr.fd, start, start + size_bytes):
            first, last = run[0] // PAGE_BYTES * PAGE_BYTES, -(-run[1] // PAGE_BYTES) * PAGE_BYTES
            for at in range(first, last, CHUNK_BYTES):
                found = []
                with self.lock:
                    now, base = (
                        self._bytes[at : min(at + CHUNK_BYTES, last)],
                        self._base[at : min(at + CHUNK_BYTES, last)],
                    )
                    for begin, end in changed_runs(now, base):
                        change, bits = take(now[begin:end], base[begin:end])
                        address = base_address + at + begin
                        found.append((address, change, note(address, bits)))
                yield from found

    def accept(self, phy_addr: int, change: Change) -> None:
        """Accept a change from the other side; see ``hbrt.remote.shadow.accept``.

        Raises:
            MalformedMessageError: it is invalid, or outside the heap.
        """
        values, bits = spread(change)
        at = self._place(phy_addr, len(values))
        with self.lock:
            accept(self._bytes[at], self._base[at], values, bits)

    def merge(self, phy_addr: int, change: Change, under_way: Callable[[], Sequence[tuple[int, Bits]]]) -> None:
        """Accept a change from the other side where this side has nothing newer; see ``hbrt.remote.shadow.merge``.

        ``under_way`` is called under ``lock`` and returns addresses and bits.

        Raises:
            MalformedMessageError: it is invalid, or outside the heap.
        """
        values, bits = spread(change)
        at = self._place(phy_addr, len(values))
        with self.lock:
            newer = [(address - phy_addr, ours) for address, ours in under_way()]
            merge(self._bytes[at], self._base[at], values, bits, newer)

    def learn(self, phy_addr: int, change: Change) -> None:
        """Record the other side's contents without accepting them; see ``hbrt.remote.shadow.learn``.

        Raises:
            MalformedMessageError: it is invalid, or outside the heap.
        """
        values, bits = spread(change)
        at = self._place(phy_addr, len(values))
        with self.lock:
            learn(self._base[at], values, bits)

    def both(self, phy_addr: int, size_bytes: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return copies of a range: this side's bytes, and the other side's as far as known.

        Args:
            phy_addr: Start of the range.
            size_bytes: Its size.
        """
        start = self._ddr.offset_of(phy_addr)
        with self.lock:
            return self._bytes[start : start + size_bytes].copy(), self._base[start : start + size_bytes].copy()

    def discard(self, phy_addr: int, size_bytes: int) -> None:
        """Reset the base of a range to zeros: its block is gone."""
        with self.lock:
            self._image.madvise(mmap.MADV_DONTNEED, self._ddr.offset_of(phy_addr), size_bytes)

    def close(self) -> None:
        """Free the base."""
        with self.lock:
            del self._bytes, self._base
        with contextlib.suppress(BufferError):  # unfinished iterations over changes still refer to it
            self._image.close()

    def _place(self, phy_addr: int, size_bytes: int) -> slice:
        layout = self._ddr.layout
        if phy_addr % PAGE_BYTES or not layout.phy_base <= phy_addr <= layout.phy_end - size_bytes:
            raise MalformedMessageError(f"The range {phy_addr:#x}+{size_bytes:#x} does not consist of whole DDR pages.")
        offset = self._ddr.offset_of(phy_addr)
        return slice(offset, offset + size_bytes)
