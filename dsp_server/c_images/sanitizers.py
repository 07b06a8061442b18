"""Images built with a sanitizer: how a core's process must start, and where reports go.

A report becomes the task's text: the sanitizer writes it where a core's stack would go, and ends the process.
"""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
from collections.abc import Sequence
from typing import Final

from dsp_server.c_images.elf import is_elf, needed

_ADDRESS: Final = "libasan.so"
_UNDEFINED: Final = "libubsan.so"
# Memory that Python allocates at startup is not the image's leak. The user's own options come last, and win.
_ADDRESS_OPTIONS: Final = "detect_leaks=0:handle_abort=1:handle_sigill=1:allocator_may_return_null=1"


def libraries(raw: bytes) -> list[str]:
    """Return the names of the sanitizer libraries that an image file needs; none for a Python image."""
    return [name for name in needed(raw) if name.startswith((_ADDRESS, _UNDEFINED))] if is_elf(raw) else []


def first(names: Sequence[str]) -> tuple[str, ...]:
    """Return those of these libraries that a process must load before all others."""
    return tuple(name for name in names if name.startswith(_ADDRESS))


def environment_of(names: Sequence[str]) -> dict[str, str]:
    """Return environment variables that load libraries when a process starts; none if there are no libraries."""
    if not names:
        return {}
    return {
        "LD_PRELOAD": " ".join([*names, *os.environ.get("LD_PRELOAD", "").split()]),
        "ASAN_OPTIONS": f"{_ADDRESS_OPTIONS}:{os.environ.get('ASAN_OPTIONS', '')}",
    }


def missing(names: Sequence[str]) -> str:
    """Return the library that this process should have loaded at its start but has not; empty if none."""
    has_begun = hasattr(ctypes.CDLL(None), "__asan_init")
    return "" if has_begun else next(iter(first(names)), "")


def report_to(fd: int, names: Sequence[str]) -> None:
    """Send ASan's reports to a descriptor, and leave crashes to ASan. native/dsp/crash.c writes UBSan's."""
    for name in first(names):
        own = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)  # at its start, UBSan closes the descriptor that ASan writes to
        ctypes.CDLL(name)["__sanitizer_set_report_fd"](ctypes.c_void_p(own))
        faulthandler.disable()
