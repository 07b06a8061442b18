"""What a core's engines record in an event ring while the board is traced: TCM in use, stalls, copies, waits."""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol

from dsp_server.hardware import cycles
from hbrt.trace.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsp_server.hardware.cycles import CycleCounter
    from dsp_server.hardware.transfers import Shape
    from hbrt.trace.ring import Ring


class Copy(Protocol):
    """The parts of an issued copy that are recorded."""

    @property
    def handle(self) -> int:
        """Its handle."""

    @property
    def shape(self) -> Shape | None:
        """Its rows; None if there is only one."""

    @property
    def size_bytes(self) -> int:
        """Its size in bytes."""

    @property
    def end_cycle(self) -> int:
        """Its modeled end."""


class Engine(Protocol):
    """The parts of an iDMA engine that are recorded."""

    @property
    def counter(self) -> CycleCounter:
        """The counter that times its copies."""

    @property
    def queue(self) -> Sequence[Copy]:
        """The copies that have not completed."""


class EngineTrace:
    """One core's ring; the engines' ``trace`` is this object, or None while the board is not traced."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        # For each iDMA engine, by handle: when the copy was issued, its modeled start and end, size and lane.
        self._copies: dict[int, dict[int, tuple[int, int, int, int, int]]] = {}

    def note_use(self, used_bytes: tuple[int, int]) -> None:
        """Record the bytes of TCM in use in each bank."""
        now_ns = monotonic_ns()
        self.ring.note(EventKind.TCM, now_ns, now_ns, *used_bytes, cycles.current().cycles)

    def note_stall(self, before: int, after: int, size_bytes: int) -> None:
        """Record that the op waited for DDR between two cycles."""
        now_ns = monotonic_ns()
        self.ring.note(EventKind.STALL, now_ns, now_ns, before, after, size_bytes)

    def note_overlapped(self, before: int, size_bytes: int) -> None:
        """Record a copy that was charged together with the loop over its bytes, starting at a cycle."""
        now_ns = monotonic_ns()
        self.ring.note(EventKind.COPY, now_ns, now_ns, before, before + cycles.idma_cycles(size_bytes), size_bytes)

    def note_issued(self, idma: Engine) -> None:
        """Remember the newest copy; its event is recorded once it has completed."""
        one, copies = idma.queue[-1], self._copies.setdefault(id(idma), {})
        lanes = {copy[4] for copy in copies.values()}
        lane = next(lane for lane in range(len(lanes) + 1) if lane not in lanes)
        rows = 1 if one.shape is None else one.shape.num_rows
        start = one.end_cycle - cycles.idma_cycles(one.size_bytes, rows)
        copies[one.handle] = monotonic_ns(), start, one.end_cycle, one.size_bytes, lane

    def begin_wait(self, idma: Engine) -> tuple[int, int]:
        """Return the time and cycle at which a wait begins, for ``note_wait``."""
        return monotonic_ns(), idma.counter.cycles

    def note_wait(self, idma: Engine, start_ns: int, before: int) -> None:
        """Record a wait, and the copies that completed during it."""
        end_ns = monotonic_ns()
        self.ring.note(EventKind.DMA_WAIT, start_ns, end_ns, before, idma.counter.cycles)
        self.note_completed(idma, end_ns)

    def note_completed(self, idma: Engine, end_ns: int = 0) -> None:
        """Record the copies that have completed since the last call."""
        copies = self._copies.get(id(idma), {})
        if len(copies) == len(idma.queue):
            return
        left = {one.handle for one in idma.queue}
        for handle in [handle for handle in copies if handle not in left]:
            issued_ns, start, end, size_bytes, lane = copies.pop(handle)
            self.ring.note(EventKind.COPY, issued_ns, end_ns or monotonic_ns(), start, end, size_bytes, lane)
