"""A one-shot event."""

from __future__ import annotations

import threading


class Latch:
    """Something that happens once, and that threads wait for: one lock, at half the price of threading.Event.

    Once it has happened the lock is only a door that each who came through opens for the next one. To open an open
    door does no harm, so whoever is interrupted on the way, wherever that is, opens it all the same.
    """

    __slots__ = ("_lock", "has_come")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.has_come = False

    def come(self) -> None:
        """It happens now. Once."""
        self.has_come = True
        try:  # noqa: SIM105 - suppress() is a call, after which an interrupt may come
            self._lock.release()
        except RuntimeError:
            pass  # one who waited saw it come, and was quicker

    def wait(self, seconds: float) -> bool:
        """Wait, -1 for ever; whether it has happened."""
        is_over = self.has_come
        if is_over:
            return True
        try:
            self._lock.acquire(timeout=seconds)
        finally:  # no call of ours between the two: an interrupt comes after a call
            if self.has_come:
                try:  # noqa: SIM105 - as above
                    self._lock.release()
                except RuntimeError:
                    pass
        return self.has_come
