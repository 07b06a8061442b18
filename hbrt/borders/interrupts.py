"""Exceptions from a program's own signal handler pass through wherever other errors become refusals."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from types import CodeType
from typing import Any


def let_out(error: BaseException) -> None:
    """Reraise a signal handler's exception, if ``error`` is that exception or a consequence of it.

    A program may limit a call's time with a SIGALRM handler that raises. Wherever an exception becomes a status or a
    message, this is called first. It searches the traceback for a signal handler's code.
    """
    handlers = set(_handlers())
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if any(frame.f_code in handlers for frame, _ in traceback.walk_tb(found.__traceback__)):
            raise found
        found = found.__cause__ or found.__context__


def _handlers() -> Iterator[CodeType]:
    """Return the code of this process's signal handlers."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while hasattr(handler, "func"):  # functools.partial
            handler = handler.func
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = type(handler).__call__
        code = getattr(handler, "__code__", None)
        if isinstance(code, CodeType):
            yield code
