"""A one-shot event."""

from __future__ import annotations

import threading


class Latch:
    """Something that happens once, and that threads wait for: one lock, at half the price of threading.Event."""

    __slots__ = ("_lock", "has_come")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.has_come = False

    def come(self) -> None:
        """It happens now. Once."""
        self.has_come = True
        self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait, -1 for ever; whether it has happened."""
        if self.has_come:
            return True
        if not self._lock.acquire(timeout=seconds):
            return False
        self._lock.release()  # for the next one who waits
        return True
