"""Which line of a program it is that made a call: messages name it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import hbrt
from hbrt.findings.record import CALLED_FROM, site_bytes

MOST_CALLERS: Final = 3
_ROOT = os.path.dirname(os.path.dirname(hbrt.__file__))  # noqa: PTH120 - text, as code objects have it
_NO_PROGRAM: Final = (
    *(f"{_ROOT}/{package}/" for package in ("arm_client", "hbrt", "dsp_server")),
    f"{os.path.dirname(os.__file__)}/",  # noqa: PTH120
    "<frozen ",
)
LIBRARIES = {"arm_client", "hbrt", "ctypes", "numpy"}

of_c: Callable[[], str] = str
"""The line of C code that made this thread's call, or that faults; empty for none: arm_client.c_library sets it."""


_has_callers = False


def tell_callers() -> None:
    """From now on, a line has the lines with it that led there: many programs call the runtime in a function or two."""
    global _has_callers  # noqa: PLW0603 - it is the process's
    _has_callers = True


def call_site(most: int | None = None) -> str:
    """File and line of the program that called the runtime, as text that can be sent.

    After ``tell_callers`` with up to MOST_CALLERS lines of the program that led there, the innermost first; a file of
    the same directory has its name alone: ``/mine/calls.py:12 (called from main.py:63, main.py:80)``.

    Args:
        most: Bytes, for which callers are left out, and then the beginning. None for no limit.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001 - as the logging library finds its caller
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame = frame.f_back
    is_librarys = frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES
    site = (is_librarys and of_c()) or f"{frame.f_code.co_filename}:{frame.f_lineno}"
    if _has_callers and (callers := ", ".join(_callers_of(frame))):
        site = f"{site}{CALLED_FROM}{callers})"
    site = site.encode("utf-8", "replace").decode().replace("\0", "?")  # a file's name may be any bytes
    return site if most is None else site_bytes(site, most).decode("utf-8", "ignore")


def _callers_of(frame: Any) -> Iterator[str]:
    """The lines of the program that led to a frame; what a library called has none before it."""
    here, last, count = os.path.dirname(frame.f_code.co_filename), (frame.f_code.co_filename, frame.f_lineno), 0  # noqa: PTH120
    while (frame := frame.f_back) is not None and count < MOST_CALLERS:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if file.startswith(_NO_PROGRAM) or "-packages/" in file:
            return
        if (file, line) != last:  # a comprehension is a function of its own
            count += 1
            yield f"{file.removeprefix(f'{here}/') if here else file}:{line}"
        last = (file, line)
