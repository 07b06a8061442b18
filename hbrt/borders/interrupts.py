"""What a program's own signal handler raises passes every border at which other errors become refusals."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from types import CodeType
from typing import Any


def let_out(error: BaseException) -> None:
    """Raise what a signal handler raised, if ``error`` is that exception or was raised in consequence of it.

    A program bounds a call in time by a handler of SIGALRM that raises. Wherever any exception becomes a status or a
    sentence, this is called first. The code that stands between the handler and the border is found in the traceback.
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
    """The code of the functions that handle signals in this process."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while hasattr(handler, "func"):  # functools.partial
            handler = handler.func
        if callable(handler) and not hasattr(handler, "__code__"):
            handler = type(handler).__call__
        code = getattr(handler, "__code__", None)
        if isinstance(code, CodeType):
            yield code
