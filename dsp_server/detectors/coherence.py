"""The coherence check around an op: reports dirty bytes (changed by the CPU and not cleaned) that the op uses.

The program that submits a task lists these bytes (hbrt/mailbox/dirty_ranges.py). Their pages are closed to the op, so
the first access faults, whether from Python, numpy or C. iDMA copies are checked by their ranges when they are
issued; the engine itself can access the pages. Each block is reported once per call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.detectors.page_faults import NO_ACCESS, Hold, Pages, Span, op_line, spans_of
from dsp_server.hardware.buffers import address_of
from hbrt.findings.record import Place
from hbrt.mailbox.dirty_ranges import watched

if TYPE_CHECKING:
    from dsp_server.detectors.call import Call
    from dsp_server.hardware.transfers import Shape
    from hbrt.ddr.file import Ddr
    from hbrt.mailbox.dirty_ranges import DirtyRanges


@contextmanager
def watch(call: Call) -> Iterator[None]:
    """Watch the dirty memory of an op's call."""
    ddr = runtime.context.ddr
    if ddr is None or not call.dirty:
        yield
        return
    watcher, engine = _Watcher(call, ddr), call.idma
    before, engine.watcher = engine.watcher, watcher
    try:
        yield
    finally:
        engine.watcher = before
        watcher.end()


class _Watcher:
    """One call's dirty bytes, and the accesses to them."""

    def __init__(self, call: Call, ddr: Ddr) -> None:
        self._call = call
        self._task, self._thread, self._pid = runtime.context.task, threading.get_ident(), os.getpid()
        self._from_physical = ddr.address - ddr.layout.ddr_base
        self._pages = Pages(self._touch)
        self._ranges = [(one, start, size) for one in call.dirty for start, size in one.ranges]
        for number, (one, start, size) in enumerate(self._ranges):
            low, high = watched(one, start, size)
            self._pages.hold(number, Span(low + self._from_physical, high - low), NO_ACCESS)

    def end(self) -> None:
        """Open all pages."""
        self._pages.release_all()

    def issued(self, dst: memoryview, src: memoryview, shape: Shape | None, where: str) -> None:
        """Report a copy that reads or overwrites dirty bytes.

        Raises:
            MistakeError: under FAIL_FAST.
        """
        to, from_ = spans_of(dst, src, shape)
        for span, verb in ((from_, "reads by iDMA"), (to, "writes by iDMA into")):
            for number, (one, start, size) in enumerate(self._ranges):
                at = span.first_common(Span(start + self._from_physical, size))
                if at is not None and self._pages.has(number):
                    self._report(number, one, at, verb, where or op_line(self._thread), is_in_handler=False)

    def moving(self, *views: memoryview) -> AbstractContextManager[None]:
        """Open the pages for the engine."""
        return self._pages.lifted(*(Span(address_of(view), view.nbytes) for view in views))

    def _touch(self, hold: Hold, address: int, is_write: bool | None) -> None:  # noqa: FBT001 - as the fault has it
        self._pages.release(hold.handle)
        if runtime.context.task is self._task and os.getpid() == self._pid:  # else an urgent op, or a fork of this one
            verb = "writes into" if is_write else "reads"
            one = self._ranges[hold.handle][0]
            self._report(hold.handle, one, address, verb, op_line(self._thread), is_in_handler=True)

    def _report(self, number: int, one: DirtyRanges, at: int, verb: str, line: str, *, is_in_handler: bool) -> None:
        _, start, size = self._ranges[number]
        for other, (found, *_) in enumerate(self._ranges):
            if found.block == one.block:
                self._pages.release(other)
        is_write = "into" in verb
        phy_addr = at - self._from_physical
        block = f"{one.block:#x}+{one.block_bytes:#x}"
        since = f"since the flush at {one.flushed_at}" if one.flushed_at else "and the block was never flushed"
        by = one.written_at and f" at {one.written_at},"
        what = (
            "when the cache writes them back, they overwrite what the op writes there"
            if is_write
            else "the old contents of memory are read"
        )
        here = self._call.place("written" if is_write else "read", line, phy_addr, 1)
        self._call.find(
            "unclean-use",
            f"{self._call.who} {verb} {one.what} at {line}, byte {phy_addr - one.block} of the cached block {block}. "
            f"The CPU has changed {start:#x}+{size:#x} there{by} {since}: {what}. Call hbSysFlushMem "
            f"with HB_SYS_MEM_CACHE_CLEAN after writing, before the task is submitted.{self._call.submitted}",
            *self._call.with_program(here._replace(block=one.block, block_bytes=one.block_bytes)),
            Place(
                "changed since",
                one.flushed_at or None,
                client=runtime.context.client_id,
                phy_addr=start,
                size_bytes=size,
                block=one.block,
            ),
            *([Place("written by the CPU", one.written_at, phy_addr=start, size_bytes=size)] if one.written_at else []),
            is_in_handler=is_in_handler,
        )
