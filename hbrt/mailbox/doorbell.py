"""Doorbells: eventfds that wake a sleeping core or client, rung and emptied without blocking."""

from __future__ import annotations

import contextlib
import os
import select


def ring(doorbell: int) -> None:
    """Ring a doorbell; ignores a closed one, whose process is gone."""
    try:  # noqa: SIM105 - the hot path: a context manager costs, this does not
        os.eventfd_write(doorbell, 1)
    except OSError:
        pass


def has_room(doorbell: int) -> bool:
    """Whether a ring would return at once: a doorbell's holder can fill its counter, which makes rings block."""
    try:
        return bool(select.select([], [doorbell], [], 0)[1])
    except OSError:
        return True  # closed: a ring fails without blocking


def empty(doorbell: int) -> None:
    """Clear a doorbell; a ring blocked by a full counter then completes, and the next one wakes again."""
    with contextlib.suppress(OSError):
        if select.select([doorbell], [], [], 0)[0]:
            os.eventfd_read(doorbell)
