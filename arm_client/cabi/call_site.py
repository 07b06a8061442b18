"""Which line of a program it is that made a call: messages name it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

LIBRARIES = {"arm_client", "hbrt", "ctypes", "numpy"}

of_c: Callable[[], str] = str
"""The line of C code that made this thread's call, empty for none: arm_client.c_library sets it."""


def call_site(most: int | None = None) -> str:
    """File and line of the program that called the runtime, as text that can be sent.

    Args:
        most: Characters; of a longer one the end is kept. None for no limit.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001 - as the logging library finds its caller
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame = frame.f_back
    is_librarys = frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES
    site = (is_librarys and of_c()) or f"{frame.f_code.co_filename}:{frame.f_lineno}"
    site = site.encode("utf-8", "replace").decode().replace("\0", "?")  # a file's name may be any bytes
    return site if most is None else site[-most:]
