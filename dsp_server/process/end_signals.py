"""Signals that end a server of ours: its loop wakes and is told, and the handlers before come back afterwards."""

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
    """Have END_SIGNALS call ``stop()`` and wake the loop; one that the starter had ignored stays ignored.

    After one came they stay ignored: the process is about to end in order, and another one must not cut that short.
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
