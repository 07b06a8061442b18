"""Death at a write: a process dies when it has written certain bytes of the DDR file, whatever language writes them.

The kernel watches the main thread by a debug register of the CPU (ptrace), so that the code is as it is built.

Source: ptrace(2), and Intel's manual, volume 3B, 17.2, for debug registers 0 and 7.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.waiting import until

_SEIZE, _INTERRUPT, _CONT, _POKEUSER, _DETACH = 0x4206, 0x4207, 7, 6, 17
_ALL: Final = 0x40000000  # __WALL: waits for a process that is not a child, too
_DEBUG_REGISTERS: Final = 848  # in struct user of x86-64
_SIZES = {1: 0, 2: 1, 8: 2, 4: 3}
_ON_WRITE, _LOCAL = 1, 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


def why_not() -> str:
    """Why no process can be watched here; empty when one can."""
    if platform.machine() != "x86_64":
        return "the debug registers of this CPU are not known"
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return "ptrace is for parents alone" if scope.exists() and scope.read_text().strip() != "0" and os.getuid() else ""


class Watchpoint:
    """A process that stands still until ``go``; all calls are of one thread.

    Args:
        pid: The process.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_dead = False
        self._ask(_SEIZE)
        self._ask(_INTERRUPT)
        os.waitpid(pid, _ALL)

    def go(self, offset: int, size_bytes: int, is_met: Callable[[], bool]) -> None:
        """Let it run, until it writes there and the condition is true.

        Args:
            offset: In the DDR file.
            size_bytes: 1, 2, 4 or 8; the offset is a multiple of it.
            is_met: The condition, asked after each write.
        """
        self._is_met = is_met
        self._poke(0, _ddr_of(self.pid) + offset)
        self._poke(7, _LOCAL | _ON_WRITE << 16 | _SIZES[size_bytes] << 18)
        self._ask(_CONT)

    def look(self) -> bool:
        """Whether it has written and died; call it often, for it stands still at each write."""
        if self.is_dead:
            return True
        pid, status = os.waitpid(self.pid, _ALL | os.WNOHANG)
        if not pid:
            return False
        if not os.WIFSTOPPED(status):
            self.is_dead = True
        elif os.WSTOPSIG(status) == signal.SIGTRAP and self._is_met():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, _ALL)  # then its parent learns of it
            self.is_dead = True
        else:
            number = os.WSTOPSIG(status)
            self._ask(_CONT, data=0 if number == signal.SIGTRAP else number)
        return self.is_dead

    def leave(self) -> None:
        """Let it run unwatched, if it lives."""
        if self.is_dead:
            return
        self._ask(_INTERRUPT)
        until(lambda: os.waitpid(self.pid, _ALL | os.WNOHANG)[0], f"a stop of process {self.pid}")
        self._poke(7, 0)
        self._ask(_DETACH)

    def _poke(self, register: int, value: int) -> None:
        self._ask(_POKEUSER, _DEBUG_REGISTERS + 8 * register, value)

    def _ask(self, request: int, address: int = 0, data: int = 0) -> None:
        if _libc.ptrace(request, self.pid, address, data) == -1:
            number = ctypes.get_errno()
            raise OSError(number, f"ptrace request {request} of process {self.pid}: {os.strerror(number)}")


def _ddr_of(pid: int) -> int:
    """Where a process has mapped the DDR file."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        addresses, _, offset, *_ = line.split()
        if "hbrt-ddr" in line and int(offset, 16) == 0:
            return int(addresses.split("-")[0], 16)
    raise LookupError(f"Process {pid} has not mapped the DDR file.")
