"""What a core's engines note into a ring of events while the board is traced: TCM in use, stalls, copies, waits."""

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
    """The parts of an issued copy that are noted."""

    @property
    def handle(self) -> int:
        """Its handle."""

    @property
    def shape(self) -> Shape | None:
        """Its rows; None for one."""

    @property
    def size_bytes(self) -> int:
        """Its bytes."""

    @property
    def end_cycle(self) -> int:
        """Its modelled end."""


class Engine(Protocol):
    """The parts of an iDMA engine that are noted."""

    @property
    def counter(self) -> CycleCounter:
        """By which it times copies."""

    @property
    def queue(self) -> Sequence[Copy]:
        """What has not completed."""


class EngineTrace:
    """The ring of one core; its engines have this as their ``trace``, and None while the board is not traced."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        # Of each iDMA engine, by handle: when it was issued, its modelled start and end, size and lane.
        self._copies: dict[int, dict[int, tuple[int, int, int, int, int]]] = {}

    def note_use(self, used_bytes: tuple[int, int]) -> None:
        """Note the bytes of TCM in use, of each bank."""
        now_ns = monotonic_ns()
        self.ring.note(EventKind.TCM, now_ns, now_ns, *used_bytes, cycles.current().cycles)

    def note_stall(self, before: int, after: int, size_bytes: int) -> None:
        """Note that the op waited for DDR between two cycles."""
        now_ns = monotonic_ns()
        self.ring.note(EventKind.STALL, now_ns, now_ns, before, after, size_bytes)

    def note_overlapped(self, before: int, size_bytes: int) -> None:
        """Note a copy that was charged together with the loop over its bytes, begun at a cycle."""
        now_ns = monotonic_ns()
        self.ring.note(EventKind.COPY, now_ns, now_ns, before, before + cycles.idma_cycles(size_bytes), size_bytes)

    def note_issued(self, idma: Engine) -> None:
        """Note the newest copy; its event follows when it has completed."""
        one, copies = idma.queue[-1], self._copies.setdefault(id(idma), {})
        lanes = {copy[4] for copy in copies.values()}
        lane = next(lane for lane in range(len(lanes) + 1) if lane not in lanes)
        rows = 1 if one.shape is None else one.shape.num_rows
        start = one.end_cycle - cycles.idma_cycles(one.size_bytes, rows)
        copies[one.handle] = monotonic_ns(), start, one.end_cycle, one.size_bytes, lane

    def begin_wait(self, idma: Engine) -> tuple[int, int]:
        """The time and the cycle at which a wait begins, for ``note_wait``."""
        return monotonic_ns(), idma.counter.cycles

    def note_wait(self, idma: Engine, start_ns: int, before: int) -> None:
        """Note a wait, and the copies that it has completed."""
        end_ns = monotonic_ns()
        self.ring.note(EventKind.DMA_WAIT, start_ns, end_ns, before, idma.counter.cycles)
        self.note_completed(idma, end_ns)

    def note_completed(self, idma: Engine, end_ns: int = 0) -> None:
        """Note the copies that have completed since the last time."""
        copies = self._copies.get(id(idma), {})
        if len(copies) == len(idma.queue):
            return
        left = {one.handle for one in idma.queue}
        for handle in [handle for handle in copies if handle not in left]:
            issued_ns, start, end, size_bytes, lane = copies.pop(handle)
            self.ring.note(EventKind.COPY, issued_ns, end_ns or monotonic_ns(), start, end, size_bytes, lane)
