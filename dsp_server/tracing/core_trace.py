"""What a core notes while its board is traced: its ops, and what their engines do.

A trace gives the core and its engines another class, and takes it back at its end: without one, their code is the same
as if this module did not exist. It may end inside a call: behind ``super()`` an object may have its own class again.
"""

from __future__ import annotations

from functools import cache
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from dsp_server.hardware import cycles
from dsp_server.hardware.engines import Engines
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.table import SUBMITTED
from hbrt.trace.kinds import Kind
from hbrt.trace.swap import swap_class

if TYPE_CHECKING:
    from dsp_server.hardware.descriptors import Idma
    from dsp_server.hardware.tile_manager import TileManager
    from dsp_server.hardware.transfers import Shape
    from hbrt.trace.ring import Ring

_rings: list[Ring] = []  # of the core that this process is now: one, or none
_copies: dict[int, dict[int, tuple[int, int, int, int, int]]] = {}  # of each engine, by handle


def follow(core: Any, ring: Ring | None) -> None:
    """Have a core note into a ring from now on, or with None no more. Not in the middle of an op.

    Args:
        core: A ``dsp_server.core.loop.Core``.
        ring: Of this process.
    """
    note_into(ring)
    _copies.clear()
    swap_class(core, _noting_core, is_on=ring is not None)
    core.trace_c(ring)
    for engines in (core.engines, *core.spare_engines):
        _swap_engines(engines, is_on=ring is not None)


def note_into(ring: Ring | None) -> None:
    """Have what this process's engines do noted into another ring: of several cores, that of the one that goes on."""
    _rings[:] = [] if ring is None else [ring]


def _swap_engines(engines: Engines, *, is_on: bool) -> None:
    for one, noting in zip(engines, (_noting_tile_manager, _noting_counter, _noting_idma), strict=True):
        swap_class(one, noting, is_on=is_on)


def _note(kind: Kind, start_ns: int, end_ns: int, *fields: int) -> None:
    for ring in _rings:
        ring.note(kind, start_ns, end_ns, *fields)


def _note_use(tile_manager: TileManager) -> None:
    now_ns = monotonic_ns()
    _note(Kind.TCM, now_ns, now_ns, *tile_manager.used_bytes, cycles.current().cycles)


def _note_wait(idma: Idma, start_ns: int, before: int) -> None:
    end_ns = monotonic_ns()
    _note(Kind.DMA_WAIT, start_ns, end_ns, before, idma.counter.cycles)
    _note_completed(idma, end_ns)


def _note_completed(idma: Idma, end_ns: int = 0) -> None:
    copies = _copies.get(id(idma), {})
    if len(copies) == len(idma.queue):
        return
    left = {one.handle for one in idma.queue}
    for handle in [handle for handle in copies if handle not in left]:
        issued_ns, start, end, size_bytes, lane = copies.pop(handle)
        _note(Kind.COPY, issued_ns, end_ns or monotonic_ns(), start, end, size_bytes, lane)


@cache
def _noting_core(kind: Any) -> type:
    """Over a core's class: what surrounds each op."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def _run(self, slot: int) -> None:
            # The history has the op itself; an event says which of the others were inside it.
            ring = _rings[0]
            newest, counter, start_ns = ring.newest, self.engines.counter, monotonic_ns()
            before = counter.cycles
            (sequence,) = SUBMITTED.unpack_from(self._map, self._records + slot * SLOT_RECORD_BYTES)
            super()._run(slot)
            if ring.newest != newest:
                ring.note(Kind.RUN, start_ns, monotonic_ns(), sequence, before, counter.cycles)

        def _end(self) -> None:  # of an op in C that has called the runtime
            ran = self._lib.hbrt_core_ran(self._core)
            (sequence,) = SUBMITTED.unpack_from(self._map, self._records + ran.slot * SLOT_RECORD_BYTES)
            super()._end()
            _note(Kind.RUN, ran.start_ns, ran.done_ns, sequence, self._adopted_cycles, self.engines.counter.cycles)

        def use_engines(self, *engines: Any) -> None:
            _swap_engines(Engines(*engines), is_on=True)
            super().use_engines(*engines)

    return Noting


@cache
def _noting_counter(kind: Any) -> type:
    """Over a counter's class: the stalls."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def charge_ddr(self, size_bytes: int) -> None:
            before = self.cycles
            super().charge_ddr(size_bytes)
            now_ns = monotonic_ns()
            _note(Kind.STALL, now_ns, now_ns, before, self.cycles, size_bytes)

        def charge_overlapped(self, elements: int, lanes: int, instructions: int, size_bytes: int) -> None:
            before = self.cycles
            super().charge_overlapped(elements, lanes, instructions, size_bytes)
            now_ns = monotonic_ns()
            _note(Kind.COPY, now_ns, now_ns, before, before + cycles.idma_cycles(size_bytes), size_bytes)

    return Noting


@cache
def _noting_tile_manager(kind: Any) -> type:
    """Over a tile manager's class: the bytes in use."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def allocate(self, *given: Any, **options: Any) -> memoryview:
            view: memoryview = super().allocate(*given, **options)
            _note_use(self)
            return view

        def _remove(self, bank: int, offset_bytes: int) -> None:
            super()._remove(bank, offset_bytes)
            _note_use(self)

        def reset(self) -> list[Any]:
            freed: list[Any] = super().reset()
            _note_use(self)
            return freed

    return Noting


@cache
def _noting_idma(kind: Any) -> type:
    """Over an engine's class: copies from their issue to their completion, and waits."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def enqueue(self, dst: memoryview, src: memoryview, shape: Shape | None = None, where: str = "") -> int:
            handle: int = super().enqueue(dst, src, shape, where)
            copies = _copies.setdefault(id(self), {})
            lanes = {copy[4] for copy in copies.values()}
            lane = next(lane for lane in range(len(lanes) + 1) if lane not in lanes)
            one = self.queue[-1]
            rows = 1 if shape is None else shape.num_rows
            start = one.end_cycle - cycles.idma_cycles(one.size_bytes, rows)
            copies[handle] = monotonic_ns(), start, one.end_cycle, one.size_bytes, lane
            _note_completed(self)  # a relaxed engine may complete others meanwhile
            return handle

        def wait(self, handle: int) -> None:
            begin = monotonic_ns(), self.counter.cycles
            super().wait(handle)
            _note_wait(self, *begin)

        def wait_all(self) -> None:
            begin = monotonic_ns(), self.counter.cycles
            super().wait_all()
            if _copies.get(id(self)):  # else it was one wait
                _note_wait(self, *begin)

        def desc_done(self, handle: int) -> bool:
            is_done: bool = super().desc_done(handle)
            if is_done:
                _note_completed(self)
            return is_done

        def poll(self) -> int:
            outstanding: int = super().poll()
            _note_completed(self)
            return outstanding

        def drain(self) -> list[Any]:
            left: list[Any] = super().drain()
            _note_completed(self)
            return left

    return Noting
