"""Finds the program line that made a call, for messages."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from hbrt.borders import guests
from hbrt.borders.printable import printable
from hbrt.findings.record import CALLED_FROM, site_bytes

MAX_CALLERS: Final = 3
MAX_KNOWN: Final = 4096
_NO_PROGRAM: Final = (
    *guests.folders(),
    f"{os.path.dirname(os.__file__)}/",  # noqa: PTH120
    "<frozen ",
)
LIBRARIES = {*guests.PACKAGES, "ctypes", "numpy", "threading", "concurrent"} - {"dsp_server"}
_ENTRY_OF_C: Final = "arm_client.c_library.host"
"""The module through which C code calls: stack frames beyond it are no closer than that code."""
_PYTHONS_CALLS: Final = ("libffi", "_ctypes", "_cffi")
"""Libraries that make Python's calls into C: beyond them is a line of Python."""

of_c: Callable[[], str] = str
"""Returns the C line that made this thread's call, or that faulted; empty for none. Set by arm_client.c_library."""


_has_callers = False


def tell_callers() -> None:
    """From now on, include the callers of a line: many programs call the runtime from only a function or two."""
    global _has_callers  # noqa: PLW0603 - it is the process's
    _has_callers = True


def call_site(most: int | None = None) -> str:
    """Return the file and line of the program that called the runtime, as text that can be sent.

    After ``tell_callers``, up to MAX_CALLERS lines of the program that led there, innermost first; a file in the same
    directory is given by name only: ``/mine/calls.py:12 (called from main.py:63, main.py:80)``.

    Args:
        most: Maximum bytes, kept by dropping callers, then the beginning. None for no limit.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001 - as the logging library finds its caller
    c_line = ""
    while is_librarys(module := frame.f_globals.get("__name__", "")):
        if module == _ENTRY_OF_C and not (c_line := of_c()).startswith(_PYTHONS_CALLS):
            break
        if (behind := frame.f_back) is None:
            c_line = of_c()
            break
        frame, c_line = behind, ""
    site = _sentence(c_line, (frame.f_code.co_filename, frame.f_lineno), *(_callers_of(frame) if _has_callers else ()))
    return site if most is None else site_bytes(site, most).decode("utf-8", "ignore")


@functools.lru_cache(MAX_KNOWN)
def _sentence(c_line: str, place: tuple[str, int], *callers: tuple[str, int]) -> str:
    file, line = place
    here = os.path.dirname(file)  # noqa: PTH120
    site = c_line or f"{file}:{line}"
    if callers:
        shown = (f"{name.removeprefix(f'{here}/') if here else name}:{at}" for name, at in callers)
        site = f"{site}{CALLED_FROM}{', '.join(shown)})"
    return printable(site)


@functools.lru_cache(MAX_KNOWN)
def is_librarys(module: str) -> bool:
    """Whether a module belongs to the runtime, or to a library that calls it for the program."""
    return module.partition(".")[0] in LIBRARIES


@functools.lru_cache(MAX_KNOWN)
def _is_programs(file: str) -> bool:
    return not file.startswith(_NO_PROGRAM) and "-packages/" not in file


def _callers_of(frame: Any) -> list[tuple[str, int]]:
    """Return the program lines that led to a frame; none precede a callback from a library."""
    found: list[tuple[str, int]] = []
    last = frame.f_code.co_filename, frame.f_lineno
    while (frame := frame.f_back) is not None and len(found) < MAX_CALLERS:
        place = frame.f_code.co_filename, frame.f_lineno
        if not _is_programs(place[0]):
            break
        if place != last:  # a comprehension is a function of its own
            found.append(place)
        last = place
    return found
