"""A request to the daemon, as seen by the sending thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

UNDO = {"alloc": "free", "register": "unregister", "import": "unregister"}
"""Undoes a request, given the granted address."""


class Question:
    """One request: whether it was sent, its result, and how to undo it if nobody takes the result.

    Args:
        on_answer: Turns an answer into the result; called first by the thread that receives it.
        undo: Undoes a result that nobody takes, from any thread: called with the result, or creates the C call that
            does it.
    """

    __slots__ = ("_pending", "answer", "is_left", "on_answer", "sent", "undo")

    def __init__(self, on_answer: Callable[[Any], Any] | None = None, undo: Callable[[Any], Any] | None = None) -> None:
        # A bare lock, held until the end: threading.Event has a second one, which an interrupted thread would keep.
        self._pending = threading.Lock()
        self._pending.acquire()
        self.answer: Any = None
        self.sent: Any = [0]  # 1 from here on: it will be carried out even if its caller is interrupted
        self.is_left = False  # its caller was interrupted, or stopped waiting
        self.on_answer = on_answer
        self.undo = undo

    def end(self) -> None:
        """End the caller's wait: the answer has arrived, or none will come."""
        with contextlib.suppress(RuntimeError):  # already ended
            self._pending.release()

    def wait(self, seconds: float) -> None:
        """Wait for ``end``, with a time limit."""
        self._pending.acquire(timeout=seconds)
