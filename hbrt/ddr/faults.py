"""Memory faults (SIGSEGV, SIGBUS) of this process, for the handlers that can repair or explain them.

The handler is Python's, called by the fault itself: a fault of device memory comes from a copy or a loop over arrays,
where the interpreter is in a consistent state. A fault that is not repaired goes to the previous handler, as if this
module did not exist. Emulator: on a board, an MMU might notice, or nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeAlias

Mender: TypeAlias = Callable[[int, "bool | None"], bool]
"""Receives the address, and whether it was written (None: unknown). Returns True to retry the access."""

_FLAG_SIGINFO = 4
_CODE_OFFSET, _ADDRESS_OFFSET = 8, 16  # in siginfo_t, LP64
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
# In Linux's ucontext_t: on x86-64 the page fault's error code, with bit 1 set for a write; on arm64 the records after
# the registers, one of which has the syndrome, with bit 6 set for a write.
_X86_ERROR, _X86_WRITE = 192, 2
_ARM_RECORDS, _ARM_ESR, _ARM_WRITE = 464, 0x45535201, 1 << 6
_COUNTER = {"x86_64": 168, "aarch64": 440}  # offset of the program counter in ucontext_t


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
_given_back: set[int] = set()
_menders: list[Mender] = []
_machine = os.uname().machine
_here = threading.local()


def on_fault(mender: Mender) -> None:
    """Pass each fault to ``mender`` before all others."""
    if mender not in _menders:
        _menders.insert(0, mender)
    for number in (signal.SIGSEGV, signal.SIGBUS):
        now = _Action()
        _sigaction(number, None, ctypes.byref(now))
        action = _Action(handler=ctypes.cast(_HANDLER, ctypes.c_void_p), flags=_FLAG_SIGINFO)
        # Again, if an unrepaired fault has restored the previous handler, or someone has replaced ours since.
        if now.handler != action.handler:
            _before[number] = now
            _given_back.discard(number)
            _sigaction(number, ctypes.byref(action), None)


def no_fault(mender: Mender) -> None:
    """Undo ``on_fault``."""
    if mender in _menders:
        _menders.remove(mender)


def instruction() -> int:
    """Return the address of the instruction whose fault this thread is handling; 0 if none or unknown."""
    return getattr(_here, "instruction", 0)


def _handle(number: int, info: int, context: int) -> None:
    is_sent = ctypes.c_int.from_address(info + _CODE_OFFSET).value <= 0  # sent by a process: it does not repeat
    try:
        if not is_sent and _is_mended(ctypes.c_size_t.from_address(info + _ADDRESS_OFFSET).value, context):
            return
    except BaseException:  # noqa: BLE001 - the fault would come again forever
        os.write(2, b"hbrt: the handler of a memory fault failed\n")
    # The previous handler handles it: the instruction faults again when this returns.
    # A handler installed after ours may in turn restore ours: then nobody is left.
    is_last = number in _given_back
    _given_back.add(number)
    _sigaction(number, ctypes.byref(_Action() if is_last else _before[number]), None)
    if is_sent:
        os.kill(os.getpid(), number)


def _is_mended(address: int, context: int) -> bool:
    is_write = _is_write(context)
    at = _COUNTER.get(_machine)
    before, _here.instruction = instruction(), ctypes.c_uint64.from_address(context + at).value if at else 0
    try:
        return any(mender(address, is_write) for mender in list(_menders))
    finally:
        _here.instruction = before


def _is_write(context: int) -> bool | None:
    if _machine == "x86_64":
        return bool(ctypes.c_uint64.from_address(context + _X86_ERROR).value & _X86_WRITE)
    if _machine == "aarch64":
        at = context + _ARM_RECORDS
        while size := ctypes.c_uint32.from_address(at + 4).value:
            if ctypes.c_uint32.from_address(at).value == _ARM_ESR:
                return bool(ctypes.c_uint64.from_address(at + 8).value & _ARM_WRITE)
            at += size
    return None


_HANDLER = _Handler(_handle)
