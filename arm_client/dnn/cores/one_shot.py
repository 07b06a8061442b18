"""A one-shot event."""

from __future__ import annotations

import threading


class OneShot:
    """An event that is set once: a single lock, at half the cost of threading.Event.

    Once it is set, each thread that passes the lock releases it for the next one. Releasing a free lock is harmless, so
    a thread interrupted at any point releases it as well.

    Attributes:
        is_set: Whether it is set. An attribute, since a call could be interrupted.
    """

    __slots__ = ("_lock", "is_set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.is_set = False

    def set(self) -> None:
        """Set it, and wake the waiting threads. Once."""
        self.is_set = True
        try:  # noqa: SIM105 - suppress() is a call, after which an interrupt may come
            self._lock.release()
        except RuntimeError:
            pass  # a waiting thread saw it set and was faster

    def wait(self, seconds: float) -> bool:
        """Wait, forever with -1; returns whether it is set."""
        is_over = self.is_set
        if is_over:
            return True
        try:
            self._lock.acquire(timeout=seconds)
        finally:  # no Python call between the two, since an interrupt comes after a call
            if self.is_set:
                try:  # noqa: SIM105 - as above
                    self._lock.release()
                except RuntimeError:
                    pass
        return self.is_set
