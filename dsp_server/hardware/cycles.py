"""A core's modeled cycle counter: what the chip would have spent, never what the host spent.

Modeled cycles and host time are different quantities. Nothing here reads a clock: ops and iDMA charge cycles
according to a cost model, so that the same work gives the same count on every machine and in every run. Host
times are named `_ns` or `_us` and come from elsewhere.

Source: DSP development guide (J5 OE), 10.2.3.3.4, for XT_RSR_CCOUNT,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
The constants come from the process's profile, each with a source or an assumed range: hbrt/profiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final, Protocol

from hbrt.profiles.profile import active
from hbrt.profiles.work import (
    BUNDLES,
    DDR_LOADS,
    DIVIDES,
    DMA_BYTES,
    DMA_CYCLES,
    GATHERS,
    MILLI,
    NO_WORK,
    PRINTED_BYTES,
    PRINTS,
    SCALARS,
    WAIT_CYCLES,
    LoopCost,
    Operations,
)

_PROFILE: Final = active()
CLOCK_HZ: Final = _PROFILE.clock_hz if "dsp" in _PROFILE.cores else 0

WIDTHS: Final = frozenset({8, 16, 32, 64})
VECTOR_BITS: Final = _PROFILE.dsp_whole("vector.bits")
LANES_8BIT: Final = _PROFILE.dsp_whole("vector.bits") // 8
LANES_F32: Final = _PROFILE.dsp_whole("vector.bits") // 32

IDMA_ISSUE_CYCLES: Final = _PROFILE.dsp_whole("idma.issue_cycles")
IDMA_SETUP_CYCLES: Final = _PROFILE.dsp_whole("idma.setup_cycles")
IDMA_ROW_CYCLES: Final = _PROFILE.dsp_whole("idma.row_cycles")
IDMA_BYTES_PER_CYCLE: Final = _PROFILE.dsp_whole("idma.bytes_per_cycle")
IDMA_POLL_CYCLES: Final = _PROFILE.dsp_whole("idma.poll_cycles")

DDR_LOAD_BYTES: Final = _PROFILE.dsp_whole("ddr.load_bytes")
DDR_STALL_CYCLES: Final = _PROFILE.dsp_whole("ddr.stall_cycles")

SCHEDULE_MILLI: Final = round(MILLI * _PROFILE.number("vector.schedule")) if CLOCK_HZ else 0
PRINTF_CYCLES: Final = _PROFILE.dsp_whole("scalar.printf_cycles")
PRINTF_BYTE_CYCLES: Final = _PROFILE.dsp_whole("scalar.printf_byte_cycles")

_SLOTS: Final = ("", "memory_", "store_", "alu_", "mul_", "pack_", "select_", "reduce_")
COSTS_IN_C: Final = (
    *(_PROFILE.dsp_whole(f"vector.{kind}slots") for kind in _SLOTS),
    SCHEDULE_MILLI,
    _PROFILE.dsp_whole("vector.gather_cycles"),
    _PROFILE.dsp_whole("vector.divide_cycles"),
    _PROFILE.dsp_whole("scalar.cycles"),
    PRINTF_CYCLES,
    PRINTF_BYTE_CYCLES,
    VECTOR_BITS,
)
"""``struct hbrt_cycles_model`` of native/include/dsp/hbrt/cycles.h."""


def idma_cycles(size_bytes: int, num_rows: int = 1) -> int:
    """Return how many modeled cycles one descriptor keeps the iDMA engine busy."""
    return IDMA_SETUP_CYCLES + (num_rows - 1) * IDMA_ROW_CYCLES - (-size_bytes // IDMA_BYTES_PER_CYCLE)


def cycles_to_ns(cycles: int) -> float:
    """Convert to modeled ns at the profile's clock: cycles * 125 / 81 at 648 MHz (the manual estimates 1.5)."""
    return _PROFILE.ns(cycles)


class CycleTrace(Protocol):
    """Records cycles while the board is traced."""

    def note_stall(self, before: int, after: int, size_bytes: int) -> None:
        """Record that the op waited for DDR between two cycles."""

    def note_overlapped(self, before: int, size_bytes: int) -> None:
        """Record a copy that was charged together with the loop over its bytes, starting at a cycle."""


class CycleCounter:
    """Counts one core's modeled cycles, which only increase, and what they were spent on."""

    __slots__ = ("cycles", "trace", "work")

    def __init__(self, cycles: int = 0) -> None:
        self.cycles = cycles
        self.work: list[int] = [*NO_WORK]
        self.trace: CycleTrace | None = None

    def take_work(self) -> list[int]:
        """Return the work since the last call, in the order of Work."""
        taken, self.work = self.work, [*NO_WORK]
        return taken

    def add_work(self, work: Iterable[int]) -> None:
        """Count work whose cycles are counted elsewhere."""
        self.work = [before + more for before, more in zip(self.work, work, strict=True)]

    def charge(self, cycles: int) -> None:
        """Spend cycles. Raises ValueError if negative."""
        if cycles < 0:
            raise ValueError(f"Cannot charge {cycles} cycles: the counter only goes forward.")
        self.cycles += cycles

    def advance_to(self, cycle: int) -> None:
        """Wait until the counter reaches `cycle`; costs nothing if it is already past it."""
        if cycle > self.cycles:
            self.work[WAIT_CYCLES] += cycle - self.cycles
            self.cycles = cycle

    def charge_vector(self, elements: int, lanes: int, instructions: int = 1) -> None:
        """Spend the cost of a vector loop over TCM: `instructions` per `lanes` elements."""
        bundles = -(-elements // lanes) * instructions
        self.work[BUNDLES] += bundles
        self.charge(-(-bundles * SCHEDULE_MILLI // MILLI))

    def charge_loop(self, vectors: int, loop: LoopCost) -> None:
        """Spend the cost of a loop that does the same with this many vectors."""
        work = self.work
        work[BUNDLES] += -(-vectors * loop.bundles_milli // MILLI)
        work[GATHERS] += vectors * loop.gathers
        work[DIVIDES] += vectors * loop.divides
        work[SCALARS] += vectors * loop.scalars
        self.charge(-(-vectors * loop.cycles_milli // MILLI))

    def charge_overlapped(self, elements: int, lanes: int, instructions: int, size_bytes: int) -> None:
        """Spend the cost of a vector loop during which iDMA moves its data in one copy: the larger of the two."""
        before, moving, work = self.cycles, idma_cycles(size_bytes), self.work
        self.charge_vector(elements, lanes, instructions)
        work[DMA_BYTES] += size_bytes
        work[DMA_CYCLES] += moving
        self.advance_to(before + moving)
        if self.trace is not None:
            self.trace.note_overlapped(before, size_bytes)

    def charge_print(self, size_bytes: int) -> None:
        """Spend the cost of a printf call that prints this many characters."""
        self.work[PRINTS] += 1
        self.work[PRINTED_BYTES] += size_bytes
        self.charge(PRINTF_CYCLES + size_bytes * PRINTF_BYTE_CYCLES)

    def charge_ddr(self, size_bytes: int) -> None:
        """Spend the stalls of reading or writing this many bytes directly in DDR, in loads of 64 bytes."""
        loads, before = -(-size_bytes // DDR_LOAD_BYTES), self.cycles
        self.work[DDR_LOADS] += loads
        self.charge(loads * DDR_STALL_CYCLES)
        if self.trace is not None:
            self.trace.note_stall(before, self.cycles, size_bytes)


_current = CycleCounter()


def current() -> CycleCounter:
    """Return the counter of this process's core; there always is one, so an op can run without a core around it."""
    return _current


def install(counter: CycleCounter) -> CycleCounter:
    """Make `counter` current and return the previous one, as a core does for an op that interrupts another."""
    global _current
    before, _current = _current, counter
    return before


@cache
def loop_cost(operations: Operations) -> LoopCost:
    """Return what one vector in a loop costs on this board."""
    return operations.of(_PROFILE)


def hb_dsp_charge(
    elements: int,
    bits: int = 32,
    *,
    load: int = 0,
    store: int = 0,
    alu: int = 0,
    mul: int = 0,
    pack: int = 0,
    select: int = 0,
    reduce: int = 0,
    gather: int = 0,
    divide: int = 0,
    move: int = 0,
    scalar: int = 0,
) -> None:
    """Charge the modeled cycles of a vector loop: what an op that computes with numpy would do on the chip.

    A vector has 512 bits: 64 elements of 8 bits, 32 of 16, 16 of 32, 8 of 64. The operations are counted per vector;
    the scarcest instruction slot determines the cost (docs/cycles.md).

    Args:
        elements: Number of elements that the loop processes.
        bits: Size of an element: 8, 16, 32 or 64.
        load: Vectors loaded from TCM.
        store: Vectors stored to TCM.
        alu: Additions, comparisons, shifts, logic, conversions.
        mul: Multiplications and multiply-adds, integer or float.
        pack: Narrowings of wide registers.
        select: Moves of lanes to other lanes.
        reduce: Reductions of all lanes to one number.
        gather: Gathers and scatters in TCM.
        divide: Divisions, reciprocals, roots.
        move: Moves between registers, masked moves, constants.
        scalar: Scalar operations per vector.

    Raises:
        ValueError: a width that vectors do not have, or a negative number.

    Emulator: the vendor's chip counts by itself; this call and its terms are the emulator's choice.
    """
    operations = Operations(load, store, alu, mul, pack, select, reduce, gather, divide, move, scalar)
    if bits not in WIDTHS:
        raise ValueError(f"Cannot charge elements of {bits} bits: a vector has elements of 8, 16, 32 or 64 bits.")
    if elements < 0 or min(operations) < 0:
        raise ValueError(f"Cannot charge {elements} elements with {operations}: numbers must be 0 or more.")
    _current.charge_loop(-(-elements * bits // VECTOR_BITS), loop_cost(operations))


def XT_RSR_CCOUNT() -> int:
    """Return the low 32 bits of the current counter, like the register: they wrap every 6.6 modeled seconds."""
    return _current.cycles & 0xFFFF_FFFF
