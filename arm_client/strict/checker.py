"""The checks of strict mode (HBRT_CACHE=strict): each task is checked when it is submitted.

The checker finds two mistakes that a board hides: memory that the CPU changed and did not clean before the DSP uses it,
and memory that two unfinished tasks use, one of which writes it. A task uses its two blocks, and the blocks whose
addresses stand in its input block: its aligned 8-byte words that are addresses in blocks of this process, found as a
conservative garbage collector finds pointers. docs/what-is-emulated.md lists the findings; rules.py has the rules.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, cast

from arm_client.strict.report import report_input, report_output, report_pointed, report_shared, unclean_bytes
from arm_client.strict.rules import (
    MOST_PARAMETER_BYTES,
    WORD_BYTES,
    DataRace,
    Span,
    TaskFootprint,
    data_race,
    reach,
    words,
)
from hbrt.attach.task_slots import TaskSlots
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.types import HB_DSP_RPC_CMD_PING

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.memory.block import Block
    from arm_client.memory.blocks import Blocks
    from hbrt.attach.link import Link

NEAR_BYTES = PAGE_BYTES
MOST_MARKS = 1024
_LOWEST_VIRTUAL = 1 << 32


class _Entry:
    """A submitted task; its handle is 0 while its thread submits it."""

    __slots__ = ("footprint", "handle", "thread")

    def __init__(self, footprint: TaskFootprint) -> None:
        self.footprint = footprint
        self.handle = 0
        self.thread = threading.get_ident()


class CheckedTasks(TaskSlots):
    """Tasks that are checked before they are submitted, in whichever mode ``checked`` adds this to."""

    checker: CoherencyChecker | None = None

    def submit(self, *given: int) -> int:
        """As ``TaskSlots.submit``, after a check."""
        submit: Callable[..., int] = super().submit  # type: ignore[safe-super]
        return submit(*given) if self.checker is None else self.checker.submit(submit, *given)


def checked(kind: type[TaskSlots]) -> type[TaskSlots]:
    """A class of tasks with the checks of strict mode: a process that is not strict does not even ask whether it is."""
    return type(kind.__name__, (CheckedTasks, kind), {})


class CoherencyChecker:
    """Checks each task that a process in strict mode submits, and reports a mistake once a block.

    Args:
        link: The process's attachment.
        tasks: Where it submits, of a class that ``checked`` has made.
        blocks: Its memory.
    """

    def __init__(self, link: Link, tasks: TaskSlots, blocks: Blocks) -> None:
        self._link = link
        self._tasks = cast("CheckedTasks", tasks)
        self._blocks = blocks
        self._entries: list[_Entry] = []
        self._lock = threading.RLock()  # a finalizer may flush where another thread's would wait
        self._all_cores = (1 << link.core_count) - 1
        blocks.on_flush = self._on_flush
        self._tasks.checker = self

    def submit(self, submit: Callable[..., int], *given: int) -> int:
        """Check a task, then submit it."""
        entry = self._check(*given)
        if entry is None:
            return submit(*given)
        try:
            handle = submit(*given)
        except BaseException:
            self._forget(entry)
            raise
        if handle < 0:
            self._forget(entry)
        else:
            entry.handle = handle
        return handle

    def close(self) -> None:
        """Check nothing any more, and drop the references between this object, the tasks and the memory."""
        self._tasks.checker = None
        self._blocks.on_flush = None
        self._entries.clear()

    def mark(self, block: Block, start: int, end: int) -> None:
        """Note a range of a block, by its offsets, that the program has named as one."""
        with self._lock:
            for offset in (start, end):
                at = bisect_right(block.marks, offset)
                if not (at and block.marks[at - 1] == offset) and len(block.marks) <= MOST_MARKS:
                    insort(block.marks, offset)

    def check_input(self, what: str, phy_addr: int, size_bytes: int) -> None:
        """Report to the program, once a block, bytes that it wrote and did not clean before they are read.

        Args:
            what: What is about to be read: "input block", "input tensor".
            phy_addr: Its start.
            size_bytes: Its size.
        """
        block = self._blocks.holding(phy_addr)
        if block is None or block.image is None or block.is_reported:
            return
        start = phy_addr - block.phy_addr
        count = unclean_bytes(block, start, min(start + size_bytes, block.size_bytes))
        if count:
            block.is_reported = True
            report_input(self._link, what, phy_addr, size_bytes, count)

    def _on_flush(self, block: Block, start: int, end: int) -> None:
        block.is_flushed = True
        self.mark(block, start, end)

    def _is_unfinished(self, entry: _Entry) -> bool:
        if entry.handle:
            return not self._tasks.has_ended(entry.handle)
        return entry.thread != threading.get_ident()  # else an interrupt came before it got its handle

    def _forget(self, entry: _Entry) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._entries.remove(entry)

    def _check(self, *given: int) -> _Entry | None:
        """Report the mistakes of a task that is about to be submitted; None for one that will be refused."""
        cmd, priority, core_mask, custom_id, input_phy, input_bytes, output_phy, output_bytes = given
        numbers = cmd, priority, custom_id, core_mask or self._all_cores
        if self._tasks.refusal(*given) is not None:
            return None
        into, out = Span(input_phy, input_phy + input_bytes), Span(output_phy, output_phy + output_bytes)
        footprint = self._footprint(TaskFootprint(*numbers, into, out))
        self._check_cache(footprint)
        entry = _Entry(footprint)
        with self._lock:
            self._entries = [one for one in self._entries if self._is_unfinished(one)]
            others = [one.footprint for one in self._entries]
            self._entries.append(entry)
        try:
            for other in others:
                if (found := data_race(footprint, other)) is not None:
                    self._report_shared(footprint, other, found)
        except BaseException:
            self._forget(entry)
            raise
        return entry

    def _footprint(self, footprint: TaskFootprint) -> TaskFootprint:
        """A task with what its input block holds, as the DSP will read it."""
        size = min(footprint.input.end - footprint.input.start, MOST_PARAMETER_BYTES)
        if not size:
            return footprint
        ddr, offset = self._link.ddr.bytes_with(self._link.ddr.offset_of(footprint.input.start), size)
        raw = bytearray(ddr[offset : offset + size])  # a copy: one check sees one state
        is_data = footprint.input.end - footprint.input.start > MOST_PARAMETER_BYTES
        pointers = []
        for at, word in words(memoryview(raw)):
            block = self._block_of(word)
            if block is not None and not (is_data and word != block.phy_addr):
                pointers.append((at, word))
            elif block is not None or not self._is_virtual(word):
                continue
            raw[at : at + WORD_BYTES] = bytes(WORD_BYTES)
        return footprint._replace(pointers=tuple(pointers), numbers=bytes(raw))

    def _block_of(self, address: int) -> Block | None:
        """This process's block that an address lies in."""
        entry = self._link.ddr.block_at(address)
        return None if entry is None else self._blocks.holding(entry.phy_addr)

    def _is_virtual(self, word: int) -> bool:
        """Whether a word is an address of the CPU's in device memory, such as the one that an image has, too."""
        return word >= _LOWEST_VIRTUAL and self._blocks.is_mapped_at(word)

    def _check_cache(self, footprint: TaskFootprint) -> None:
        """Report memory of a task that the CPU changed and did not clean."""
        into, out = footprint.input, footprint.output
        found = [(at, address) for at, address in footprint.pointers if not into.holds(address)]
        # Marks come before checks: where one range begins, another ends.
        for span in (into, out, *(Span(address, address) for _, address in found)):
            block = self._block_of(span.start)
            if block is not None and block.image is not None:
                self.mark(block, span.start - block.phy_addr, span.end - block.phy_addr)
        if into.start:
            self.check_input("input block", into.start, into.end - into.start)
        if not footprint.targets and footprint.cmd != HB_DSP_RPC_CMD_PING:
            self._check_output(out)
        for at, address in found:
            self._check_pointed(at, address, into)

    def _check_output(self, out: Span) -> None:
        block = self._block_of(out.start)
        if block is None or block.image is None or block.is_reported:
            return
        count = unclean_bytes(block, out.start - block.phy_addr, out.end - block.phy_addr)
        if count:
            block.is_reported = True
            report_output(self._link, out.start, out.end - out.start, count)

    def _check_pointed(self, at: int, address: int, into: Span) -> None:
        """Report changes from an address on.

        How far the op goes from there is not known. When the program flushes the block at all, it may be at work on
        another part of it, so only what begins near the address counts.
        """
        block = self._block_of(address)
        if block is None or block.image is None or block.is_reported or len(block.marks) > MOST_MARKS:
            return
        start = address - block.phy_addr
        end = reach(start, block.size_bytes, block.marks)
        near = min(end, start + NEAR_BYTES) if block.is_flushed else end
        if not unclean_bytes(block, start, near):
            return
        block.is_reported = True
        report_pointed(self._link, address, end - start, unclean_bytes(block, start, end), into.start, at)

    def _report_shared(self, new: TaskFootprint, old: TaskFootprint, found: DataRace) -> None:
        block = self._block_of(found.span.start)
        if block is None or block.is_shared_reported:
            return
        block.is_shared_reported = True
        start, end = found.span
        report_shared(self._link, start, end - start, (new.cmd, found.new), (old.cmd, found.old))
