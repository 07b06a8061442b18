"""When a task is wrong to submit in strict mode: rules over values alone, without a process or its memory.

Nobody knows what an op does with an address, nor how far it goes from there.
Each rule is silent where a right program could look the same.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.mailbox.table import PRIORITY_URGENT
from hbrt.protocol.control import POINTS, READS, WRITES
from hbrt.types import HB_DSP_RPC_CMD_PING

WORD_BYTES = 8
MOST_PARAMETER_BYTES = PAGE_BYTES
"""So many bytes of an input block are searched. A larger block is data, rather than a structure."""


MOST_MARKS = 1024
"""So many places that a program has named are kept of a block."""


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
        """Addresses in its structure that lie in its output block: what the op is told to write there, and where."""
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
        """Whether it writes in a part of its output block, as far as one can tell: it may be told to write beside."""
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
        raw: Its bytes; all but the first MOST_PARAMETER_BYTES are left out.
    """
    size = min(len(raw), MOST_PARAMETER_BYTES) // WORD_BYTES * WORD_BYTES
    return [(at * WORD_BYTES, word) for at, word in enumerate(raw[:size].cast("Q")) if word]


def are_never_at_once(new: TaskFootprint, old: TaskFootprint) -> bool:
    """Whether one core runs both tasks, one after the other: a new one that interrupts would begin in the middle."""
    interrupts = new.priority >= PRIORITY_URGENT and new.priority > old.priority
    return new.cores == old.cores and new.cores.bit_count() == 1 and not interrupts


def may_share_out(new: TaskFootprint, old: TaskFootprint) -> bool:
    """Whether two tasks with one output block may be halves of one footprint, each of which writes a part of its own.

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


def data_race(new: TaskFootprint, old: TaskFootprint) -> DataRace | None:
    """What is wrong with submitting a task while an earlier one has not ended; None when nothing is for certain.

    Reading what another reads is in order, and so is what a structure points to in both: it may be read by both.
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
        return None  # a table of all buffers, perhaps, of which a number beside picks one
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
    """Where memory that begins at an address ends for certain: at the next place that the program has named.

    Args:
        start: The address.
        end: End of its block.
        marks: Where ranges begin or end that the program flushed, or gave a task; sorted.
    """
    at = bisect_right(marks, start)
    return min(end, marks[at]) if at < len(marks) else end
