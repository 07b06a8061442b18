"""A block of device memory in this process, and users of blocks that the daemon does not know."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.ddr.private_pages import AnyBytes, mprotect

if TYPE_CHECKING:
    from collections.abc import Callable


MARGIN_BYTES: Final = 1 << 16
"""Emulator: guard size on each side of an image, in bytes."""


class BlockUser(Protocol):
    """Users of this process's memory that the daemon does not know: tasks of models."""

    def user_of(self, phy_addr: int, size_bytes: int) -> tuple[str, str] | None:
        """Return who uses any of this memory, and since which ``file:line``; None if it is not in use."""

    def keep(self, phy_addr: int, size_bytes: int, release: Callable[[], None]) -> bool:
        """Call ``release`` when it is no longer in use; return False if it is not in use now."""


block_users: list[BlockUser] = []
"""Asked before a block is freed: blocks in use are freed when their users have finished."""


MAX_WRITES = 64  # remember this many program lines that wrote into a block


class Exporter(AnyBytes):  # type: ignore[misc, valid-type]
    """A block's bytes, exported by the buffer protocol: every view of them keeps this object alive.

    numpy, for example, drops every array between a view and the object that owns the buffer.
    """

    bytes: memoryview  # keeps the bytes mapped


class Block:
    """One block in this process."""

    __slots__ = (
        "_exporter",
        "_exporter_ref",
        "address",
        "allocated_at",
        "base",
        "behind",
        "flushed",
        "flushed_at",
        "image",
        "image_map",
        "is_cached",
        "is_flushed",
        "is_given",
        "is_imported",
        "is_managed",
        "is_registered",
        "is_reported",
        "is_runtimes",
        "is_shared_reported",
        "is_stale_reported",
        "marks",
        "phy_addr",
        "registrations",
        "size_bytes",
        "spilt",
        "writes",
    )

    def __init__(self, phy_addr: int, size_bytes: int, ddr: memoryview, *, is_cached: bool, image: bool) -> None:
        """``ddr``: the bytes of the block, the rest of its last page, and the guard after it."""
        self.phy_addr = phy_addr
        self.size_bytes = size_bytes
        self.is_cached = is_cached
        self.allocated_at = ""  # file and line in the program that allocated or registered it
        self.is_registered = False
        self.is_imported = False  # memory of another library, which is unregistered, not freed
        self.is_managed = False  # freed automatically when nothing refers to it any more
        self.is_runtimes = False  # kept by the runtime for a model, not the program's
        self.registrations = 0
        self.base = ddr[:size_bytes]  # this block's bytes in the DDR
        self.behind = ddr[size_bytes:]  # bytes that nobody may write
        self.image_map = _closed_around(len(ddr)) if image else None
        whole = memoryview(self.image_map)[MARGIN_BYTES:-MARGIN_BYTES] if self.image_map is not None else None
        self.image = whole[:size_bytes] if whole is not None else None
        self.spilt = whole[size_bytes:] if whole is not None else None  # bytes written past the image's end
        self.flushed = memoryview(mmap.mmap(-1, size_bytes)) if image else None  # the image after the last flush
        self.flushed_at = ""  # file and line of the program's last flush, under the check coherence
        self.is_reported = False  # a missing clean of this block was reported
        self.is_given = False  # given to a task that may have written it since the last invalidate
        self.is_shared_reported = False  # reported: two unfinished tasks use it
        self.is_stale_reported = False  # reported: the CPU read stale bytes
        self.writes: Writes | None = None  # writes since the last flush, by program line, under the check coherence
        self.is_flushed = False  # the program has flushed this block before
        self.marks: list[int] = []  # offsets where ranges that it named begin or end; see arm_client.strict.checker
        self.address = address_of(self.base if self.image is None else self.image)
        self._exporter: Exporter | None = None
        self._export()

    @property
    def view(self) -> memoryview:
        """The block's bytes as the CPU sees them, writable: in the DDR, or in the image."""
        exporter = self._exporter_ref()
        if exporter is None:
            exporter = self._export()
        return memoryview(exporter).cast("B")[: self.size_bytes]

    def hand_over(self) -> Exporter:
        """The object that keeps the block's bytes viewed; its owner frees the block when that object goes."""
        exporter, self._exporter = self._exporter_ref() or self._export(), None
        return exporter

    def viewed(self) -> Exporter | None:
        """Release the object that views of the block hold, and return it; None if there is no view."""
        self._exporter = None
        return self._exporter_ref()

    def _export(self) -> Exporter:
        exporter: Exporter = Exporter.from_address(self.address)
        exporter.bytes = self.base if self.image is None else self.image
        self._exporter = exporter
        self._exporter_ref = weakref.ref(exporter)
        return exporter

    def end_of_pages(self, start: int) -> int:
        """Return where the block's last page ends in the DDR file, for a block that begins at ``start``."""
        return start + -(-self.size_bytes // PAGE_BYTES) * PAGE_BYTES

    def clean(self, start: int, end: int) -> None:
        """Copy the CPU image to DDR."""
        if self.image is not None and self.flushed is not None:
            self.base[start:end] = self.flushed[start:end] = self.image[start:end]

    def spill(self) -> None:
        """Write bytes past the image's end to where they belong, as a cache does in time; the board finds them."""
        if self.spilt is not None and (spilt := bytes(self.spilt)) != bytes(len(self.spilt)):
            for at, byte in enumerate(spilt):
                if byte:
                    self.behind[at] = byte

    def invalidate(self, start: int, end: int) -> None:
        """Copy DDR to the CPU image."""
        if self.image is not None and self.flushed is not None:
            self.image[start:end] = self.flushed[start:end] = self.base[start:end]


class Writes:
    """The program lines that wrote a block's image since the last flush, as far as recorded."""

    def __init__(self) -> None:
        self._latest: deque[tuple[int, int, str]] = deque(maxlen=MAX_WRITES)  # start, end, file:line

    def note(self, start: int, size_bytes: int, site: str) -> None:
        """Record that a line has written a range, by its offset; a one-line loop over a range is one write."""
        if self._latest:
            low, high, last = self._latest[-1]
            if site == last and low <= start <= high:
                self._latest[-1] = (low, max(high, start + size_bytes), site)
                return
        self._latest.append((start, start + size_bytes, site))

    def flushed(self, start: int, end: int) -> None:
        """Drop the writes inside a flushed range."""
        kept = [one for one in self._latest if not (start <= one[0] and one[1] <= end)]
        self._latest.clear()
        self._latest.extend(kept)

    def site_of(self, offset: int) -> str:
        """Return the line of the last recorded write to a byte; empty for none."""
        return next((site for low, high, site in reversed(self._latest) if low <= offset < high), "")


def _closed_around(size_bytes: int) -> mmap.mmap:
    """Map pages for an image between pages that fault; a stray pointer would otherwise reach another mapping."""
    pages = mmap.mmap(-1, size_bytes + 2 * MARGIN_BYTES)
    start = address_of(memoryview(pages))
    for margin in (start, start + MARGIN_BYTES + -(-size_bytes // PAGE_BYTES) * PAGE_BYTES):
        mprotect(margin, MARGIN_BYTES, 0)  # when the kernel has no mapping left, fewer mistakes are detected
    return pages


def address_of(view: memoryview) -> int:
    """Address of the first byte in this process."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view))
