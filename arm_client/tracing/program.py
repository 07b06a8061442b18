"""The ring into which this program notes its calls, for the parts of it that no session has: its models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.trace.ring import Ring

listeners: list[Callable[[Ring | None], None]] = []
"""Called with the ring when a session's trace begins, and with None when it ends."""
rings: list[Ring] = []
"""The ring of the session that was traced last, for a listener that comes later; empty while none is."""


def follow(ring: Ring | None) -> None:
    """Have the listeners note into the ring of a session from now on, or with None no more."""
    rings[:] = [] if ring is None else [ring]
    for listener in listeners:
        listener(ring)
