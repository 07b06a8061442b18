"""Looking a little before sleeping: adaptive, yielding, settable, never where it can only hurt.

A doorbell wakes a sleeper in about 20 us across two CPUs; a peer that is about to answer does so in less. So a waiter
looks for a while first. On a single CPU the peer cannot run while the waiter looks, so there it never does; and a
waiter whose looks were in vain skips more and more of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from hbrt import settings

ADAPTIVE_NS = 60_000
LOOKS_PER_YIELD = 16
MOST_SKIPPED = 64


def usable_cpus() -> int:
    """CPUs that this process may run on: its affinity, not the machine's count."""
    return len(os.sched_getaffinity(0))


class Spinner:
    """One waiter's habit of looking before it sleeps."""

    def __init__(self) -> None:
        configured_us = settings.integer("HBRT_SPIN_US")
        self.budget_ns = ADAPTIVE_NS if configured_us < 0 else configured_us * 1000
        if usable_cpus() == 1:
            self.budget_ns = 0
        self._misses = 0
        self._skip = 0
        self._barrier = threading.Lock()

    def spin(self, ready: Callable[[], bool]) -> bool:
        """Look until ``ready`` or the budget is spent; True when ready."""
        if not self.budget_ns:
            return False
        if self._skip:
            self._skip -= 1
            return False
        now = time.monotonic_ns
        deadline = now() + self.budget_ns
        while True:
            for _ in range(LOOKS_PER_YIELD):
                if ready():
                    self._misses = 0
                    return True
            if now() > deadline:
                break
            os.sched_yield()
        self._misses += 1
        self._skip = min(1 << self._misses, MOST_SKIPPED)
        return False

    def fence(self) -> None:
        """Order this thread's writes before its later reads: an uncontended lock is an atomic read-modify-write."""
        self._barrier.acquire()
        self._barrier.release()
