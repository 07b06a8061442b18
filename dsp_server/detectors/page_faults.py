"""Guards over device memory: the first access to a guarded range is reported, then proceeds.

A guard protects whole pages, and only in this core's mapping: other processes read and write there as before. It sees
every access by the op from Python, numpy and C, with the exact address. If the kernel accesses the range for the op,
for example to read a file into it, that fails with EFAULT instead.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dsp_server.hardware import descriptors
from dsp_server.hardware.buffers import address_of
from hbrt.ddr.faults import on_fault
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.ddr.private_pages import mprotect

if TYPE_CHECKING:
    from dsp_server.hardware.transfers import Shape

NO_ACCESS, READ_ONLY = 0, mmap.PROT_READ
_OPEN = mmap.PROT_READ | mmap.PROT_WRITE
_NOT_OPS = {"ctypes", "numpy", "cv2", "hbrt", "contextlib"}
_C_CALLS = "dsp_server.c_images.runtime_calls"
_NOT_OP_MODULES = "dsp_server.detectors", "dsp_server.hardware", "dsp_server.runtime"


OnTouch: TypeAlias = Callable[[int, bool], None]
"""Receives the address of an access, and whether it is a write."""


class Guard:
    """Whole pages that cannot be accessed until the first attempt; if guards overlap, each one reports it.

    Args:
        start: Start address in this process, on a page boundary.
        end: End address, likewise.
        access: NO_ACCESS or READ_ONLY.
        on_touch: Called at the first access with its address and whether it is a write; the range is already open. It
        must not raise.
    """

    is_beside = False  # covers no byte that belongs to a block or a tile

    def __init__(self, start: int, end: int, access: int, on_touch: OnTouch) -> None:
        self.start, self.end = start, end
        self.access = access
        self._on_touch = on_touch
        on_fault(_mend)
        self.apply()

    def apply(self) -> None:
        """Guard the range, as the constructor does; to be used after ``lift``."""
        self.is_armed = True
        _guards.append(self)
        if not self.is_beside:
            _inside.append(self)
        if not _protect(self.start, self.end):  # the kernel is out of mappings: the range is not watched
            self.lift()

    def lift(self) -> None:
        """Open the range again, except pages with other guards; a guard that was touched is already open."""
        if self.is_armed:
            self.is_armed = False
            _guards.remove(self)
            if not self.is_beside:
                _inside.remove(self)
            _protect(self.start, self.end)

    def forbids(self, is_write: bool | None) -> bool:  # noqa: FBT001 - as the fault has it
        """Whether this guard forbids an access."""
        return self.access == NO_ACCESS or is_write is not False

    def touch(self, address: int, is_write: bool | None) -> None:  # noqa: FBT001 - as the fault has it
        """Open the range for an access that hit the guard, and report the access."""
        self.lift()
        if is_write is not None or self.access == READ_ONLY:
            self._on_touch(address, is_write is not False)


_guards: list[Guard] = []
_inside: list[Guard] = []  # guards over bytes that belong to a block or a tile


def is_guarded(start: int, end: int) -> bool:
    """Whether any page of a range, which is part of a block or tile, has a guard."""
    if not _inside:
        return False
    low, high = start // PAGE_BYTES * PAGE_BYTES, -(-end // PAGE_BYTES) * PAGE_BYTES
    for guard in _inside:  # noqa: SIM110 - twice as fast as any(), and runs at every op call
        if guard.start < high and low < guard.end:
            return True
    return False


@contextmanager
def opened(start: int, end: int) -> Iterator[None]:
    """Let a detector read bytes on guarded pages."""
    low, high = start // PAGE_BYTES * PAGE_BYTES, -(-end // PAGE_BYTES) * PAGE_BYTES
    if not is_guarded(low, high):
        yield
        return
    mprotect(low, high - low, _OPEN)
    try:
        yield
    finally:
        _protect(low, high)


def whole_pages(start: int, end: int) -> tuple[int, int]:
    """Return the pages that lie entirely within a range; an empty range if there are none."""
    first, last = -(-start // PAGE_BYTES) * PAGE_BYTES, end // PAGE_BYTES * PAGE_BYTES
    return first, max(first, last)


def op_line(thread: int) -> str:
    """Return ``file:line`` of the op that a thread runs; in a wait, the line that issued the copy being moved.

    A fault handler in another thread may call this.
    """
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001 - there is no public API
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == _C_CALLS:  # the C frames below it are of this thread: the op itself caused the fault
            from dsp_server.c_images.image import c_line  # loaded by now

            return c_line() if thread == threading.get_ident() else ""
        if name == descriptors.__name__ and (issued := descriptors.line_of_copy(frame)):
            return issued
        if name.partition(".")[0] not in _NOT_OPS and not name.startswith(_NOT_OP_MODULES):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _protect(start: int, end: int) -> bool:
    """Give pages the strictest protection among the guards over them."""
    guards = [guard for guard in _guards if guard.start < end and start < guard.end]
    if all(guard.start <= start and end <= guard.end for guard in guards):  # usually there is one guard, or none
        access = min((guard.access for guard in guards), default=_OPEN)
        return not mprotect(start, end - start, access)
    cuts = {start, end, *(max(guard.start, start) for guard in guards), *(min(guard.end, end) for guard in guards)}
    is_done = True
    for first, last in pairwise(sorted(cuts)):
        over = (guard.access for guard in guards if guard.start <= first and last <= guard.end)
        is_done &= not mprotect(first, last - first, min(over, default=_OPEN))
    return is_done


def _mend(address: int, is_write: bool | None) -> bool:  # noqa: FBT001 - as hbrt.ddr.faults calls it
    found = [guard for guard in _guards if guard.start <= address < guard.end and guard.forbids(is_write)]
    for guard in found:
        if guard.is_armed:  # otherwise a previous guard has lifted it
            guard.touch(address, is_write)
    return bool(found)


_PAGE: Final = mmap.PAGESIZE

OnAccess: TypeAlias = Callable[["Hold", int, "bool | None"], None]
"""Receives the hold, the address, and whether the access is a write; None if this machine does not report that."""


class Span(NamedTuple):
    """Rows of equal length, whose starts are one pitch (in bytes) apart; a flat range is a single row."""

    start: int
    row_bytes: int
    num_rows: int = 1
    pitch_bytes: int = 0

    @property
    def end(self) -> int:
        """Address after the last byte of the last row."""
        return self.start + (self.num_rows - 1) * self.pitch_bytes + self.row_bytes if self.size_bytes else self.start

    @property
    def size_bytes(self) -> int:
        """Total bytes in all rows."""
        return self.row_bytes * self.num_rows

    def holds(self, address: int) -> bool:
        """Whether the byte at an address is in a row."""
        if not self.start <= address < self.end:
            return False
        return not self.pitch_bytes or (address - self.start) % self.pitch_bytes < self.row_bytes

    def first_common(self, other: Span) -> int | None:
        """Address of the first byte in both spans, or None."""
        if self.start >= other.end or other.start >= self.end:
            return None
        for row in range(self.num_rows):
            start = self.start + row * self.pitch_bytes
            at = other.first_from(start)
            if at is not None and at < start + self.row_bytes:
                return at
        return None

    def first_from(self, address: int) -> int | None:
        """Address of the first byte of the span at or after an address; None if there is none."""
        if address >= self.end or not self.size_bytes:
            return None
        if address <= self.start or self.holds(address):
            return max(address, self.start)
        return self.start + ((address - self.start) // self.pitch_bytes + 1) * self.pitch_bytes


class Hold(Guard):
    """Some or all pages of a span: accesses to the span are reported; an access next to it opens the page.

    Args:
        pages: The engine's holds, to which parts are added.
        handle: The copy.
        span: The copy's bytes.
        access: What access remains allowed to the op.
        ends: The pages; None for all pages of the span.
    """

    def __init__(self, pages: Pages, handle: int, span: Span, access: int, ends: tuple[int, int] | None = None) -> None:
        self._pages, self.handle, self.span = pages, handle, span
        start, end = ends or (span.start // _PAGE * _PAGE, -(-span.end // _PAGE) * _PAGE)
        super().__init__(start, end, access, lambda *_: None)

    def touch(self, address: int, is_write: bool | None) -> None:  # noqa: FBT001 - as the fault has it
        """Report an access to the span; for one next to it, open the page."""
        if self.span.holds(address):
            self._pages.on_access(self, address, is_write)
            return
        page = address // _PAGE * _PAGE
        parts = [
            Hold(self._pages, self.handle, self.span, self.access, ends)
            for ends in ((self.start, page), (page + _PAGE, self.end))
            if ends[0] < ends[1]
        ]
        self._pages.replace(self, parts)


class Pages:
    """All holds of one engine.

    Args:
        on_access: Called when bytes that a copy holds are accessed. It must not raise, and drops the copy's holds.
    """

    def __init__(self, on_access: OnAccess) -> None:
        self.on_access = on_access
        self._holds: list[Hold] = []

    def __len__(self) -> int:
        """Number of holds."""
        return len(self._holds)

    def hold(self, handle: int, span: Span, access: int) -> None:
        """Guard the pages of a span for a copy."""
        if span.size_bytes:
            self._holds.append(Hold(self, handle, span, access))

    def has(self, handle: int) -> bool:
        """Whether a copy has a hold."""
        return any(hold.handle == handle for hold in self._holds)

    def replace(self, hold: Hold, parts: list[Hold]) -> None:
        """Replace a hold with its parts."""
        self._holds.remove(hold)
        hold.lift()
        self._holds += parts

    def release(self, handle: int) -> None:
        """End a copy's holds."""
        mine = [hold for hold in self._holds if hold.handle == handle]
        if mine:
            self._holds = [hold for hold in self._holds if hold.handle != handle]
            for hold in mine:
                hold.lift()

    def release_at(self, span: Span) -> None:
        """End all holds on the pages of a span."""
        for hold in [one for one in self._holds if one.start < span.end and span.start < one.end]:
            self._holds.remove(hold)
            hold.lift()

    def release_all(self) -> None:
        """End all holds."""
        for handle in {hold.handle for hold in self._holds}:
            self.release(handle)

    @contextmanager
    def lifted(self, *spans: Span) -> Iterator[None]:
        """Open spans for the engine itself."""
        held = [hold for hold in self._holds if any(hold.start < span.end and span.start < hold.end for span in spans)]
        for hold in held:
            hold.lift()
        yield
        for hold in held:
            hold.apply()


def spans_of(dst: memoryview, src: memoryview, shape: Shape | None) -> tuple[Span, Span]:
    """Return the bytes that a copy writes, and those that it reads."""
    if shape is None:
        return _span(dst), _span(src)
    return _span(dst, shape, shape.dst_pitch_bytes), _span(src, shape, shape.src_pitch_bytes)


def _span(view: memoryview, shape: Shape | None = None, pitch_bytes: int = 0) -> Span:
    if shape is None or shape.num_rows < 2 or pitch_bytes == shape.row_bytes:
        return Span(address_of(view), view.nbytes)
    return Span(address_of(view), shape.row_bytes, shape.num_rows, pitch_bytes)
