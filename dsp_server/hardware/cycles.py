"""The modelled cycle counter of a core: what the chip would have spent, never what the host spent.

Modelled cycles and host time are different quantities. Nothing here reads a clock: ops and the iDMA charge
cycles by a cost model, so that the same work gives the same count on every machine and in every run. Host
times are named `_ns` or `_us` and come from elsewhere.

Source: DSP development guide (J5 OE), 10.2.3.3.4, for XT_RSR_CCOUNT,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
The constants are those of the process's profile, with a source or an assumed range each: hbrt/profiles.
"""

from __future__ import annotations

from typing import Final

from hbrt.profiles.profile import active

_PROFILE: Final = active()
CLOCK_HZ: Final = _PROFILE.clock_hz

LANES_8BIT: Final = _PROFILE.whole("vector.bits") // 8
LANES_F32: Final = _PROFILE.whole("vector.bits") // 32

IDMA_ISSUE_CYCLES: Final = _PROFILE.whole("idma.issue_cycles")
IDMA_SETUP_CYCLES: Final = _PROFILE.whole("idma.setup_cycles")
IDMA_ROW_CYCLES: Final = _PROFILE.whole("idma.row_cycles")
IDMA_BYTES_PER_CYCLE: Final = _PROFILE.whole("idma.bytes_per_cycle")
IDMA_POLL_CYCLES: Final = _PROFILE.whole("idma.poll_cycles")

DDR_LOAD_BYTES: Final = _PROFILE.whole("ddr.load_bytes")
DDR_STALL_CYCLES: Final = _PROFILE.whole("ddr.stall_cycles")


def idma_cycles(size_bytes: int, num_rows: int = 1) -> int:
    """Modelled cycles for which one descriptor keeps the iDMA engine busy."""
    return IDMA_SETUP_CYCLES + (num_rows - 1) * IDMA_ROW_CYCLES - (-size_bytes // IDMA_BYTES_PER_CYCLE)


def cycles_to_ns(cycles: int) -> float:
    """Modelled nanoseconds by the profile's clock: cycles * 125 / 81 at 648 MHz (the manual's estimate is 1.5)."""
    return _PROFILE.ns(cycles)


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
