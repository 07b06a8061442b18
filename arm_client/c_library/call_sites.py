"""The line of a C program that made a call: its address by the debugging information, asked for once an address.

llvm-symbolizer, or addr2line, reads a program's information once and answers many addresses: one is started for each
file that calls, at its first call, and ends with the process. Without it, or without ``-g``, a place is
``program+0x1234``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable

from arm_client.cabi import call_site
from hbrt.attach import wait_sites
from hbrt.board.forked import in_child

_PROGRAMS = ("llvm-symbolizer", "addr2line")  # binutils' names a wrong file for functions of headers, to 2.40 at least
_ANSWER_S = 5.0  # of a large program's information on a busy machine; afterwards its places stay addresses
_MOST_BYTES = 1 << 16


class CallSites:
    """Where C code called, as text.

    Args:
        address: Gives ``path+0x1234`` of the call that this thread is in, or of the fault that it handles; empty for
            none.
    """

    def __init__(self, address: Callable[[], bytes | None]) -> None:
        self._address = address
        self._known: dict[bytes, str] = {}
        self._symbolizers: dict[str, Symbolizer] = {}
        self._lock = threading.Lock()
        in_child(self._abandon_in_child)

    def __call__(self) -> str:
        """``file.c:12``, or ``program+0x1234``; empty when this thread is not in C code."""
        address = self._address()
        return self.line_of(address) if address else ""

    def line_of(self, address: bytes) -> str:
        """``file.c:12``, or ``program+0x1234``, of ``path+0x1234``."""
        found = self._known.get(address)
        if found is None:
            with self._lock:
                found = self._known[address] = self._look_up(os.fsdecode(address))
        return found

    def _look_up(self, address: str) -> str:
        path, _, offset = address.rpartition("+")
        symbolizer = self._symbolizers.get(path)
        if symbolizer is None:
            symbolizer = self._symbolizers[path] = Symbolizer(path)
        return symbolizer.line_of(offset) or f"{os.path.basename(path)}+{offset}"  # noqa: PTH119 - a name, no path

    def _abandon_in_child(self) -> None:
        self._lock = threading.Lock()
        for symbolizer in self._symbolizers.values():
            symbolizer.abandon_in_child()
        self._symbolizers = {}


class Symbolizer:
    """llvm-symbolizer or addr2line for one program or library."""

    def __init__(self, path: str) -> None:
        self._socket: socket.socket | None = None
        program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
        if program is None:
            return
        is_llvms = program.endswith(_PROGRAMS[0])
        options = (
            ["--output-style=GNU", "--functions=none", "--no-inlines", "--obj", path] if is_llvms else ["-e", path]
        )
        # A sanitizer's library would be loaded into it, too.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        ours, theirs = socket.socketpair()  # not pipes: one whose reader has died sends no signal
        try:
            self._process = subprocess.Popen(
                [program, *options],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C is the program's
            )
        except OSError:
            ours.close()
        else:
            ours.settimeout(_ANSWER_S)
            self._socket = ours
        theirs.close()

    def line_of(self, offset: str) -> str:
        """File and line; empty when they are not known."""
        if self._socket is None:
            return ""
        try:
            self._socket.send(f"{offset}\n".encode(), socket.MSG_NOSIGNAL)
            answer = b""
            while not answer.endswith(b"\n") and (piece := self._socket.recv(_MOST_BYTES)):
                answer += piece
        except OSError:
            answer = b""
        if not answer:  # it has ended
            self._end()
        file, _, line = os.fsdecode(answer).partition("\n")[0].partition(" (")[0].rpartition(":")
        return f"{os.path.normpath(file)}:{line}" if line.isdigit() and int(line) and file != "??" else ""

    def abandon_in_child(self) -> None:
        """It is the parent's, which goes on with it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._process.returncode = 0  # no child of this process

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._process.kill()
            self._process.wait()


def install(address: Callable[[], bytes | None], waits: Callable[[], Iterable[tuple[int, bytes]]]) -> None:
    """Have messages and ``hbrt why`` name the lines of a C program.

    Args:
        address: As of ``CallSites``.
        waits: The task's handle and the place of each thread that waits.
    """
    sites = CallSites(address)
    call_site.of_c = sites
    wait_sites.of_c = lambda: [(handle, sites.line_of(place)) for handle, place in waits()]
