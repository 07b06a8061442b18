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
from typing import TYPE_CHECKING, NamedTuple

from arm_client.unclean import tell_output, tell_pointed, tell_shared, unclean_bytes
from hbrt.layout import PAGE_BYTES
from hbrt.mailbox import PRIORITY_PREEMPT
from hbrt.types import HB_DSP_RPC_CMD_PING
from hbrt.wire import POINTS, READS, WRITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.memory import Block, Blocks
    from hbrt.link import Link
    from hbrt.tasks import Tasks

WORD_BYTES = 8
MOST_PARAMETER_BYTES = PAGE_BYTES
"""Of an input block, so much is looked through. A larger block is data, rather than a structure."""

NEAR_BYTES = PAGE_BYTES
MOST_MARKS = 1024
_LOWEST_VIRTUAL = 1 << 32
_MOST_CMD = 0xFFFF


# -- rules ------------------------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A physical range: its first address, and the one after its last."""

    start: int
    end: int

    def holds(self, address: int) -> bool:
        """Whether an address lies in it."""
        return self.start <= address < self.end

    def common(self, other: Span) -> Span | None:
        """What two ranges share, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Span(start, end) if start < end else None


class Job(NamedTuple):
    """A task, as far as the rules look at it.

    Attributes:
        cmd: Command number.
        priority: 0..255.
        custom_id: Smaller first among equal priorities.
        cores: Cores that may run it, as a mask that is not 0.
        input: Its input block, empty when it has none.
        output: Its output block, likewise.
        pointers: Addresses of device memory in the input block, by their offset there.
        numbers: What else stands in the input block: its first bytes, with 0 for each address.
    """

    cmd: int
    priority: int
    custom_id: int
    cores: int
    input: Span
    output: Span
    pointers: tuple[tuple[int, int], ...] = ()
    numbers: bytes = b""

    @property
    def targets(self) -> frozenset[int]:
        """Addresses in its structure that lie in its output block: what the op is told to write there, and where."""
        return frozenset(address for _, address in self.pointers if self.output.holds(address))

    @property
    def sources(self) -> frozenset[int]:
        """Addresses in its structure that lie elsewhere; those in the structure itself by their offset in it."""
        return frozenset(
            address - self.input.start if self.input.holds(address) else address
            for _, address in self.pointers
            if not self.output.holds(address)
        )

    def may_write(self, span: Span) -> bool:
        """Whether it writes in a part of its output block, as far as one can tell: it may be told to write beside."""
        targets = self.targets
        return not targets or any(span.holds(target) for target in targets)


class Clash(NamedTuple):
    """Memory that two unfinished tasks use: where, and what each does there (READS, WRITES, POINTS)."""

    span: Span
    new: int
    old: int


def words(raw: memoryview) -> list[tuple[int, int]]:
    """The aligned 8-byte words of a structure that are not 0, by their offset.

    Args:
        raw: Its bytes; all but the first MOST_PARAMETER_BYTES are left out.
    """
    size = min(len(raw), MOST_PARAMETER_BYTES) // WORD_BYTES * WORD_BYTES
    return [(at * WORD_BYTES, word) for at, word in enumerate(raw[:size].cast("Q")) if word]


def are_never_at_once(new: Job, old: Job) -> bool:
    """Whether one core runs both tasks, one after the other: a new one that interrupts would begin in the middle."""
    interrupts = new.priority == PRIORITY_PREEMPT > old.priority
    return new.cores == old.cores and new.cores.bit_count() == 1 and not interrupts


def may_share_out(new: Job, old: Job) -> bool:
    """Whether two tasks with one output block may be halves of one job, each of which writes a part of its own.

    They may when their structures name different places of it, when numbers in the structures of one command differ
    (rows, an index), or when the op can go by its core. Copies of one task write the same. What else has one output
    block, such as two tasks that differ in nothing but where they read, replaces the other's result.
    """
    if (new.targets or {new.output.start}) != (old.targets or {old.output.start}) and (new.targets or old.targets):
        return True
    if new.cmd != old.cmd:
        return False
    if new.input == old.input:  # one block for both, so with no numbers of their own
        return not new.cores & old.cores
    are_structures = bool(new.pointers or old.pointers)
    if new.numbers != old.numbers:
        return are_structures  # else data
    is_all_seen = new.input.end - new.input.start <= MOST_PARAMETER_BYTES
    return new.sources == old.sources and (are_structures or is_all_seen)


def clash(new: Job, old: Job) -> Clash | None:
    """What is wrong with submitting a task while an earlier one has not ended; None when nothing is for certain.

    Reading what another reads is in order, and so is what a structure points to in both: it may be read by both.
    """
    if HB_DSP_RPC_CMD_PING in {new.cmd, old.cmd} or are_never_at_once(new, old):
        return None
    if span := new.output.common(old.output):
        return None if may_share_out(new, old) else Clash(span, WRITES, WRITES)
    if (span := new.output.common(old.input)) and new.may_write(span):
        return Clash(span, WRITES, READS)
    if (span := old.output.common(new.input)) and old.may_write(span):
        return Clash(span, READS, WRITES)
    if new.cmd == old.cmd and new.pointers == old.pointers:
        return None  # a table of all buffers, perhaps, of which a number beside picks one
    if span := _pointed(old, new):
        return Clash(span, WRITES, POINTS)
    if span := _pointed(new, old):
        return Clash(span, POINTS, WRITES)
    return None


def _pointed(user: Job, writer: Job) -> Span | None:
    """The word in the writer's output that the user's structure has an address of."""
    for _, address in user.pointers:
        span = Span(address, address + 1)
        if writer.output.holds(address) and not user.input.holds(address) and writer.may_write(span):
            return span
    return None


def reach(start: int, end: int, marks: list[int]) -> int:
    """Where memory that begins at an address ends for certain: at the next place that the program has named.

    Args:
        start: The address.
        end: End of its block.
        marks: Where ranges begin or end that the program flushed, or gave a task; sorted.
    """
    at = bisect_right(marks, start)
    return min(end, marks[at]) if at < len(marks) else end


# -- a process --------------------------------------------------------------------------------------------------------


class _Entry:
    """A submitted task; its handle is 0 while its thread submits it."""

    __slots__ = ("handle", "job", "thread")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.handle = 0
        self.thread = threading.get_ident()


class Watch:
    """Looks at each task that a process in strict mode submits, and tells of a mistake once a block.

    Args:
        link: The process's attachment.
        tasks: Where it submits; ``submit`` stands before its own until ``close``.
        blocks: Its memory.
    """

    def __init__(self, link: Link, tasks: Tasks, blocks: Blocks) -> None:
        self._link = link
        self._tasks = tasks
        self._blocks = blocks
        self._submit: Callable[..., int] = tasks.submit
        looking: Callable[..., int] = self.submit
        # On this one object, so that a process that is not strict does not even ask whether it is.
        tasks.submit = looking  # type: ignore[method-assign]
        self._entries: list[_Entry] = []
        self._lock = threading.RLock()  # a finalizer may flush where another thread's would wait
        self._all_cores = (1 << link.core_count) - 1

    def submit(self, *given: int) -> int:
        """As ``Tasks.submit``, whose arguments it gets, after a look."""
        entry = None if self._link.fault else self._look(*given)  # a fork's child takes no lock of its parent's
        if entry is None:
            return self._submit(*given)
        try:
            handle = self._submit(*given)
        except BaseException:
            self._forget(entry)
            raise
        if handle < 0:
            self._forget(entry)
        else:
            entry.handle = handle
        return handle

    def close(self) -> None:
        """Look at nothing any more."""
        vars(self._tasks).pop("submit", None)
        self._entries.clear()

    def mark(self, block: Block, start: int, end: int) -> None:
        """Note a range of a block, by its offsets, that the program has named as one."""
        with self._lock:
            for offset in (start, end):
                at = bisect_right(block.marks, offset)
                if not (at and block.marks[at - 1] == offset) and len(block.marks) <= MOST_MARKS:
                    insort(block.marks, offset)

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
        if not (0 <= numbers[0] <= _MOST_CMD and 0 <= numbers[1] <= PRIORITY_PREEMPT and numbers[3] <= self._all_cores):
            return None
        ddr = self._link.ddr
        blocks = [(input_phy, input_bytes), (output_phy, output_bytes)]
        if any(block != (0, 0) and not ddr.contains(*block) for block in blocks):
            return None
        into, out = (Span(phy_addr, phy_addr + size_bytes) for phy_addr, size_bytes in blocks)
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
            self._blocks.look_at_input("input block", into.start, into.end - into.start)
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
