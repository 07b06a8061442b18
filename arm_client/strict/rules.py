"""When a task is wrong to submit in strict mode: rules over values alone, without a process or its memory.

What an op does with an address, and how far it goes from there, is not known. So a rule reports nothing where a correct
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
"""So many bytes of an input block are searched. A larger block is data, rather than a structure."""


MAX_MARKS = 1024
"""The most places of a block that are remembered, of those that the program has flushed or passed."""


class Span(NamedTuple):
    """A physical range: its first address, and the one after its last."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start:#x}+{self.end - self.start:#x}"

    def holds(self, address: int) -> bool:
        """Whether an address lies in it."""
        return self.start <= address < self.end

    def common(self, other: Span) -> Span | None:
        """What two ranges share, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Span(start, end) if start < end else None


class TaskFootprint(NamedTuple):
    """The memory that a task uses, and what decides when it runs.

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
        """Addresses in its structure that lie in its output block: where the structure has the op write."""
        return frozenset(address for _, address in self.pointers if self.output.holds(address))

    @property
    def beside(self) -> list[tuple[int, int]]:
        """The addresses in its structure that lie outside the structure, by their offset there."""
        return [(at, address) for at, address in self.pointers if not self.input.holds(address)]

    @property
    def sources(self) -> frozenset[int]:
        """Addresses in its structure that lie elsewhere; those in the structure itself by their offset in it."""
        return frozenset(
            address - self.input.start if self.input.holds(address) else address
            for _, address in self.pointers
            if not self.output.holds(address)
        )

    def may_write(self, span: Span) -> bool:
        """Whether it may write a part of its output block; its structure may name another part."""
        targets = self.targets
        return not targets or any(span.holds(target) for target in targets)


class DataRace(NamedTuple):
    """Memory that two unfinished tasks use: where, and what each does there (READS, WRITES, POINTS)."""

    span: Span
    new: int
    old: int


def words(raw: memoryview) -> list[tuple[int, int]]:
    """The aligned 8-byte words of a structure that are not 0, by their offset.

    Args:
        raw: Its bytes; all but the first MAX_PARAMETER_BYTES are left out.
    """
    size = min(len(raw), MAX_PARAMETER_BYTES) // WORD_BYTES * WORD_BYTES
    return [(at * WORD_BYTES, word) for at, word in enumerate(raw[:size].cast("Q")) if word]


def are_never_at_once(new: TaskFootprint, old: TaskFootprint) -> bool:
    """Whether one core runs both tasks, one after the other; a new task that preempts would start in the middle."""
    interrupts = new.priority >= PRIORITY_URGENT and new.priority > old.priority
    return new.cores == old.cores and new.cores.bit_count() == 1 and not interrupts


def may_share_out(new: TaskFootprint, old: TaskFootprint) -> bool:
    """Whether two tasks with one output block may be halves of one footprint, each of which writes its own part.

    They may when their structures name different places of it, when numbers in the structures of one command differ
    (rows, an index), or when the op can choose its part by its core. Copies of one task write the same bytes. Of all
    other tasks with one output block, the later one replaces the result of the earlier one: two tasks that differ
    in their sources alone, for example.
    """
    if (new.targets or {new.output.start}) != (old.targets or {old.output.start}) and (new.targets or old.targets):
        return True
    if new.cmd != old.cmd:
        return False
    if new.input == old.input:  # one structure for both tasks: no numbers differ
        return not new.cores & old.cores
    are_structures = bool(new.pointers or old.pointers)
    if new.numbers != old.numbers:
        return are_structures  # else data
    is_all_seen = new.input.end - new.input.start <= MAX_PARAMETER_BYTES
    return new.sources == old.sources and (are_structures or is_all_seen)


def data_race(new: TaskFootprint, old: TaskFootprint) -> DataRace | None:
    """The data race of a new task with an unfinished one; None when none is certain.

    Two reads are no race. Memory that both structures point to is none either: both tasks may only read it.
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
        return None  # perhaps a table of all buffers, with a number that selects one
    if span := _pointed(old, new):
        return DataRace(span, WRITES, POINTS)
    if span := _pointed(new, old):
        return DataRace(span, POINTS, WRITES)
    return None


def _pointed(user: TaskFootprint, writer: TaskFootprint) -> Span | None:
    """The word in the writer's output that the user's structure has an address of."""
    for _, address in user.pointers:
        span = Span(address, address + 1)
        if writer.output.holds(address) and not user.input.holds(address) and writer.may_write(span):
            return span
    return None


def reach(start: int, end: int, marks: list[int]) -> int:
    """The certain end of the memory that begins at an address: the next place that the program has used.

    Args:
        start: The address.
        end: End of its block.
        marks: Where ranges begin or end that the program flushed, or gave a task; sorted.
    """
    at = bisect_right(marks, start)
    return min(end, marks[at]) if at < len(marks) else end
