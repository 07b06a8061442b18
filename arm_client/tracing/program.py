"""The calls of a program into a ring: submissions, waits, memory, flushes, requests to the daemon.

A trace gives a session's parts other classes, and takes them back at its end: without one, a call runs the same code as
if this module did not exist.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, SUBMITTED
from hbrt.trace.kinds import Kind
from hbrt.trace.swap import swap_class
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN

if TYPE_CHECKING:
    from hbrt.trace.ring import Ring

listeners: list[Callable[[Ring | None], None]] = []
"""Called with the ring when a session's trace begins, and with None when it ends: for parts of the program above."""
rings: list[Ring] = []
"""The ring of the session that was traced last, for a listener that comes later; empty while none is."""


class Noted(NamedTuple):
    """The parts of a session that note."""

    tasks: Any
    blocks: Any
    link: Any


def follow(session: Noted, ring: Ring | None) -> None:
    """Have a session note into a ring from now on, or with None no more."""
    parts = [(session.blocks, _noting_blocks), (session.link, _noting_link)]
    if not session.tasks.follow_trace(ring):
        parts.append((session.tasks, _noting_tasks))
    for one, noting in parts:
        one.noting_ring = ring
        swap_class(one, noting, is_on=ring is not None)
    rings[:] = [] if ring is None else [ring]
    for listener in listeners:
        listener(ring)


_REQUEST_HEAD = struct.Struct("<QqI")  # sequence, customId, command


@cache
def _noting_tasks(kind: Any) -> type:
    """Over a class of tasks."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def submit(self, *given: int) -> int:
            start_ns = monotonic_ns()
            handle: int = super().submit(*given)
            end_ns = monotonic_ns()
            ring: Ring | None = self.noting_ring
            if ring is None:
                return handle
            if handle > 0:
                record = self.records + (handle & SLOT_MASK) * SLOT_RECORD_BYTES
                (sequence,) = SUBMITTED.unpack_from(self.map, record)
                if sequence < start_ns:  # a task of a board on another machine has no record here, but for its wait
                    sequence = start_ns
                    _REQUEST_HEAD.pack_into(self.map, record, sequence, 0, given[0])
                ring.note(Kind.SUBMIT, start_ns, end_ns, sequence, given[0], 0, self.client_id)
            else:
                ring.note(Kind.SUBMIT, start_ns, end_ns, 0, given[0], handle)
            return handle

        def wait(self, handle: int, timeout_ms: float) -> int:
            start_ns = monotonic_ns()
            status: int = super().wait(handle, timeout_ms)
            end_ns = monotonic_ns()
            ring: Ring | None = self.noting_ring
            slot = handle & SLOT_MASK
            if ring is None or self.handles[slot] != handle:
                return status
            record, mm = self.records + slot * SLOT_RECORD_BYTES, self.map
            sequence, _, cmd = _REQUEST_HEAD.unpack_from(mm, record)
            _, _, _, _, claim_ns, _, done_ns, _ = ANSWER.unpack_from(mm, record + ANSWER_OFFSET)
            if claim_ns < sequence:  # of an earlier task in the slot
                claim_ns = 0
            if done_ns < sequence or done_ns > end_ns:
                done_ns = 0  # the task keeps running
            ring.note(Kind.WAIT, start_ns, end_ns, sequence, claim_ns, done_ns, self.client_id, 0, cmd)
            return status

        def finish(self, handle: int) -> int:
            # In two steps: a slot that was released says nothing of its task.
            return self.wait(handle, 0) or self.release(handle)

    return Noting


def _note_memory(
    ring: Ring | None, kind: Kind, start_ns: int, phy_addr: int, size_bytes: int = 0, way: str = ""
) -> None:
    if ring is not None:
        ring.note(kind, start_ns, monotonic_ns(), phy_addr, size_bytes, text=ring.text(way))


@cache
def _noting_blocks(kind: Any) -> type:
    """Over a class of blocks."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def alloc(self, size_bytes: int, **options: Any) -> Any:
            start_ns = monotonic_ns()
            block = super().alloc(size_bytes, **options)
            _note_memory(self.noting_ring, Kind.ALLOC, start_ns, block.phy_addr, size_bytes)
            return block

        def free(self, phy_addr: int, *given: Any) -> None:
            start_ns = monotonic_ns()
            super().free(phy_addr, *given)
            _note_memory(self.noting_ring, Kind.FREE, start_ns, phy_addr)

        def flush(self, phy_addr: int, size_bytes: int, flag: int) -> None:
            start_ns = monotonic_ns()
            super().flush(phy_addr, size_bytes, flag)
            way = "clean" if flag == HB_SYS_MEM_CACHE_CLEAN else "invalidate"
            _note_memory(self.noting_ring, Kind.FLUSH, start_ns, phy_addr, size_bytes, way)

    return Noting


@cache
def _noting_link(kind: Any) -> type:
    """Over a class of links."""

    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def request(self, verb: str, *given: Any, **args: Any) -> Any:
            start_ns = monotonic_ns()
            try:
                return super().request(verb, *given, **args)
            finally:
                ring: Ring | None = self.noting_ring
                if ring is not None:
                    ring.note(Kind.ASK, start_ns, monotonic_ns(), text=ring.text(verb))

        if hasattr(kind, "submit"):  # to a board on another machine

            def submit(self, raw: bytes) -> None:
                start_ns = monotonic_ns()
                super().submit(raw)
                ring: Ring | None = self.noting_ring
                if ring is not None:
                    ring.note(Kind.HOP, start_ns, monotonic_ns(), 0, len(raw), text=ring.text("to the gateway"))

    return Noting
