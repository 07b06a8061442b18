"""The two virtual BPU cores: a thread each. Who runs next: larger priority, then smaller customId, then submission.

255 is the largest priority and so goes before all; work that runs is not put aside for it, only a release ends it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

CORE_COUNT = 2
ALL_CORES = (1 << CORE_COUNT) - 1


class Work(Protocol):
    """What a core runs."""

    @property
    def core_mask(self) -> int:
        """Cores that may run it; bit i is core i."""

    @property
    def order(self) -> tuple[int, int, int]:
        """The smallest runs first."""

    def run(self, core: int) -> None:
        """Run to the end; may not raise."""


class Bpu:
    """Both cores, and what waits for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: list[Work] = []
        self._idle: list[int] = []
        self._inboxes: list[SimpleQueue[Work | None]] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def submit(self, work: Work) -> None:
        """Run it on the first core that is free and may; else keep it until one is."""
        with self._lock:
            if not self._threads:
                self._start()
            for core in self._idle:
                if work.core_mask >> core & 1:
                    self._idle.remove(core)
                    break
            else:
                self._ready.append(work)
                return
        self._inboxes[core].put(work)

    def cancel(self, work: Work) -> bool:
        """Take back what no core has begun; whether that was so."""
        with self._lock:
            try:
                self._ready.remove(work)
            except ValueError:
                return False
            return True

    def current_core(self) -> int:
        """The core whose thread calls this; -1 for every other thread."""
        here = threading.current_thread()
        return self._threads.index(here) if here in self._threads else -1

    def close(self, give_up: Callable[[], None]) -> None:
        """End the threads; ``give_up`` is called first, and ends what runs."""
        with self._lock:
            self._is_closed = True
            self._ready.clear()
        give_up()
        for inbox in self._inboxes:
            inbox.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_ENDING_S)

    def _start(self) -> None:
        for core in range(CORE_COUNT):
            self._inboxes.append(SimpleQueue())
            thread = threading.Thread(target=self._serve, args=(core,), name=f"hbrt-bpu-{core}", daemon=True)
            self._threads.append(thread)
            self._idle.append(core)
            thread.start()

    def _serve(self, core: int) -> None:
        inbox = self._inboxes[core]
        while (work := inbox.get()) is not None:
            following: Work | None = work
            while following is not None:
                following.run(core)
                following = self._next(core)

    def _next(self, core: int) -> Work | None:
        """The best of what waits for this core; None when there is nothing, and the core is idle."""
        with self._lock:
            mine = [work for work in self._ready if work.core_mask >> core & 1]
            if not mine:
                self._idle.append(core)
                return None
            best = min(mine, key=lambda work: work.order)
            self._ready.remove(best)
            return best


_ENDING_S = 10.0
