"""The memory check around an op: finds reads of bytes never written, and writes outside the op's own memory.

Unwritten bytes are recognized by value: under checks a new block is filled with ``hbrt.ddr.fill.UNWRITTEN_PAGE``.
Guards cover whole pages, so a finding means that the op read a page with no written byte. Isolated unwritten bytes
between written ones, such as padding in a structure, are not reported. The input block is guarded against writes unless
the op works in place, as shown by its output, a mapping, or an address stored in the block itself.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.detectors.page_faults import NO_ACCESS, READ_ONLY, Guard, is_guarded, op_line, opened, whole_pages
from dsp_server.hardware.buffers import address_of
from hbrt.ddr.fill import UNWRITTEN_PAGE
from hbrt.ddr.layout import PAGE_BYTES, TABLES_GENERATION, extent_of
from hbrt.ddr.misuse import misuse
from hbrt.findings.text import counted

if TYPE_CHECKING:
    from dsp_server.detectors.call import Call
    from dsp_server.detectors.page_faults import OnTouch
    from hbrt.ddr.file import BlockEntry, Ddr

MIN_BYTES = 8
"""Up to this many bytes of a block may happen to look unwritten."""
MAX_AREAS = 4096
_OPEN = nullcontext()
MAX_ENDS = 16
"""Maximum number of guards behind blocks kept between calls: setting a guard costs as much as a short op."""


def watch(call: Call) -> AbstractContextManager[None]:
    """Watch the memory that an op uses."""
    ddr = runtime.context.ddr
    return nullcontext() if ddr is None else _Watcher(call, ddr)


def unwritten_pages(raw: memoryview) -> list[bool]:
    """Return which pages contain only the fill of an allocation.

    Args:
        raw: Bytes of a block, from the start of a page; the last page may be partial.
    """
    import numpy as np  # like every op that has bytes to process

    count, rest = divmod(len(raw), PAGE_BYTES)
    model = np.frombuffer(UNWRITTEN_PAGE, np.uint64)
    pages = np.frombuffer(raw[: count * PAGE_BYTES], np.uint64).reshape(count, len(model))
    found = [
        bool(same) and bool((page == model).all()) for same, page in zip(pages[:, 0] == model[0], pages, strict=True)
    ]
    if rest:
        found.append(rest >= MIN_BYTES and bytes(raw[-rest:]) == UNWRITTEN_PAGE[:rest])
    return found


class _Area:
    """A range in a live block that was given to an op, and its surroundings; uses addresses of this process.

    Args:
        ddr: The board's memory.
        block: The block.
        start: First address of the range.
        end: First address after the range.
    """

    __slots__ = ("behind", "block", "end", "high", "low", "nothing", "tail", "tail_end")

    def __init__(self, ddr: Ddr, block: BlockEntry, start: int, end: int) -> None:
        self.block = block
        offset, rest = ddr.offset_of(block.end), -block.size_bytes % PAGE_BYTES
        self.tail, self.tail_end = offset, offset + rest  # in the file: from the block's end to its last page's end
        self.nothing = bytes(rest)
        extent = extent_of(block.phy_addr, block.size_bytes, ddr.layout.phy_end)
        self.behind = ddr.address + offset + rest, ddr.address + ddr.offset_of(block.phy_addr + extent)
        # The pages that contain bytes of the range and no other bytes of its block.
        self.low, self.high = whole_pages(start, end)
        if end == ddr.address + offset:
            self.high = -(-end // PAGE_BYTES) * PAGE_BYTES


class _EndGuard(Guard):
    """A guard over the memory behind a block."""

    is_beside = True


class _Known:
    """Results that stay valid between calls until a block is allocated or freed."""

    def __init__(self) -> None:
        self._generation = b""
        self.ends: dict[int, Guard] = {}  # behind blocks, by address; latest last
        self._areas: dict[tuple[int, int], _Area | None] = {}  # by address in this process and size
        self.written: set[tuple[int, int]] = set()  # ranges with no unwritten page

    def refresh(self, ddr: Ddr) -> None:
        """Forget everything if a block has been allocated or freed."""
        generation = ddr.map[TABLES_GENERATION : TABLES_GENERATION + 8]
        if generation != self._generation:
            self.discard()
            self._generation = generation

    def discard(self) -> None:
        """Open all pages."""
        for guard in self.ends.values():
            guard.lift()
        self.ends.clear()
        self.written.clear()
        self._areas.clear()

    def area(self, ddr: Ddr, start: int, size_bytes: int) -> _Area | None:
        """Return the area at an address of this process; None if there is no live block."""
        key = start, size_bytes
        if key not in self._areas:
            if len(self._areas) >= MAX_AREAS:
                self._areas.clear()
            block = ddr.block_at(start - ddr.address + ddr.layout.ddr_base)
            self._areas[key] = None if block is None else _Area(ddr, block, start, start + size_bytes)
        return self._areas[key]

    def guard_end(self, start: int, end: int, block: BlockEntry) -> None:
        """Guard the memory behind a block."""
        guard = self.ends.pop(start, None)
        if guard is None:
            guard = _EndGuard(start, end, NO_ACCESS, partial(_touch_behind, block))
        elif not guard.is_armed:
            guard.apply()
        self.ends[start] = guard
        if len(self.ends) > MAX_ENDS:
            self.ends.pop(next(iter(self.ends))).lift()


known = _Known()


def _touch_behind(block: BlockEntry, address: int, is_write: bool) -> None:  # noqa: FBT001 - as a guard calls it
    """Report an access behind a block by the running op, which may be a program's without checks."""
    watcher = next((one for one in reversed(runtime.context.watchers) if isinstance(one, _Watcher)), None)
    if watcher is not None:
        watcher.report_beyond(block, address, is_write=is_write)


class _Watcher:
    """The guards of one op call."""

    def __init__(self, call: Call, ddr: Ddr) -> None:
        self._call = call
        self._ddr = ddr
        self._task = runtime.context.task
        self._thread, self._pid = threading.get_ident(), os.getpid()
        self._guards: list[Guard] = []
        self._behind: dict[int, _Area] = {}  # blocks that had unwritten memory behind them when the op first got them

    def __enter__(self) -> None:
        runtime.context.watchers.append(self)
        try:
            self._begin()
        except BaseException:
            self._end()
            raise

    def __exit__(self, kind: object, *_: object) -> None:
        self._end()
        if kind is None:
            self._look_behind()

    def _begin(self) -> None:
        """Guard the blocks of the call."""
        known.refresh(self._ddr)
        for view in (self._call.input, self._call.output):
            if not view.nbytes:
                continue
            area = known.area(self._ddr, address_of(view), view.nbytes)
            if area is not None:
                self._guard_end(area)
                if view is self._call.input and area.low < area.high:
                    self._guard_input(area)

    def _end(self) -> None:
        """Open all pages."""
        runtime.context.watchers.remove(self)
        for guard in self._guards:
            guard.lift()

    def _look_behind(self) -> None:
        """Report bytes that the op wrote between the end of a block and the end of its last page."""
        for area in self._behind.values():
            if (first := self._first_behind(area)) is not None:
                self._report_overrun(area.block, first, "", is_in_handler=False)

    def mapped(self, phy_addr: int, size_bytes: int) -> None:
        """Record that the op has mapped a range of a live block."""
        start = self._address_of(phy_addr)
        area = known.area(self._ddr, start, size_bytes) if size_bytes else None
        if area is None:
            return
        for guard in self._guards:
            if guard.start < start + size_bytes and start < guard.end:
                guard.lift()  # the op may write to memory that it mapped
        self._guard_end(area)
        self._guard_unwritten(area.block, area.low, area.high, "memory that it mapped")

    def refused(self, phy_addr: int, size_bytes: int, why: str) -> None:
        """Report a mapping that was refused."""
        kind, places = misuse(self._ddr, phy_addr, size_bytes)
        line = op_line(self._thread)
        here = self._call.place("mapped", line, phy_addr, size_bytes)
        self._call.find(
            kind,
            f"{self._call.who} maps memory at {line} that it may not use. {why}{self._call.submitted}",
            here,
            *places,
            self._call.task_place(),
        )

    # -- guards

    def _guard_input(self, area: _Area) -> None:
        block, low, high = area.block, area.low, area.high
        out = address_of(self._call.output) if self._call.output.nbytes else 0
        is_shared = low < out + self._call.output.nbytes and out < high
        if is_shared:
            return
        for first, last in self._guard_unwritten(block, low, high, "its input block", is_input=True):
            self._add(first, last, READ_ONLY, lambda at, _: self._report_write(block, at))

    def _guard_unwritten(
        self, block: BlockEntry, low: int, high: int, what: str, *, is_input: bool = False
    ) -> list[tuple[int, int]]:
        """Guard the unwritten pages; return the ranges between them."""
        if low >= high or (low, high) in known.written:
            return [(low, high)] if low < high else []
        offset = low - self._ddr.address
        end = min(high, self._address_of(block.end)) - self._ddr.address
        others, at = [], low
        for is_unwritten, run in groupby(self._unwritten(offset, end)):
            last = at + sum(1 for _ in run) * PAGE_BYTES
            if is_unwritten:
                first = at

                def touched(address: int, is_write: bool, first: int = first, last: int = last) -> None:  # noqa: FBT001
                    if not is_write:
                        self._report_unwritten(block, address, first, last, what)
                    elif is_input:
                        self._report_write(block, address)

                self._add(first, last, NO_ACCESS, touched)
            else:
                others.append((at, last))
            at = last
        if len(others) == 1 and others[0] == (low, high):
            known.written.add((low, high))
        return others

    def _guard_end(self, area: _Area) -> None:
        """Guard the page behind a block, and remember that the bytes before that page are unwritten."""
        block = area.block
        if block.phy_addr in self._behind:
            return
        if self._first_behind(area) is None:
            self._behind[block.phy_addr] = area
        first, end = area.behind
        if first < end:
            known.guard_end(first, end, block)

    def _add(self, start: int, end: int, access: int, on_touch: OnTouch) -> None:
        self._guards.append(Guard(start, end, access, on_touch))

    # -- addresses

    def _address_of(self, phy_addr: int) -> int:
        return self._ddr.address + self._ddr.offset_of(phy_addr)

    def _physical(self, address: int) -> int:
        return address - self._ddr.address + self._ddr.layout.ddr_base

    def _unwritten(self, offset: int, end: int) -> list[bool]:
        """Return which pages in a range of the DDR file are unwritten."""
        with opened(self._ddr.address + offset, self._ddr.address + end):
            return unwritten_pages(self._ddr.bytes[offset:end])

    def _first_behind(self, area: _Area) -> int | None:
        """Return the first written byte between the end of a block and the end of its last page."""
        start, end = area.tail, area.tail_end
        if start == end:
            return None
        address = self._ddr.address
        with opened(address + start, address + end) if is_guarded(address + start, address + end) else _OPEN:
            raw = self._ddr.map[start:end]
        if raw == area.nothing:
            return None
        return area.block.end + len(raw) - len(raw.lstrip(b"\0"))

    def _points_into_itself(self, block: BlockEntry) -> bool:
        import numpy as np

        raw = self._call.input[: min(self._call.input.nbytes, PAGE_BYTES) // 8 * 8]
        with opened(address_of(raw), address_of(raw) + raw.nbytes):
            words = np.frombuffer(bytes(raw), np.uint64)
        return bool(((words >= block.phy_addr) & (words < block.end)).any())

    # -- reports

    def _is_other_op(self) -> bool:
        """Whether an op that has interrupted this one is running, or a process that this op forked."""
        return runtime.context.task is not self._task or os.getpid() != self._pid

    def _find(self, kind: str, sentence: str, what: str, site: str, phy_addr: int, size_bytes: int, block: BlockEntry,
              *, is_in_handler: bool = True) -> None:  # fmt: skip
        place = self._call.place(what, site, phy_addr, size_bytes)
        place = place._replace(block=block.phy_addr, block_bytes=block.size_bytes)
        is_of_program = kind == "unwritten-read"
        places = self._call.with_program(place) if is_of_program else (place, self._call.task_place())
        self._call.find(kind, sentence, *places, is_in_handler=is_in_handler)

    def _report_unwritten(self, block: BlockEntry, address: int, first: int, last: int, what: str) -> None:
        phy_addr = self._physical(address)
        if self._is_other_op() or any(one.holds(phy_addr) for one in self._call.dirty):
            return  # written but not cleaned, which another finding reports
        offset, end = first - self._ddr.address, min(last, self._address_of(block.end)) - self._ddr.address
        # The guard sees only the op's own accesses: another process may have written there.
        if not any(self._unwritten(offset, end)):
            return
        start, size_bytes, line = self._physical(first), end - offset, op_line(self._thread)
        self._find(
            "unwritten-read",
            f"{self._call.who} reads at {line} byte {phy_addr - block.phy_addr} of the block "
            f"{_named(block)}, {what}: nobody has written {start:#x}+{size_bytes:#x} since it was allocated. Write it "
            "before the task is submitted, or give the task a range that ends where the written bytes end."
            f"{self._call.submitted}",
            "read", line, start, size_bytes, block,
        )  # fmt: skip

    def _report_write(self, block: BlockEntry, address: int) -> None:
        if self._is_other_op() or self._points_into_itself(block):
            return
        phy_addr, line = self._physical(address), op_line(self._thread)
        self._find(
            "input-written",
            f"{self._call.who} writes at {line} into its input: byte {phy_addr - block.phy_addr} of the block "
            f"{_named(block)}, at {phy_addr:#x}. Write to the output block, or to memory that the structure names."
            f"{self._call.submitted}",
            "written", line, phy_addr, 1, block,
        )  # fmt: skip

    def report_beyond(self, block: BlockEntry, address: int, *, is_write: bool) -> None:
        """Report an access by the op behind a block."""
        if self._is_other_op() or self._ddr.block_at(block.phy_addr) != block:
            return
        phy_addr, line = self._physical(address), op_line(self._thread)
        if is_write:
            area = self._behind.pop(block.phy_addr, None)
            first = None if area is None else self._first_behind(area)
            self._report_overrun(block, phy_addr if first is None else first, line, is_in_handler=True)
            return
        self._find(
            "out-of-block",
            f"{self._call.who} reads at {line} {counted(phy_addr - block.end + 1, 'byte')} past the end of the block "
            f"{_named(block)}, at {phy_addr:#x}. Check the sizes that the op uses.{self._call.submitted}",
            "read", line, phy_addr, 1, block,
        )  # fmt: skip

    def _report_overrun(self, block: BlockEntry, phy_addr: int, line: str, *, is_in_handler: bool) -> None:
        self._find(
            "overrun",
            f"{self._call.who} wrote past the end of the block {_named(block)}{f' at {line}' if line else ''}: "
            f"the first bad byte is at {phy_addr:#x}, {counted(phy_addr - block.end + 1, 'byte')} past the end. Check "
            f"the sizes that the op uses.{self._call.submitted}",
            "written", line, phy_addr, 1, block, is_in_handler=is_in_handler,
        )  # fmt: skip


def _named(block: BlockEntry) -> str:
    return f"{block.phy_addr:#x}+{block.size_bytes:#x}"
