"""Ctrl-C at a place of one's choice.

An interrupt is raised at the entry of a function and after a call of one in C. A profiler is called there as well, so
that one which raises visits each of these places in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


class _Interrupt:
    """Ctrl-C at the n-th place; not inside a finalizer, where Python says it and continues."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, frame: FrameType | None, event: str, _of: object) -> None:
        if event not in {"call", "c_return"}:
            return
        self._left -= 1
        if self._left <= 0:
            while frame is not None:
                if frame.f_code.co_name == "__del__":
                    return
                frame = frame.f_back
            sys.setprofile(None)
            raise KeyboardInterrupt


def is_interrupted(at: int, action: Callable[[], object]) -> bool:
    """Call ``action`` with Ctrl-C at its n-th place; False when it has fewer, and has come to its end."""
    try:
        sys.setprofile(_Interrupt(at))
        action()
        sys.setprofile(None)
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False
