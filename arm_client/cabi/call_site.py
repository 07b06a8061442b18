"""Which line of a program it is that made a call: messages name it."""

from __future__ import annotations

import sys
from typing import Any


def call_site() -> str:
    """File and line of the program that called the runtime."""
    frame: Any = sys._getframe(1)  # noqa: SLF001 - as the logging library finds its caller
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in {"arm_client", "hbrt"}:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
