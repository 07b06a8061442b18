"""What strict mode (HBRT_CACHE=strict) looks at when a task is submitted, and by which rules.

Two mistakes that a board hides: memory that the CPU changed and did not clean before the DSP uses it, and memory that
two unfinished tasks use, one of which writes it. What a task uses is its two blocks, and what its input block has
addresses of: that block's aligned 8-byte words which are addresses inside blocks of this process, found as a
conservative garbage collector finds pointers. What an op does there, and how far, nobody says. Therefore each rule here
is silent where a right program could look the same. docs/what-is-emulated.md says what is told.

The rules are functions of values alone and come first; ``Watch`` applies them to a process.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, cast

from arm_client.strict.report import tell, tell_output, tell_pointed, tell_shared, unclean_bytes
from arm_client.strict.rules import MOST_PARAMETER_BYTES, WORD_BYTES, Clash, Job, Span, clash, reach, words
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


# -- rules ------------------------------------------------------------------------------------------------------------


# -- a process --------------------------------------------------------------------------------------------------------


class _Entry:
    """A submitted task; its handle is 0 while its thread submits it."""

    __slots__ = ("handle", "job", "thread")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.handle = 0
        self.thread = threading.get_ident()


class CheckedTasks(TaskSlots):
    """Tasks that are checked before they are submitted, in whichever mode ``checked`` adds this to."""

    checker: Watch | None = None

    def submit(self, *given: int) -> int:
        """As ``TaskSlots.submit``, after a check."""
        submit: Callable[..., int] = super().submit  # type: ignore[safe-super]
        return submit(*given) if self.checker is None else self.checker.submit(submit, *given)


def checked(kind: type[TaskSlots]) -> type[TaskSlots]:
    """A class of tasks with the checks of strict mode: a process that is not strict does not even ask whether it is."""
    return type(kind.__name__, (CheckedTasks, kind), {})


class Watch:
    """Looks at each task that a process in strict mode submits, and tells of a mistake once a block.

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
        """Look at a task, then submit it."""
        entry = self._look(*given)
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
        """Look at nothing any more: this object, the tasks and the memory let go of one another."""
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

    def look_at_input(self, what: str, phy_addr: int, size_bytes: int) -> None:
        """Tell the program, once a block, of bytes that it wrote and did not clean before they are read.

        Args:
            what: What is about to be read: "input block", "input tensor".
            phy_addr: Its start.
            size_bytes: Its size.
        """
        block = self._blocks.holding(phy_addr)
        if block is None or block.image is None or block.is_told:
            return
        start = phy_addr - block.phy_addr
        count = unclean_bytes(block, start, min(start + size_bytes, block.size_bytes))
        if count:
            block.is_told = True
            tell(self._link, what, phy_addr, size_bytes, count)

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

    def _look(self, *given: int) -> _Entry | None:
        """Tell of what is wrong with a task that is about to be submitted; None for one that will be refused."""
        cmd, priority, core_mask, custom_id, input_phy, input_bytes, output_phy, output_bytes = given
        numbers = cmd, priority, custom_id, core_mask or self._all_cores
        if self._tasks.refusal(*given) is not None:
            return None
        into, out = Span(input_phy, input_phy + input_bytes), Span(output_phy, output_phy + output_bytes)
        job = self._job(Job(*numbers, into, out))
        self._look_at_cache(job)
        entry = _Entry(job)
        with self._lock:
            self._entries = [one for one in self._entries if self._is_unfinished(one)]
            others = [one.job for one in self._entries]
            self._entries.append(entry)
        try:
            for other in others:
                if (found := clash(job, other)) is not None:
                    self._tell_shared(job, other, found)
        except BaseException:
            self._forget(entry)
            raise
        return entry

    def _job(self, job: Job) -> Job:
        """A task with what its input block holds, as the DSP will read it."""
        size = min(job.input.end - job.input.start, MOST_PARAMETER_BYTES)
        if not size:
            return job
        ddr, offset = self._link.ddr.bytes_with(self._link.ddr.offset_of(job.input.start), size)
        raw = bytearray(ddr[offset : offset + size])  # a copy: the parts of a look fit together
        is_data = job.input.end - job.input.start > MOST_PARAMETER_BYTES
        pointers = []
        for at, word in words(memoryview(raw)):
            block = self._block_of(word)
            if block is not None and not (is_data and word != block.phy_addr):
                pointers.append((at, word))
            elif block is not None or not self._is_virtual(word):
                continue
            raw[at : at + WORD_BYTES] = bytes(WORD_BYTES)
        return job._replace(pointers=tuple(pointers), numbers=bytes(raw))

    def _block_of(self, address: int) -> Block | None:
        """This process's block that an address lies in."""
        entry = self._link.ddr.block_at(address)
        return None if entry is None else self._blocks.holding(entry.phy_addr)

    def _is_virtual(self, word: int) -> bool:
        """Whether a word is an address of the CPU's in device memory, such as the one that an image has, too."""
        return word >= _LOWEST_VIRTUAL and self._blocks.is_mapped_at(word)

    def _look_at_cache(self, job: Job) -> None:
        """Tell of memory of a task that the CPU changed and did not clean."""
        into, out = job.input, job.output
        found = [(at, address) for at, address in job.pointers if not into.holds(address)]
        # Before any is looked at: where one begins, another ends.
        for span in (into, out, *(Span(address, address) for _, address in found)):
            block = self._block_of(span.start)
            if block is not None and block.image is not None:
                self.mark(block, span.start - block.phy_addr, span.end - block.phy_addr)
        if into.start:
            self.look_at_input("input block", into.start, into.end - into.start)
        if not job.targets and job.cmd != HB_DSP_RPC_CMD_PING:
            self._look_at_output(out)
        for at, address in found:
            self._look_at_pointed(at, address, into)

    def _look_at_output(self, out: Span) -> None:
        block = self._block_of(out.start)
        if block is None or block.image is None or block.is_told:
            return
        count = unclean_bytes(block, out.start - block.phy_addr, out.end - block.phy_addr)
        if count:
            block.is_told = True
            tell_output(self._link, out.start, out.end - out.start, count)

    def _look_at_pointed(self, at: int, address: int, into: Span) -> None:
        """Tell of changes from an address on.

        How far the op goes from there is not known. When the program flushes the block at all, it may be at work on
        another part of it, so only what begins near the address counts.
        """
        block = self._block_of(address)
        if block is None or block.image is None or block.is_told or len(block.marks) > MOST_MARKS:
            return
        start = address - block.phy_addr
        end = reach(start, block.size_bytes, block.marks)
        near = min(end, start + NEAR_BYTES) if block.is_flushed else end
        if not unclean_bytes(block, start, near):
            return
        block.is_told = True
        tell_pointed(self._link, address, end - start, unclean_bytes(block, start, end), into.start, at)

    def _tell_shared(self, new: Job, old: Job, found: Clash) -> None:
        block = self._block_of(found.span.start)
        if block is None or block.is_shared_told:
            return
        block.is_shared_told = True
        start, end = found.span
        tell_shared(self._link, start, end - start, (new.cmd, found.new), (old.cmd, found.old))
