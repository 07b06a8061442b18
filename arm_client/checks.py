"""What the wrappers of built-in ops hold their callers to, and the error for what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_client.errors import CallerError
from hbrt.status import Status


def refusal(sentence: str) -> CallerError:
    """The error for a wrong argument."""
    return CallerError(Status.HB_DSP_INVALID_ARGUMENT, sentence)


def need_known(options: Mapping[str, object], kind: type) -> None:
    """Refuse a keyword argument that is no option: a misspelt one would be left out in silence.

    Args:
        options: What the caller gave.
        kind: The TypedDict of the options that there are.

    Raises:
        CallerError: names it, and those that there are.
    """
    known = kind.__annotations__
    for name in options:
        if name not in known:
            raise refusal(f"{name} is no option of this function: there are {', '.join(known)}.")


def need_whole(name: str, value: Any) -> None:
    """Refuse what is no int; raises CallerError."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise refusal(f"{name} is {value!r}: give a whole number.")
