"""The event loop of the daemon's only thread, with descriptors and timers in one epoll, and its ending signals.

The loop sleeps until a descriptor is ready or the next timer is due; it has no tick of its own. The signals stop it;
afterwards the previous handlers are restored.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

Handler: TypeAlias = Callable[[], object]
MAX_DEFECTS = 100  # a daemon that keeps failing exits instead of spinning
END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Timer:
    """A call to make later."""

    __slots__ = ("_call", "due")

    def __init__(self, due: float, call: Handler) -> None:
        self.due = due
        self._call: Handler | None = call

    def cancel(self) -> None:
        """Cancel the call; no effect if it was already made or canceled."""
        self._call = None

    def fire(self) -> None:
        """Make the call, once."""
        call, self._call = self._call, None
        if call is not None:
            call()

    @property
    def is_waiting(self) -> bool:
        """Whether the call has yet to be made."""
        return self._call is not None


class Loop:
    """Watched descriptors and timers."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Handler] = {}
        self._writers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._defects = 0
        # Receives the traceback of a handler that raises; only that event is lost. If unset, exceptions end the loop.
        self.on_defect: Callable[[str], None] | None = None

    def watch(self, fd: int, handler: Handler, *, is_read: bool = True) -> None:
        """Call ``handler`` when the descriptor is readable (if ``is_read``), or its other end has been closed."""
        self._epoll.register(fd, select.EPOLLIN if is_read else 0)
        self._readers[fd] = handler

    def unwatch(self, fd: int) -> None:
        """Undo ``watch`` if the descriptor is watched; call this before closing the descriptor."""
        self._writers.pop(fd, None)
        if self._readers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def is_watched(self, fd: int) -> bool:
        """Whether the descriptor is watched."""
        return fd in self._readers

    def when_writable(self, fd: int, handler: Handler, *, is_read: bool = True) -> None:
        """Call ``handler`` once, when the watched descriptor becomes writable.

        Args:
            fd: The descriptor.
            handler: The function that writes.
            is_read: Whether to handle input meanwhile; if not, only the closing of the other end is handled.
        """
        if fd in self._readers:
            self._writers[fd] = handler
            self._epoll.modify(fd, select.EPOLLOUT | (select.EPOLLIN if is_read else 0))

    def later(self, seconds: float, call: Handler) -> Timer:
        """Make a call once, after this many seconds."""
        timer = Timer(time.monotonic() + seconds, call)
        heapq.heappush(self._timers, (timer.due, next(self._count), timer))
        return timer

    def step(self) -> None:
        """Sleep until a descriptor is ready or a timer is due, and handle it."""
        # Look up all handlers before running any: a handler may close a descriptor whose number is then reused, and the
        # old descriptor's event must not reach the new one's handler.
        events = [(fd, mask, self._readers.get(fd)) for fd, mask in self._epoll.poll(self._patience())]
        for fd, mask, reader in events:
            if reader is None or self._readers.get(fd) is not reader:
                continue
            if mask & select.EPOLLOUT and (writer := self._writers.pop(fd, None)) is not None:
                self._epoll.modify(fd, select.EPOLLIN)
                self._call(writer)
            if mask & ~select.EPOLLOUT and self._readers.get(fd) is reader:
                self._call(reader)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            self._call(heapq.heappop(self._timers)[2].fire)

    def _call(self, handler: Handler) -> None:
        try:
            handler()
        except Exception:
            self._defects += 1
            if self.on_defect is None or self._defects > MAX_DEFECTS:
                raise
            import traceback

            self.on_defect(traceback.format_exc())

    def close(self) -> None:
        """Drop all descriptors and timers."""
        self._readers.clear()
        self._writers.clear()
        self._timers.clear()
        self._epoll.close()

    def _patience(self) -> float | None:
        while self._timers and not self._timers[0][2].is_waiting:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None


class Watching(Protocol):
    """An event loop that can watch descriptors."""

    def watch(self, fd: int, handler: Callable[[], None], /) -> None:
        """Call ``handler`` while the descriptor is readable."""

    def unwatch(self, fd: int, /) -> None:
        """Undo ``watch``."""


@contextlib.contextmanager
def ended_by_signals(loop: Watching, stop: Callable[[], object]) -> Iterator[None]:
    """Make END_SIGNALS call ``stop()`` and wake the loop; a signal that the starter ignores stays ignored.

    After the first signal all of them are ignored, so that another one cannot interrupt the orderly shutdown.
    """
    has_come = False

    def on_signal(*_: object) -> None:
        nonlocal has_come
        has_come = True
        stop()

    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def drain() -> None:
        os.read(wake_read, 512)

    loop.watch(wake_read, drain)
    before_wakeup = signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    before = {
        number: signal.signal(number, on_signal)
        for number in END_SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN  # as nohup(1) requests
    }
    try:
        yield
    finally:
        signal.set_wakeup_fd(before_wakeup)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if has_come else handler)
        loop.unwatch(wake_read)
        os.close(wake_read)
        os.close(wake_write)
