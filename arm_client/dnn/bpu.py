"""The two virtual BPU cores: a thread each. Who runs next: larger priority, then smaller customId, then submission.

255 is the largest priority and so goes before all; work that runs is not put aside for it, only a release ends it.

Waking a core's thread and being woken by it takes longer than a tiny model. Who waits for work that a core was given,
and whose thread has not begun it, may therefore lend the core its own thread; the core is as busy as otherwise.
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
        self._given: dict[int, Work] = {}  # by core: what it has been given, and nobody has begun
        self._running_on: dict[int, int] = {}  # core by thread
        self._bells: list[SimpleQueue[bool]] = []  # of the cores' threads; False ends one
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
                    self._given[core] = work
                    break
            else:
                self._ready.append(work)
                return
        self._bells[core].put(True)

    def lend(self, work: Work) -> bool:
        """Run in the calling thread what a core was given and has not begun; False when there is no such core."""
        with self._lock:
            core = next((core for core, given in self._given.items() if given is work), -1)
            if core < 0:
                return False
            del self._given[core]
        try:
            self._run(core, work)
        finally:
            following = self._next(core)
            if following is not None:
                with self._lock:
                    self._given[core] = following
                self._bells[core].put(True)
        return True

    def cancel(self, work: Work) -> bool:
        """Take back what no core has begun; whether that was so."""
        with self._lock:
            try:
                self._ready.remove(work)
            except ValueError:
                return False
            return True

    def current_core(self) -> int:
        """The core that the calling thread runs something for; -1 for every other thread."""
        return self._running_on.get(threading.get_ident(), -1)

    def is_own_thread(self) -> bool:
        """Whether the calling thread is a core's own, and not one that was lent."""
        return threading.current_thread() in self._threads

    def close(self, give_up: Callable[[], None]) -> None:
        """End the threads; ``give_up`` is called first, and ends what runs."""
        with self._lock:
            self._is_closed = True
            self._ready.clear()
        give_up()
        for bell in self._bells:
            bell.put(False)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_ENDING_S)

    def _start(self) -> None:
        for core in range(CORE_COUNT):
            self._bells.append(SimpleQueue())
            thread = threading.Thread(target=self._serve, args=(core,), name=f"hbrt-bpu-{core}", daemon=True)
            self._threads.append(thread)
            self._idle.append(core)
            thread.start()

    def _serve(self, core: int) -> None:
        bell = self._bells[core]
        while bell.get():
            with self._lock:
                following = self._given.pop(core, None)  # None: another thread was lent for it
            while following is not None:
                self._run(core, following)
                following = self._next(core)

    def _run(self, core: int, work: Work) -> None:
        here = threading.get_ident()
        before = self._running_on.get(here, -1)  # a layer may wait for another model
        self._running_on[here] = core
        try:
            work.run(core)
        finally:
            if before < 0:
                del self._running_on[here]
            else:
                self._running_on[here] = before

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
