"""Tracebacks from the frame on that their reader has to do with. Pure."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType, TracebackType


def beyond(error: BaseException, is_own: Callable[[FrameType], bool]) -> TracebackType | None:
    """Return the traceback of an error from its first frame on that is not the runtime's own; None when all are.

    Args:
        error: The error.
        is_own: Whether a frame is the runtime's own.
    """
    trace = error.__traceback__
    while trace is not None and is_own(trace.tb_frame):
        trace = trace.tb_next
    return trace
