"""Argument checks for calls and wrappers of built-in ops, and the error they raise."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_client.errors import CallerError
from hbrt.status import Status


def refusal(sentence: str) -> CallerError:
    """Return the error for a wrong argument."""
    return CallerError(Status.HB_DSP_INVALID_ARGUMENT, sentence)


def need_known(options: Mapping[str, object], kind: type) -> None:
    """Refuse unknown keyword arguments: a misspelled option would be ignored silently.

    Args:
        options: The caller's arguments.
        kind: The TypedDict of known options.

    Raises:
        CallerError: names it and the known ones.
    """
    known = kind.__annotations__
    for name in options:
        if name not in known:
            raise refusal(f"Unknown option {name}; known: {', '.join(known)}.")


def need_whole(name: str, value: Any) -> None:
    """Check that a value is an int; raises CallerError."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise refusal(f"{name} is {value!r}, but must be an integer.")


def seconds_of(timeout: float) -> float:
    """Return a time limit as a float; raises CallerError if it is not a number."""
    try:
        seconds = float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds):
        raise refusal(f"Invalid timeout {timeout!r}: use seconds, or None for no limit.")
    return seconds


def deadline_of(timeout: float | None) -> float | None:
    """Return the deadline of an operation that starts now, by time.monotonic(); None for no limit.

    Raises CallerError like `seconds_of`.
    """
    return None if timeout is None else time.monotonic() + seconds_of(timeout)
