"""Tracebacks starting at the frame that matters to the reader. Pure."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType, TracebackType


def beyond(error: BaseException, is_own: Callable[[FrameType], bool]) -> TracebackType | None:
    """Return an error's traceback starting at the first frame outside the runtime; None if there is none.

    Args:
        error: The error.
        is_own: Whether a frame belongs to the runtime.
    """
    trace = error.__traceback__
    while trace is not None and is_own(trace.tb_frame):
        trace = trace.tb_next
    return trace
