"""Checks of arguments, for calls and for the wrappers of built-in ops, and the error of a refusal."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_client.errors import CallerError
from hbrt.status import Status


def refusal(sentence: str) -> CallerError:
    """The error for a wrong argument."""
    return CallerError(Status.HB_DSP_INVALID_ARGUMENT, sentence)


def need_known(options: Mapping[str, object], kind: type) -> None:
    """Refuse a keyword argument that is not an option: a misspelled one would be ignored silently.

    Args:
        options: The caller's arguments.
        kind: The TypedDict of the options that there are.

    Raises:
        CallerError: names it and the existing ones.
    """
    known = kind.__annotations__
    for name in options:
        if name not in known:
            raise refusal(f"{name} is not an option of this function: there are {', '.join(known)}.")


def need_whole(name: str, value: Any) -> None:
    """Refuse a value that is not an int; raises CallerError."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise refusal(f"{name} is {value!r}: give a whole number.")


def seconds_of(timeout: float) -> float:
    """A time limit as a float; raises CallerError if it is not a number."""
    try:
        seconds = float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds):
        raise refusal(f"The timeout is {timeout!r}; use seconds, or None for no limit.")
    return seconds


def deadline_of(timeout: float | None) -> float | None:
    """The deadline of an operation that starts now, by time.monotonic(); None for no limit.

    Raises CallerError as `seconds_of`.
    """
    return None if timeout is None else time.monotonic() + seconds_of(timeout)
