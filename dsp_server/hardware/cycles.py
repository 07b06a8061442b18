"""The modelled cycle counter of a core: what the chip would have spent, never what the host spent.

Modelled cycles and host time are different quantities. Nothing here reads a clock: ops and the iDMA charge
cycles by a cost model, so that the same work gives the same count on every machine and in every run. Host
times are named `_ns` or `_us` and come from elsewhere.

Source: DSP development guide (J5 OE), 10.2.1 and 10.2.3.3.4, for 648 MHz, Vision P6, 512-bit SIMD and XT_RSR_CCOUNT,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
Emulator: no cost of DDR or iDMA is public; every constant of the cost model is its choice, of a plausible size. Compare
two ways of writing an op with it; do not predict a board.
"""

from __future__ import annotations

from typing import Final

CLOCK_HZ: Final = 648_000_000

LANES_8BIT: Final = 64
LANES_F32: Final = 16

IDMA_ISSUE_CYCLES: Final = 16
"""The core's own cost of programming a descriptor."""
IDMA_SETUP_CYCLES: Final = 64
"""The engine's delay before a descriptor's first byte: about 100 ns of DDR latency."""
IDMA_ROW_CYCLES: Final = 4
"""The engine's cost of each row of a 2-D descriptor after the first."""
IDMA_BYTES_PER_CYCLE: Final = 16
"""The engine's throughput: 128 bits a cycle, 10.4 GB/s."""
IDMA_POLL_CYCLES: Final = 32
"""The core's cost of one poll of a descriptor that is not done."""

DDR_LOAD_BYTES: Final = 64
DDR_STALL_CYCLES: Final = 40
"""A load of 64 bytes straight from DDR: there is no data cache, so the core waits for each."""


def idma_cycles(size_bytes: int, num_rows: int = 1) -> int:
    """Modelled cycles for which one descriptor keeps the iDMA engine busy."""
    return IDMA_SETUP_CYCLES + (num_rows - 1) * IDMA_ROW_CYCLES - (-size_bytes // IDMA_BYTES_PER_CYCLE)


def cycles_to_ns(cycles: int) -> float:
    """Modelled nanoseconds at exactly 648 MHz: cycles * 125 / 81 (the manual's estimate is 1.5 a cycle)."""
    return cycles * 125 / 81


class CycleCounter:
    """Counts the modelled cycles of one core; it only goes forward."""

    __slots__ = ("cycles",)

    def __init__(self, cycles: int = 0) -> None:
        self.cycles = cycles

    def charge(self, cycles: int) -> None:
        """Spend cycles. Raises ValueError when negative."""
        if cycles < 0:
            raise ValueError(f"{cycles} cycles cannot be charged: the counter only goes forward.")
        self.cycles += cycles

    def advance_to(self, cycle: int) -> None:
        """Wait until the counter stands at `cycle`, at no cost when it is past it."""
        self.cycles = max(self.cycles, cycle)

    def charge_vector(self, elements: int, lanes: int, instructions: int = 1) -> None:
        """Spend what a vector loop over TCM takes: `instructions` cycles for each `lanes` elements."""
        self.charge(-(-elements // lanes) * instructions)

    def charge_ddr(self, size_bytes: int) -> None:
        """Spend the stalls of reading or writing that many bytes straight in DDR, in loads of 64 bytes."""
        self.charge(-(-size_bytes // DDR_LOAD_BYTES) * DDR_STALL_CYCLES)


_current = CycleCounter()


def current() -> CycleCounter:
    """The counter of this process's core; there is one, so that an op can be run with no core around it."""
    return _current


def install(counter: CycleCounter) -> CycleCounter:
    """Make `counter` the current one and return the one before it, as a core does for an op that interrupts another."""
    global _current
    before, _current = _current, counter
    return before


def XT_RSR_CCOUNT() -> int:
    """The low 32 bits of the current counter, as in the register: they wrap every 6.6 modelled s."""
    return _current.cycles & 0xFFFF_FFFF
