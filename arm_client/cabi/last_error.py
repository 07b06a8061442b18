"""Errors with status and message, and each thread's last message."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from hbrt.borders.interrupts import let_out
from hbrt.errors import RequestRefusedError

__all__ = ["RequestRefusedError", "last_error", "note", "returning_status"]

_P = ParamSpec("_P")
_texts = threading.local()


def note(status: int, sentence: str) -> int:
    """Store the message of a refusal; returns the status as a plain int."""
    _texts.text = sentence.encode("utf-8", "backslashreplace").decode()  # a path may contain bytes that are not UTF-8
    return int(status)


def returning_status(
    caught: type[Exception],
    status_of: Callable[[Any, str], tuple[int, str]],
    report: Callable[[int, str], int] = note,
) -> Callable[[Callable[_P, None]], Callable[_P, int]]:
    """Decorate a function to return like C: 0, or the status of the raised error.

    Args:
        caught: Errors to turn into a status; others pass through.
        status_of: Returns status and message for an error and the called name.
        report: Stores the message for last_error(); returns the status.
    """

    def decorate(call: Callable[_P, None]) -> Callable[_P, int]:
        @wraps(call)
        def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> int:
            try:
                call(*args, **kwargs)
            except caught as error:
                let_out(error)
                return report(*status_of(error, call.__name__))
            return 0

        return wrapped

    return decorate


def last_error() -> str:
    """Return the message of this thread's last failed call: the error, with the value, and the remedy.

    Emulator: the board has no such call; its library prints to the console.
    """
    return getattr(_texts, "text", "")
