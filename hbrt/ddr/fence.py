"""A full fence between the accesses of one thread to shared memory."""

from __future__ import annotations

import threading


class Fence:
    """Orders the writes of a thread before its later reads, for every process that maps the memory.

    The fence takes its own lock and frees it; each is an atomic read-modify-write. No thread ever waits for the
    lock: if another thread, or a call interrupted by a signal handler, holds it, releasing it is enough, and the next
        thread to take it gets its ordering from that.

    ``enter`` and ``leave`` are the two halves, for the few lines where a call costs too much. A caller with signal
    handlers that may raise writes them as ``full`` does.
    """

    __slots__ = ("enter", "leave")

    def __init__(self) -> None:
        lock = threading.Lock()
        self.enter, self.leave = lock.acquire, lock.release

    def full(self) -> None:
        """Order this thread's writes before its later reads."""
        try:
            self.enter(False)
        finally:  # even if a signal handler raises here: a lock left taken would no longer order anything
            try:  # noqa: SIM105 - a context manager would be another place to be interrupted in
                self.leave()
            except RuntimeError:
                pass
