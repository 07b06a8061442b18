"""The bytes that copies touch, the pages held by copies in progress, and the access that these leave to the op."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dsp_server.detectors.page_faults import Guard
from dsp_server.hardware.buffers import address_of

if TYPE_CHECKING:
    from dsp_server.hardware.transfers import Shape

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

    def drop(self, handle: int) -> None:
        """End a copy's holds."""
        mine = [hold for hold in self._holds if hold.handle == handle]
        if mine:
            self._holds = [hold for hold in self._holds if hold.handle != handle]
            for hold in mine:
                hold.lift()

    def drop_at(self, span: Span) -> None:
        """End all holds on the pages of a span."""
        for hold in [one for one in self._holds if one.start < span.end and span.start < one.end]:
            self._holds.remove(hold)
            hold.lift()

    def drop_all(self) -> None:
        """End all holds."""
        for handle in {hold.handle for hold in self._holds}:
            self.drop(handle)

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
