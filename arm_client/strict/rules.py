"""Rules for which tasks are wrong to submit in strict mode; they work on values, without a process or its memory.

It is not known what an op does with an address, or how far it goes from there. So a rule reports nothing if a correct
program could look the same.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.mailbox.table import PRIORITY_URGENT
from hbrt.protocol.control import POINTS, READS, WRITES
from hbrt.types import HB_DSP_RPC_CMD_PING

WORD_BYTES = 8
MAX_PARAMETER_BYTES = PAGE_BYTES
"""Number of bytes of an input block to search; a larger block is data rather than a structure."""


MAX_MARKS = 1024
"""Maximum number of places per block to remember, of those the program has flushed or passed."""


class Span(NamedTuple):
    """A physical range: its first address, and the one after its last."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start:#x}+{self.end - self.start:#x}"

    def holds(self, address: int) -> bool:
        """Return whether it contains an address."""
        return self.start <= address < self.end

    def common(self, other: Span) -> Span | None:
        """Return the overlap of two ranges, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Span(start, end) if start < end else None


class TaskFootprint(NamedTuple):
    """The memory that a task uses, and what decides when it runs.

    Attributes:
        cmd: Command number.
        priority: 0..255.
        custom_id: Smaller first among equal priorities.
        cores: Cores that may run it, as a nonzero mask.
        input: Its input block, empty if it has none.
        output: Its output block, likewise.
        pointers: Addresses of device memory in the input block, by their offset there.
        numbers: The rest of the input block: its first bytes, with 0 for each address.
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
        """Addresses in its structure that point into its output block: where the op is told to write."""
        return frozenset(address for _, address in self.pointers if self.output.holds(address))

    @property
    def beside(self) -> list[tuple[int, int]]:
        """Addresses in its structure that point outside the structure, by their offset there."""
        return [(at, address) for at, address in self.pointers if not self.input.holds(address)]

    @property
    def sources(self) -> frozenset[int]:
        """Addresses in its structure that point elsewhere; those into the structure itself as offsets in it."""
        return frozenset(
            address - self.input.start if self.input.holds(address) else address
            for _, address in self.pointers
            if not self.output.holds(address)
        )

    def may_write(self, span: Span) -> bool:
        """Return whether it may write a part of its output block; its structure may name another part."""
        targets = self.targets
        return not targets or any(span.holds(target) for target in targets)


class DataRace(NamedTuple):
    """Memory used by two unfinished tasks: where, and what each does there (READS, WRITES, POINTS)."""

    span: Span
    new: int
    old: int


def words(raw: memoryview) -> list[tuple[int, int]]:
    """Return the nonzero aligned 8-byte words of a structure, by offset.

    Args:
        raw: Its bytes; only the first MAX_PARAMETER_BYTES are used.
    """
    size = min(len(raw), MAX_PARAMETER_BYTES) // WORD_BYTES * WORD_BYTES
    return [(at * WORD_BYTES, word) for at, word in enumerate(raw[:size].cast("Q")) if word]


def are_never_at_once(new: TaskFootprint, old: TaskFootprint) -> bool:
    """Return whether one core runs both tasks in sequence; a new task that preempts would start in the middle."""
    interrupts = new.priority >= PRIORITY_URGENT and new.priority > old.priority
    return new.cores == old.cores and new.cores.bit_count() == 1 and not interrupts


def may_share_out(new: TaskFootprint, old: TaskFootprint) -> bool:
    """Return whether two tasks with the same output block may each write their own part of it.

    They may when their structures name different places of it, when numbers in the structures of one command differ
    (rows, an index), or when the op can choose its part by its core. Copies of one task write the same bytes. Otherwise
    the later task replaces the result of the earlier one: for example, if they differ only in their sources.
    """
    if (new.targets or {new.output.start}) != (old.targets or {old.output.start}) and (new.targets or old.targets):
        return True
    if new.cmd != old.cmd:
        return False
    if new.input == old.input:  # both tasks use one structure: no numbers differ
        return not new.cores & old.cores
    are_structures = bool(new.pointers or old.pointers)
    if new.numbers != old.numbers:
        return are_structures  # otherwise data
    is_all_seen = new.input.end - new.input.start <= MAX_PARAMETER_BYTES
    return new.sources == old.sources and (are_structures or is_all_seen)


def data_race(new: TaskFootprint, old: TaskFootprint) -> DataRace | None:
    """Return the data race between a new task and an unfinished one; None if none is certain.

    Two reads are not a race. Neither is memory that both structures point to: both tasks may only read it.
    """
    if HB_DSP_RPC_CMD_PING in {new.cmd, old.cmd} or are_never_at_once(new, old):
        return None
    if span := new.output.common(old.output):
        return None if may_share_out(new, old) else DataRace(span, WRITES, WRITES)
    if (span := new.output.common(old.input)) and new.may_write(span):
        return DataRace(span, WRITES, READS)
    if (span := old.output.common(new.input)) and old.may_write(span):
        return DataRace(span, READS, WRITES)
    if new.cmd == old.cmd and new.pointers == old.pointers:
        return None  # may be a table of all buffers, with a number that selects one
    if span := _pointed(old, new):
        return DataRace(span, WRITES, POINTS)
    if span := _pointed(new, old):
        return DataRace(span, POINTS, WRITES)
    return None


def _pointed(user: TaskFootprint, writer: TaskFootprint) -> Span | None:
    """Return the word in the writer's output whose address is in the user's structure."""
    for _, address in user.pointers:
        span = Span(address, address + 1)
        if writer.output.holds(address) and not user.input.holds(address) and writer.may_write(span):
            return span
    return None


def reach(start: int, end: int, marks: list[int]) -> int:
    """Return the certain end of memory that starts at an address: the next place that the program has used.

    Args:
        start: The address.
        end: End of its block.
        marks: Sorted starts and ends of ranges that the program flushed or gave to a task.
    """
    at = bisect_right(marks, start)
    return min(end, marks[at]) if at < len(marks) else end
