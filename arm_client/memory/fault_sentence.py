"""A sentence before a process ends by SIGSEGV, when it touched a block that it had freed.

The handler is Python's, called by the fault itself: a fault of a freed block comes out of a copy or a loop over arrays,
where the interpreter is whole. Any other fault goes to whoever handled it before, as if this module were not there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_FLAG_SIGINFO = 4
_CODE_OFFSET, _ADDRESS_OFFSET = 8, 16  # in siginfo_t, LP64
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """``struct sigaction`` of glibc and musl, LP64."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_sigaction = ctypes.CDLL(None, use_errno=True).sigaction
_sigaction.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_before: dict[int, _Action] = {}
_tellers: list[Callable[[int], str]] = []


def install(teller: Callable[[int], str]) -> None:
    """Have each fault say what ``teller`` has to say of its address, if anything; once a process."""
    if _before:
        return
    _tellers.append(teller)
    for number in (signal.SIGSEGV, signal.SIGBUS):
        _before[number] = _Action()
        action = _Action(handler=ctypes.cast(_HANDLER, ctypes.c_void_p), flags=_FLAG_SIGINFO)
        _sigaction(number, ctypes.byref(action), ctypes.byref(_before[number]))


def _on_fault(number: int, info: int, _context: int) -> None:
    # Whoever was there before handles it: the instruction faults again when this returns.
    _sigaction(number, ctypes.byref(_before[number]), None)
    if ctypes.c_int.from_address(info + _CODE_OFFSET).value <= 0:  # a process sent it: nothing comes again by itself
        os.kill(os.getpid(), number)
        return
    sentence = _tellers[0](ctypes.c_size_t.from_address(info + _ADDRESS_OFFSET).value)
    if sentence:
        sys.stderr.flush()
        os.write(2, f"{sentence}\n".encode())


_HANDLER = _Handler(_on_fault)
