"""Doorbells: eventfds that wake a sleeping core or client. How one is rung, and emptied, without waiting."""

from __future__ import annotations

import contextlib
import os
import select


def ring(doorbell: int) -> None:
    """Ring a doorbell; a closed one belonged to a process that is gone."""
    try:  # noqa: SIM105 - the hot path: a context manager costs, this does not
        os.eventfd_write(doorbell, 1)
    except OSError:
        pass


def has_room(doorbell: int) -> bool:
    """Whether a ring would return at once: the holder of a doorbell can fill its counter, and then a ring waits."""
    try:
        return bool(select.select([], [doorbell], [], 0)[1])
    except OSError:
        return True  # closed: a ring fails, and does not wait


def empty(doorbell: int) -> None:
    """Take all rings out of a doorbell; a ring that waits for room goes through, and the next one wakes again."""
    with contextlib.suppress(OSError):
        if select.select([doorbell], [], [], 0)[0]:
            os.eventfd_read(doorbell)
