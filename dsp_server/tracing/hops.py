"""What a relay and a gateway note while their board is traced: tasks that pass, and bytes of remote programs."""

from __future__ import annotations

from functools import cache
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import REQUEST, Request
from hbrt.protocol.relay import REQUEST_AT
from hbrt.trace.kinds import Kind
from hbrt.trace.swap import swap_class

if TYPE_CHECKING:
    from hbrt.trace.ring import Ring


def follow_relay(dispatcher: Any, ring: Ring | None) -> None:
    """Have a relay's dispatcher note into a ring from now on, or with None no more."""
    dispatcher.noting_ring = ring
    swap_class(dispatcher, _noting_dispatcher, is_on=ring is not None)


def follow_gateway(client: Any, ring: Ring | None) -> None:
    """As ``follow_relay``, for the client of a remote program."""
    client.noting_ring = ring
    swap_class(client, _noting_client, is_on=ring is not None)


def _note(one: Any, start_ns: int, text: str, size_bytes: int, request: Request | None = None) -> None:
    ring: Ring | None = one.noting_ring
    if ring is not None:
        sequence, client = (request.sequence, request.client) if request is not None else (0, 0)
        ring.note(Kind.HOP, start_ns, monotonic_ns(), sequence, size_bytes, unit=client, text=ring.text(text))


@cache
def _noting_dispatcher(kind: Any) -> type:
    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def dispatch(self, raw: bytes) -> Any:
            start_ns = monotonic_ns()
            result = super().dispatch(raw)
            if result.name == "QUEUED":
                _note(self, start_ns, "relay", len(raw), Request(*REQUEST.unpack_from(raw, REQUEST_AT)))
            return result

    return Noting


@cache
def _noting_client(kind: Any) -> type:
    class Noting(kind):  # type: ignore[misc]  # of a class that is known later
        __slots__ = ()

        def _on_frame(self, raw: bytes) -> None:
            start_ns = monotonic_ns()
            super()._on_frame(raw)
            _note(self, start_ns, "from the program", len(raw))

        def _on_submit(self, raw: bytes) -> None:
            start_ns = monotonic_ns()
            count = len(self._numbers)
            super()._on_submit(raw)
            if len(self._numbers) > count:
                newest = next(reversed(self._numbers))
                _note(self, start_ns, "submit", len(raw), self._tasks.mailbox.request(newest & SLOT_MASK))

        def _send(self, frame: bytes) -> None:
            start_ns = monotonic_ns()
            super()._send(frame)
            _note(self, start_ns, "to the program", len(frame))

    return Noting
