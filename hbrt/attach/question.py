"""A request to the daemon, as the thread that sends it sees it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

UNDO = {"alloc": "free", "register": "unregister", "import": "unregister"}
"""Takes the granted address, and undoes the request."""


class Question:
    """One request: whether it was sent, its result, and how to undo it when the result is not taken.

    Args:
        on_answer: Turns an answer into the result; run by the thread that receives it, before anything else.
        undo: What undoes a result that is not taken, by any thread: called with it, or makes the call of C that does.
    """

    __slots__ = ("_pending", "answer", "is_left", "on_answer", "sent", "undo")

    def __init__(self, on_answer: Callable[[Any], Any] | None = None, undo: Callable[[Any], Any] | None = None) -> None:
        # A bare lock, held until the end. threading.Event has a second one, which an interrupted thread would keep.
        self._pending = threading.Lock()
        self._pending.acquire()
        self.answer: Any = None
        self.sent: Any = [0]  # 1 from here on: it is carried out, even if its caller is interrupted
        self.is_left = False  # its caller was interrupted, or waits no more
        self.on_answer = on_answer
        self.undo = undo

    def end(self) -> None:
        """End the caller's wait: the answer is there, or none comes anymore."""
        with contextlib.suppress(RuntimeError):  # it has ended before
            self._pending.release()

    def wait(self, seconds: float) -> None:
        """Wait for ``end``, at most so long."""
        self._pending.acquire(timeout=seconds)
