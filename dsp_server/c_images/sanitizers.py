"""Images that were built with a sanitizer: how a core's process begins, and where the reports go.

A report becomes the text of the task: the sanitizer writes it where a core's stack goes, and ends the process.
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
# Memory that Python allocates at its start is no leak of an image. The user's own options come last, and win.
_ADDRESS_OPTIONS: Final = "detect_leaks=0:handle_abort=1:handle_sigill=1:allocator_may_return_null=1"


def libraries(raw: bytes) -> list[str]:
    """Names of the sanitizers' libraries that an image's file needs; none for a Python image."""
    return [name for name in needed(raw) if name.startswith((_ADDRESS, _UNDEFINED))] if is_elf(raw) else []


def first(names: Sequence[str]) -> tuple[str, ...]:
    """The libraries, of these, that a process must load before all others."""
    return tuple(name for name in names if name.startswith(_ADDRESS))


def environment_of(names: Sequence[str]) -> dict[str, str]:
    """Environment variables that load libraries at the start of a process; none for no library."""
    if not names:
        return {}
    return {
        "LD_PRELOAD": " ".join([*names, *os.environ.get("LD_PRELOAD", "").split()]),
        "ASAN_OPTIONS": f"{_ADDRESS_OPTIONS}:{os.environ.get('ASAN_OPTIONS', '')}",
    }


def missing(names: Sequence[str]) -> str:
    """The library that this process should have loaded at its start, and has not; empty for none."""
    has_begun = hasattr(ctypes.CDLL(None), "__asan_init")
    return "" if has_begun else next(iter(first(names)), "")


def report_to(fd: int, names: Sequence[str]) -> None:
    """Send reports of ASan to a descriptor, and leave crashes to ASan. native/dsp/crash.c writes those of UBSan."""
    for name in first(names):
        own = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)  # at its start, UBSan closes the descriptor that ASan writes to
        ctypes.CDLL(name)["__sanitizer_set_report_fd"](ctypes.c_void_p(own))
        faulthandler.disable()
