"""The two virtual BPU cores: a thread each. Who runs next: larger priority, then smaller customId, then submission.

255 is the largest priority and so goes before all; work that runs is not put aside for it, only a release ends it.

Waking a core's thread and being woken by it takes longer than a tiny model. A thread that waits for assigned work may
therefore run it inline, as long as the core's own thread has not begun it; the core is as busy as otherwise.

The thread that runs inline may be the main one, in which Ctrl-C raises after any call, also after one in here. So what
belongs together changes without a call in between (``del`` and item assignment, then one call), and can be done twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

CORE_COUNT = 2
ALL_CORES = (1 << CORE_COUNT) - 1


class Work(Protocol):
    """What a core runs.

    Attributes:
        is_submitted: Set when the cores have it; an interrupt may come before.
    """

    is_submitted: bool

    @property
    def core_mask(self) -> int:
        """Cores that may run it; bit i is core i."""

    @property
    def order(self) -> tuple[int, int, int]:
        """The smallest runs first."""

    def run(self, core: int) -> None:
        """Run to the end; may not raise in a core's own thread."""

    def interrupted(self, error: BaseException) -> None:
        """The thread that runs it inline was interrupted, perhaps before it ran: end it if it has not ended."""


class Bpu:
    """Both cores, and what waits for them."""

    def __init__(self, most: int = CORE_COUNT) -> None:
        """``most`` above the number of cores: threads that only wait for the board's cores, where the order is made."""
        self._most = most
        self._lock = threading.Lock()
        self._ready: list[Work] = []
        self._idle: dict[int, bool] = {}  # cores, those that are idle for the longest time first
        self._assigned: dict[int, Work] = {}  # by core: what it is to run next, and no thread has begun
        self._inline: dict[int, Work] = {}  # by core: what another thread than its own runs
        self._running_on: dict[int, int] = {}  # core by thread
        self._bells: list[SimpleQueue[bool]] = []  # of the cores' threads; False ends one
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        # While a trace is on: called with a core and its work when it begins, and what it returns at the end.
        self.on_run: Callable[[int, Work], Callable[[], None]] | None = None

    def submit(self, work: Work, *, is_awaited: bool = False) -> None:
        """Run it on the first core that is free and may; else keep it until one is.

        Args:
            work: The work.
            is_awaited: The calling thread next calls ``run_inline`` or ``cancel``: the core's own need not wake.
        """
        with self._lock:
            if not self._threads or (not self._idle and len(self._threads) < self._most):
                self._start()
            for core in self._idle:
                if self._may_run(core, work):
                    del self._idle[core]
                    self._assigned[core] = work
                    work.is_submitted = True
                    if not is_awaited:
                        self._bells[core].put(True)
                    return
            work.is_submitted = True
            self._ready.append(work)

    def ring(self, work: Work) -> None:
        """Have the core's own thread run what was submitted as awaited, unless another does."""
        with self._lock:
            for core, assigned in self._assigned.items():
                if assigned is work:
                    self._bells[core].put(True)

    def run_inline(self, work: Work) -> bool:
        """Run assigned work in the calling thread; False when it is assigned to no core, or a core has begun it.

        What interrupts the thread (Ctrl-C) is raised when the work has ended and the core has gone on.
        """
        core = -1
        try:
            with self._lock:
                for core, assigned in self._assigned.items():
                    if assigned is work and not self._is_closed:
                        del self._assigned[core]
                        self._inline[core] = work
                        break
                else:
                    return False
            self._run(core, work)
            self._go_on(core, work)
        except BaseException as error:
            if self._inline.get(core) is work:
                work.interrupted(error)
                self._go_on(core, work)
            if core >= 0:
                self._bells[core].put(True)  # perhaps it was not rung; once more does no harm
            raise
        return True

    def cancel(self, work: Work) -> bool:
        """Take back what no core has begun; whether that was so."""
        core = -1
        try:
            with self._lock:
                core = next((core for core, assigned in self._assigned.items() if assigned is work), -1)
                if core >= 0:
                    del self._assigned[core]
                    self._inline[core] = work
                elif work in self._ready:
                    self._ready.remove(work)
                else:
                    return False
        finally:  # also on Ctrl-C: the core goes on
            if core >= 0:
                self._go_on(core, work)
        return True

    def current_core(self) -> int:
        """The core that the calling thread runs something for; -1 for every other thread."""
        return self._running_on.get(threading.get_ident(), -1)

    def is_own_thread(self) -> bool:
        """Whether the calling thread is a core's own, and not one that runs inline."""
        return threading.current_thread() in self._threads

    def close(self, give_up: Callable[[], None]) -> None:
        """End the threads; ``give_up`` is called first, and ends what runs."""
        with self._lock:
            self._is_closed = True
            self._ready.clear()
        give_up()
        for bell in self._bells:
            bell.put(False)
        end_s = time.monotonic() + _ENDING_S
        while self._inline and threading.get_ident() not in self._running_on and time.monotonic() < end_s:
            time.sleep(_LOOK_S)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_ENDING_S)

    def _start(self) -> None:
        for core in range(len(self._threads), min(len(self._threads) + CORE_COUNT, self._most)):
            self._bells.append(SimpleQueue())
            thread = threading.Thread(target=self._serve, args=(core,), name=f"hbrt-bpu-{core}", daemon=True)
            self._threads.append(thread)
            self._idle[core] = True
            thread.start()

    def _serve(self, core: int) -> None:
        bell = self._bells[core]
        while bell.get():
            with self._lock:
                following = self._assigned.pop(core, None)  # None: another thread runs it inline
            while following is not None:
                self._run(core, following)
                following = self._next(core)

    def _run(self, core: int, work: Work) -> None:
        here = threading.get_ident()
        before = self._running_on.get(here, -1)  # a layer may wait for another model
        self._running_on[here] = core
        end = None if self.on_run is None else self.on_run(core, work)
        try:
            work.run(core)
        finally:
            if end is not None:
                end()
            if before < 0:
                del self._running_on[here]
            else:
                self._running_on[here] = before

    def _next(self, core: int) -> Work | None:
        """The best of what waits for this core; None when there is nothing, and the core is idle."""
        with self._lock:
            best = self._best(core)
            if best is None:
                self._idle[core] = True
            else:
                self._ready.remove(best)
            return best

    def _go_on(self, core: int, work: Work) -> None:
        """After an inline run: the core's own thread runs the best of what waits, or is idle. Again does nothing."""
        with self._lock:
            if self._inline.get(core) is not work:
                return
            best = self._best(core)
            del self._inline[core]
            if best is None:
                self._idle[core] = True
                return
            self._assigned[core] = best
            self._ready.remove(best)
        self._bells[core].put(True)

    def _may_run(self, core: int, work: Work) -> bool:
        return self._most > CORE_COUNT or bool(work.core_mask >> core & 1)

    def _best(self, core: int) -> Work | None:
        mine = [work for work in self._ready if self._may_run(core, work)]
        return min(mine, key=lambda work: work.order) if mine else None


_ENDING_S = 10.0
_LOOK_S = 0.0005
