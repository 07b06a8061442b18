"""The work of a task in the terms of a DSP core: what is counted, and what it costs by a profile. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hbrt.profiles.profile import Profile

MILLI: Final = 1000


class Work(NamedTuple):
    """What a task has charged, in the order of the record in the task table (``SLOT_WORK``)."""

    bundles: int = 0  # VLIW instructions of vector code, each slot filled
    gathers: int = 0
    divides: int = 0
    scalars: int = 0
    ddr_loads: int = 0  # accesses of a vector straight to DDR
    descriptors: int = 0
    rows: int = 0  # of 2-D copies, after each one's first
    dma_bytes: int = 0
    prints: int = 0
    printed_bytes: int = 0
    mapped_bytes: int = 0
    dma_cycles: int = 0  # for which the iDMA engine was busy
    wait_cycles: int = 0  # for which the core waited for it

    @property
    def has_arithmetic(self) -> bool:
        """Whether the op charged what it computes."""
        return bool(self.bundles or self.gathers or self.divides or self.scalars)


WORK: Final = struct.Struct(f"<{len(Work._fields)}Q")
NO_WORK: Final = Work()
(
    BUNDLES, GATHERS, DIVIDES, SCALARS, DDR_LOADS, DESCRIPTORS, ROWS, DMA_BYTES, PRINTS, PRINTED_BYTES, MAPPED_BYTES,
    DMA_CYCLES, WAIT_CYCLES,
) = range(len(Work._fields))  # fmt: skip


class Operations(NamedTuple):
    """Operations on a vector, by the slot of the instruction that they take; scalar ones beside them."""

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
        """Both, on each vector."""
        return Operations(*map(int.__add__, self, other))

    def of(self, profile: Profile) -> LoopCost:
        """What each vector of a loop with these operations costs."""
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
    """Cost of a vector in a loop: cycles and VLIW instructions, both in thousandths, and the operations beside them."""

    cycles_milli: int
    bundles_milli: int
    gathers: int
    divides: int
    scalars: int


class Cost(NamedTuple):
    """Modelled cycles of a task: those of the core, which add up to ``cycles``, and those of the iDMA engine beside it.

    Attributes:
        cycles: What the task takes on its core.
        vector: Vector instructions.
        scalar: Scalar instructions, printf, issue of copies.
        ddr: Stalls for accesses straight to DDR.
        wait: Waits for copies.
        dma: The engine's own time.
        overlap: Of that, while the core computed.
        is_estimated: Whether the op charged nothing, so that vector and ddr are a guess from what it reads and writes.
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
    """The cost of a task that has ended.

    An op that ends well and charges no arithmetic is estimated: each byte of its blocks and mappings that iDMA did not
    move is an access to DDR, and all bytes go through the vector unit once.

    Args:
        charged: Cycles that it charged.
        work: What it charged.
        block_bytes: Bytes of its input and its output block.
        profile: Of the board.
        is_done: Whether it has ended well.
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
