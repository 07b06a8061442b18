"""Program threads that take turns: a thread that blocks yields its turn to another.

``install`` puts our own locks under ``threading``, ``queue`` and ``concurrent.futures``, which build all their
primitives from them, and wraps ``Thread.start``, ``Thread.join`` and ``time.sleep``. While nobody takes turns, and in
threads that do not, they behave as usual.
"""

from __future__ import annotations

import _thread
import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

_OURS: Final = tuple(f"{Path(__file__).parents[1] / name}/" for name in ("arm_client", "dsp_server", "hbrt"))


class Turns(Protocol):
    """Makes threads take turns."""

    def is_program(self) -> bool:
        """Whether this thread takes turns."""

    def acquire(self, lock: _thread.LockType, timeout_s: float) -> bool:
        """Acquire a lock held by another thread; negative for no limit."""

    def start(self, thread: threading.Thread, start: Callable[[], None]) -> None:
        """Start a thread that also takes turns."""

    def await_end(self, thread: threading.Thread, timeout_s: float | None) -> bool:
        """Wait for a thread to end; returns whether it has ended, or is about to."""

    def sleep(self, seconds: float) -> None:
        """Let a time pass."""


taken: list[Turns] = []
"""The current turn-taking scheduler, if any."""


def _mine() -> Turns | None:
    """Return the scheduler of this thread's turns, if any."""
    return taken[0] if taken and taken[0].is_program() else None


class TurnLock:
    """See ``threading.Lock``."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as threading's
        """As for ``threading.Lock``."""
        turns = _mine() if blocking else None
        if turns is None:
            return self._lock.acquire(blocking, timeout)
        return self._lock.acquire(False) or turns.acquire(self._lock, timeout)

    def release(self) -> None:
        """As for ``threading.Lock``."""
        self._lock.release()

    def locked(self) -> bool:
        """As for ``threading.Lock``."""
        return self._lock.locked()

    def _at_fork_reinit(self) -> None:
        self._lock = _thread.allocate_lock()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def install() -> None:
    """Make the standard library's threads take turns on request; at most once per process."""
    library: Any = threading
    if library.Lock is TurnLock:
        return
    # Python builds its conditions, and its pure-Python RLock and SimpleQueue, from these.
    library.Lock = library._allocate_lock = TurnLock  # noqa: SLF001
    library.RLock = library._PyRLock  # noqa: SLF001
    vars(queue)["SimpleQueue"] = vars(queue)["_PySimpleQueue"]
    start, join, sleep, numbers = threading.Thread.start, threading.Thread.join, time.sleep, itertools.count()

    def started(thread: threading.Thread) -> None:
        turns = _mine()
        if turns is None or sys._getframe(1).f_code.co_filename.startswith(_OURS):  # noqa: SLF001 - the only way
            start(thread)
        else:
            turns.start(thread, lambda: start(thread))

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        turns = _mine()
        if turns is None or turns.await_end(thread, timeout):
            join(thread, timeout)

    def slept(seconds: Any, /) -> None:
        turns = _mine()
        (sleep if turns is None or not seconds > 0 else turns.sleep)(seconds)

    def numbered(thread: threading.Thread) -> int:
        number: int = vars(thread).setdefault("_hbrt_number", next(numbers))
        return number

    library.Thread.start, library.Thread.join, time.sleep = started, joined, slept
    library.Thread.__hash__ = numbered  # an executor joins a set of threads; make the order the same in each run
