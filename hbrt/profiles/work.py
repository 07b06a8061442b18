"""The work of a task on a DSP core: what is counted, and its cost under a profile. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hbrt.profiles.profile import Profile

MILLI: Final = 1000


class Work(NamedTuple):
    """A task's charges, in the order of the task table's record (``SLOT_WORK``)."""

    bundles: int = 0  # VLIW instructions of vector code, with all slots filled
    gathers: int = 0
    divides: int = 0
    scalars: int = 0
    ddr_loads: int = 0  # vector accesses directly to DDR
    descriptors: int = 0
    rows: int = 0  # rows of 2-D copies, after each one's first
    dma_bytes: int = 0
    prints: int = 0
    printed_bytes: int = 0
    mapped_bytes: int = 0
    dma_cycles: int = 0  # cycles in which the iDMA engine was busy
    wait_cycles: int = 0  # cycles in which the core waited for it

    @property
    def has_arithmetic(self) -> bool:
        """Whether the op charged its computation."""
        return bool(self.bundles or self.gathers or self.divides or self.scalars)


WORK: Final = struct.Struct(f"<{len(Work._fields)}Q")
NO_WORK: Final = Work()
(
    BUNDLES, GATHERS, DIVIDES, SCALARS, DDR_LOADS, DESCRIPTORS, ROWS, DMA_BYTES, PRINTS, PRINTED_BYTES, MAPPED_BYTES,
    DMA_CYCLES, WAIT_CYCLES,
) = range(len(Work._fields))  # fmt: skip


class Operations(NamedTuple):
    """Operations on a vector, by instruction slot, plus scalar ones."""

    load: int = 0
    store: int = 0
    alu: int = 0
    mul: int = 0
    pack: int = 0
    select: int = 0
    reduce: int = 0
    gather: int = 0
    divide: int = 0
    move: int = 0
    scalar: int = 0

    def plus(self, other: Operations) -> Operations:
        """Both, for each vector."""
        return Operations(*map(int.__add__, self, other))

    def of(self, profile: Profile) -> LoopCost:
        """Return the cost of each vector in a loop with these operations."""
        slots = profile.whole
        *_, gather, divide, move, scalar = self
        needs = (
            ((self.load + self.store), slots("vector.memory_slots")),
            (self.store, slots("vector.store_slots")),
            (self.alu, slots("vector.alu_slots")),
            (self.mul, slots("vector.mul_slots")),
            (self.pack, slots("vector.pack_slots")),
            (self.select, slots("vector.select_slots")),
            (self.reduce, slots("vector.reduce_slots")),
            (sum(self[:7]) + move, slots("vector.slots")),
        )
        bundles = max(-(-MILLI * count // of) for count, of in needs)
        cycles = (
            round(bundles * profile.number("vector.schedule"))
            + MILLI * gather * profile.whole("vector.gather_cycles")
            + MILLI * divide * profile.whole("vector.divide_cycles")
            + MILLI * scalar * profile.whole("scalar.cycles")
        )
        return LoopCost(cycles, bundles, gather, divide, scalar)


class LoopCost(NamedTuple):
    """Cost of a vector in a loop: cycles and VLIW instructions, both in thousandths, plus other operations."""

    cycles_milli: int
    bundles_milli: int
    gathers: int
    divides: int
    scalars: int


class Cost(NamedTuple):
    """Modeled cycles of a task: the core's, which add up to ``cycles``, and the iDMA engine's in parallel.

    Attributes:
        cycles: Total cycles on its core.
        vector: Vector instructions.
        scalar: Scalar instructions, printf, issuing copies.
        ddr: Stalls for direct DDR accesses.
        wait: Waits for copies.
        dma: The engine's own time.
        overlap: Part of that while the core computed.
        is_estimated: Whether the op charged nothing, so that vector and ddr are estimated from what it reads and
            writes.
    """

    cycles: int
    vector: int
    scalar: int
    ddr: int
    wait: int
    dma: int
    overlap: int
    is_estimated: bool


def task_cost(charged: int, work: Work, block_bytes: int, profile: Profile, *, is_done: bool) -> Cost:
    """Return the cost of a finished task.

    A successful op that charges no arithmetic is estimated: each byte of its blocks and mappings not moved by iDMA
    counts as a DDR access, and all bytes pass through the vector unit once.

    Args:
        charged: The cycles it charged.
        work: Its charges.
        block_bytes: Bytes of its input and output blocks.
        profile: The board's profile.
        is_done: Whether it succeeded.
    """
    cycles = profile.whole
    scalar = (
        work.scalars * cycles("scalar.cycles")
        + work.descriptors * cycles("idma.issue_cycles")
        + work.prints * cycles("scalar.printf_cycles")
        + work.printed_bytes * cycles("scalar.printf_byte_cycles")
    )
    ddr = work.ddr_loads * cycles("ddr.stall_cycles")
    wait = work.wait_cycles
    vector = max(0, charged - scalar - ddr - wait)
    is_estimated = is_done and not vector and not work.scalars
    if is_estimated:
        direct = max(0, block_bytes + work.mapped_bytes - work.dma_bytes)
        ddr += -(-direct // cycles("ddr.load_bytes")) * cycles("ddr.stall_cycles")
        vectors = -(-(direct + work.dma_bytes) // profile.vector_bytes)
        vector = round(vectors * cycles("estimate.instructions") * profile.number("vector.schedule"))
    overlap = max(0, work.dma_cycles - wait)
    return Cost(vector + scalar + ddr + wait, vector, scalar, ddr, wait, work.dma_cycles, overlap, is_estimated)
