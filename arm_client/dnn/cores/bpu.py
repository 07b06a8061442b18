"""The order of this process's tasks, and the threads that run them.

Tasks that this process runs itself take turns on two cores, ordered by larger priority, then smaller customId, then
submission. 255 is the largest priority and goes first; it does not preempt running work, which only a release ends.
Work on the board's cores is not ordered here: their mailbox orders it across all programs.

Waking a thread and being woken by it takes longer than a tiny model. So a thread waiting for the next work may run it
itself, unless another thread has started it.

That may be the main thread, in which Ctrl-C can raise after any call, including calls in here. So related
state changes without a call in between (``del`` and item assignment, then one call), and each change can be repeated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

CORE_COUNT = 2
ALL_CORES = (1 << CORE_COUNT) - 1
_NO_CORE = -1


class Work(Protocol):
    """A piece of work.

    Attributes:
        is_submitted: Set once it is queued; an interrupt may come before that.
        runs_elsewhere: Whether the board's cores run it, in which case it is not ordered here.
    """

    is_submitted: bool
    runs_elsewhere: bool

    @property
    def core_mask(self) -> int:
        """Cores that may run it; bit i is core i."""

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key; the smallest runs first."""

    def run(self, core: int) -> None:
        """Run to completion; must not raise in the runtime's own threads."""

    def interrupted(self, error: BaseException) -> None:
        """Handle an interrupt of the running thread, perhaps before it ran: end the work if it has not finished."""


class Bpu:
    """Both cores, the work queued for them, and the threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: list[Work] = []
        self._idle: dict[int, bool] = dict.fromkeys(range(CORE_COUNT), True)  # longest idle first
        self._assigned: dict[Work, int] = {}  # core of work whose turn has come but that no thread has started
        self._running: dict[Work, int] = {}  # core of work that a thread is running
        self._running_on: dict[int, int] = {}  # core by thread
        self._calls: SimpleQueue[Work | None] = SimpleQueue()  # work for the runtime's threads; None ends one
        self._threads: list[threading.Thread] = []
        self._free_threads = 0  # how many of those are idle
        self._is_closed = False
        # While tracing: called with a core and its work at the start; its result is called at the end.
        self.on_run: Callable[[int, Work], Callable[[], None]] | None = None

    def submit(self, work: Work, *, is_awaited: bool = False) -> None:
        """Run it on the first free and permitted core; otherwise keep it until one is free.

        Args:
            work: The work.
            is_awaited: The calling thread next calls ``run_inline`` or ``cancel``, so no other need wake.
        """
        with self._lock:
            core = _NO_CORE
            if not work.runs_elsewhere:
                core = next((one for one in self._idle if work.core_mask >> one & 1), CORE_COUNT)
            if core == CORE_COUNT:
                self._ready.append(work)
            else:
                self._idle.pop(core, None)
                self._assigned[work] = core
                if not is_awaited:
                    self._hand(work)
            work.is_submitted = True

    def ring(self, work: Work) -> bool:
        """Have a runtime thread run submitted work, unless another thread runs it; return whether it is still here."""
        with self._lock:
            if work in self._assigned:
                self._hand(work)
                return True
            return work in self._ready or work in self._running

    def run_inline(self, work: Work, free_threads: int = 0) -> bool:
        """Run work in the calling thread; returns False if it is not next, or another thread has started it.

        An interrupt of the thread (Ctrl-C) is raised once the work has ended and its core has moved on.

        Args:
            work: The work.
            free_threads: 1 for one of the runtime's own threads, which is then free for later work.
        """
        try:
            with self._lock:
                core = self._assigned.get(work, CORE_COUNT)
                if core == CORE_COUNT or self._is_closed:
                    self._free_threads += free_threads
                    return False
                del self._assigned[work]
                self._running[work] = core
            self._run(core, work)
            self._go_on(work, free_threads)
        except BaseException as error:
            if work in self._running:
                work.interrupted(error)
            self._go_on(work)
            self._ring_all()
            raise
        return True

    def cancel(self, work: Work) -> bool:
        """Withdraw work that no thread has started; returns whether that was possible."""
        try:
            with self._lock:
                if work in self._ready:
                    self._ready.remove(work)
                    return True
                core = self._assigned.get(work, CORE_COUNT)
                if core == CORE_COUNT:
                    return False
                del self._assigned[work]
                self._running[work] = core
            self._go_on(work)
        except BaseException:
            self._go_on(work)
            self._ring_all()
            raise
        return True

    def current_core(self) -> int:
        """The core that the calling thread is working for; -1 for any other thread."""
        return self._running_on.get(threading.get_ident(), _NO_CORE)

    def is_own_thread(self) -> bool:
        """Whether the calling thread is one of the runtime's own, rather than one that runs inline."""
        return threading.current_thread() in self._threads

    def close(self, give_up: Callable[[], None]) -> None:
        """End the threads; calls ``give_up`` first, which ends the running work."""
        with self._lock:
            self._is_closed = True
            self._ready.clear()
        give_up()
        for _ in self._threads:
            self._calls.put(None)
        end_s = time.monotonic() + _ENDING_S
        while self._running and threading.get_ident() not in self._running_on and time.monotonic() < end_s:
            time.sleep(_LOOK_S)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(end_s - time.monotonic(), 0))

    def _hand(self, work: Work) -> None:
        """Have a runtime thread run it; call with the lock held."""
        if self._free_threads:
            self._free_threads -= 1
            self._calls.put(work)
            return
        self._calls.put(work)
        thread = threading.Thread(target=self._serve, name=f"hbrt-dnn-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _ring_all(self) -> None:
        """Recover from an interrupt, which may have come before a thread was notified; harmless if repeated."""
        with self._lock:
            for work in self._assigned:
                self._hand(work)

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            self.run_inline(work, 1)
            del work  # an idle thread keeps no task's model and memory

    def _run(self, core: int, work: Work) -> None:
        here = threading.get_ident()
        before = self._running_on.get(here)  # a layer may wait for another model
        self._running_on[here] = core
        end = None if self.on_run is None or core == _NO_CORE else self.on_run(core, work)
        try:
            work.run(core)
        finally:
            if end is not None:
                end()
            if before is None:
                del self._running_on[here]
            else:
                self._running_on[here] = before

    def _go_on(self, work: Work, free_threads: int = 0) -> None:
        """After a run, let its core take the next queued work or become idle; does nothing if repeated."""
        with self._lock:
            core = self._running.get(work, CORE_COUNT)
            if core == CORE_COUNT:
                return
            self._free_threads += free_threads
            mine = [one for one in self._ready if one.core_mask >> core & 1] if core != _NO_CORE else []
            best = min(mine, key=lambda one: one.order) if mine else None
            del self._running[work]
            if best is not None:
                self._assigned[best] = core
                self._ready.remove(best)
                self._hand(best)
            elif core != _NO_CORE:
                self._idle[core] = True


_ENDING_S = 10.0
_LOOK_S = 0.0005
