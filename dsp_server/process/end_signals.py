"""Signals that end a server: they stop its loop, and the earlier handlers are restored afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Protocol

END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Watching(Protocol):
    """A loop that watches descriptors."""

    def watch(self, fd: int, handler: Callable[[], None], /) -> None:
        """Call ``handler`` while the descriptor is readable."""

    def unwatch(self, fd: int, /) -> None:
        """Undo ``watch``."""


@contextlib.contextmanager
def ended_by_signals(loop: Watching, stop: Callable[[], object]) -> Iterator[None]:
    """Make END_SIGNALS call ``stop()`` and wake the loop; a signal that the starter ignores stays ignored.

    After the first signal all are ignored: the process is ending in order, and another signal must not interrupt that.
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
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup(1) asks for that
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
