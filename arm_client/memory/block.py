"""A block of device memory as this process holds it, and who may use one without the daemon's knowledge."""

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
"""Emulator: so much on both sides of an image cannot be touched."""


class BlockUser(Protocol):
    """What uses memory of this process without the daemon's knowledge: tasks of models."""

    def user_of(self, phy_addr: int, size_bytes: int) -> tuple[str, str] | None:
        """Who uses any of this memory, and the ``file:line`` that made it so; None when it is not in use."""

    def keep(self, phy_addr: int, size_bytes: int, release: Callable[[], None]) -> bool:
        """Have ``release`` called when it no longer is; False when it is not in use."""


block_users: list[BlockUser] = []
"""Asked before a block is freed: what they use goes when they have ended."""


MAX_WRITES = 64  # this many lines of a program that wrote into a block are remembered


class Exporter(AnyBytes):  # type: ignore[misc, valid-type]
    """The bytes of a block, as the buffer protocol gives them out: whatever looks at them keeps this object.

    numpy, for one, drops every array between a view and the object whose buffer it looks at.
    """

    bytes: memoryview  # keeps them mapped


class Block:
    """One block as this process holds it."""

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
        """``ddr``: the bytes of the block, its last page's rest, and the guard behind it."""
        self.phy_addr = phy_addr
        self.size_bytes = size_bytes
        self.is_cached = is_cached
        self.allocated_at = ""  # file and line of the program, of its registration too
        self.is_registered = False
        self.is_imported = False  # memory of another library, which is unregistered, not freed
        self.is_managed = False  # something frees it when nothing refers to it any more
        self.is_runtimes = False  # what the runtime keeps for a model: none of the program's
        self.registrations = 0
        self.base = ddr[:size_bytes]  # the DDR's bytes of this block
        self.behind = ddr[size_bytes:]  # those that nobody may write
        self.image_map = _closed_around(len(ddr)) if image else None
        whole = memoryview(self.image_map)[MARGIN_BYTES:-MARGIN_BYTES] if self.image_map is not None else None
        self.image = whole[:size_bytes] if whole is not None else None
        self.spilt = whole[size_bytes:] if whole is not None else None  # what a program writes past the image's end
        self.flushed = memoryview(mmap.mmap(-1, size_bytes)) if image else None  # the image as flushes left it
        self.flushed_at = ""  # file and line of the program's last flush of it, under the check coherence
        self.is_reported = False  # a finding says that the program did not clean this block
        self.is_given = False  # to a task, which may have written it, since it was invalidated
        self.is_shared_reported = False  # likewise, that two unfinished tasks use it
        self.is_stale_reported = False  # likewise, that the CPU read what a task had changed
        self.writes: Writes | None = None  # by lines of the program since they were flushed, under the check coherence
        self.is_flushed = False  # the program knows that this block needs its flushes
        self.marks: list[int] = []  # offsets where ranges begin or end that it named; see arm_client.strict.checker
        self.address = address_of(self.base if self.image is None else self.image)
        self._exporter: Exporter | None = None
        self._export()

    @property
    def view(self) -> memoryview:
        """Writable bytes as the CPU sees them: the DDR's own, or those of the image."""
        exporter = self._exporter_ref()
        if exporter is None:
            exporter = self._export()
        return memoryview(exporter).cast("B")[: self.size_bytes]

    def hand_over(self) -> Exporter:
        """What keeps the block's bytes viewed, for an owner who frees the block when that object goes."""
        exporter, self._exporter = self._exporter_ref() or self._export(), None
        return exporter

    def viewed(self) -> Exporter | None:
        """What views of the block hold, once this object holds it no more; None when there is no view."""
        self._exporter = None
        return self._exporter_ref()

    def _export(self) -> Exporter:
        exporter: Exporter = Exporter.from_address(self.address)
        exporter.bytes = self.base if self.image is None else self.image
        self._exporter = exporter
        self._exporter_ref = weakref.ref(exporter)
        return exporter

    def end_of_pages(self, start: int) -> int:
        """Where the block's last page ends in the DDR file, in which it begins at ``start``."""
        return start + -(-self.size_bytes // PAGE_BYTES) * PAGE_BYTES

    def clean(self, start: int, end: int) -> None:
        """CPU image to DDR."""
        if self.image is not None and self.flushed is not None:
            self.base[start:end] = self.flushed[start:end] = self.image[start:end]

    def spill(self) -> None:
        """Put what was written past the image's end where it was meant, as a cache does in time: the board finds it."""
        if self.spilt is not None and (spilt := bytes(self.spilt)) != bytes(len(self.spilt)):
            for at, byte in enumerate(spilt):
                if byte:
                    self.behind[at] = byte

    def invalidate(self, start: int, end: int) -> None:
        """DDR to CPU image."""
        if self.image is not None and self.flushed is not None:
            self.image[start:end] = self.flushed[start:end] = self.base[start:end]


class Writes:
    """The lines that wrote the bytes of a block's image since they were flushed, as far as that is noted."""

    def __init__(self) -> None:
        self._latest: deque[tuple[int, int, str]] = deque(maxlen=MAX_WRITES)  # start, end, file:line

    def note(self, start: int, size_bytes: int, site: str) -> None:
        """Note that a line has written a range, by its offset; a loop of one line over a range is one write."""
        if self._latest:
            low, high, last = self._latest[-1]
            if site == last and low <= start <= high:
                self._latest[-1] = (low, max(high, start + size_bytes), site)
                return
        self._latest.append((start, start + size_bytes, site))

    def flushed(self, start: int, end: int) -> None:
        """Forget the writes inside of a range that was flushed."""
        kept = [one for one in self._latest if not (start <= one[0] and one[1] <= end)]
        self._latest.clear()
        self._latest.extend(kept)

    def site_of(self, offset: int) -> str:
        """The line of the last noted write to a byte, empty for none."""
        return next((site for low, high, site in reversed(self._latest) if low <= offset < high), "")


def _closed_around(size_bytes: int) -> mmap.mmap:
    """Pages for an image, between pages that fault: else a pointer that runs out of it meets another mapping."""
    pages = mmap.mmap(-1, size_bytes + 2 * MARGIN_BYTES)
    start = address_of(memoryview(pages))
    for margin in (start, start + MARGIN_BYTES + -(-size_bytes // PAGE_BYTES) * PAGE_BYTES):
        mprotect(margin, MARGIN_BYTES, 0)  # where the kernel has no mapping left, less is noticed
    return pages


def address_of(view: memoryview) -> int:
    """Where the first byte lies in this process."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view))
