"""The ring in which this program records its calls, for parts that have no session: its models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.trace.ring import Ring

listeners: list[Callable[[Ring | None], None]] = []
"""Called with the ring when a session's trace starts, and with None when it stops."""
rings: list[Ring] = []
"""The ring of the session traced last, for listeners added later; empty if none is traced."""


def follow(ring: Ring | None) -> None:
    """Make the listeners record into a session's ring from now on; None stops them."""
    rings[:] = [] if ring is None else [ring]
    for listener in listeners:
        listener(ring)
