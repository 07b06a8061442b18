"""Source lines of C code addresses, with llvm-symbolizer or addr2line. Also a program that does not import hbrt.

Without either, or without debug information (``-g``), addresses stay unchanged.

As a program, started by a crashing core: ``symbolizer.py HEADLINE [FILE OFFSET]...`` prints headline and frames.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

MAX_SHOWN = 24
SECONDS = 20.0
_LLVM, _BINUTILS = "llvm-symbolizer", "addr2line"  # binutils up to 2.40 names the wrong file for functions in headers
_ANSWER_S = 5.0  # for a large program's debug information on a busy machine; afterwards addresses stay unchanged
_MAX_BYTES = 1 << 16
_SYSTEM = ("/lib", "/usr/lib")
_RUNTIME = "libhbrt_dsp.so"
Address = tuple[str, str]
"""A machine-code file, and an offset in it as text with 0x."""
Line = tuple[str, int, str]
"""A source file, a line, a function; line 0 without debug information."""


def _command(file: str, *, has_functions: bool) -> list[str]:
    """Return the command that resolves offsets in a file: one line each or, with functions, one per inlined call."""
    if program := shutil.which(_LLVM):
        how = ["-a", "-f", "-i", "-C"] if has_functions else ["--functions=none", "--no-inlines"]
        return [program, "--output-style=GNU", "--obj", file, *how]
    if program := shutil.which(_BINUTILS):
        return [program, "-e", file, *(["-afiC"] if has_functions else [])]
    return []


def _environment() -> dict[str, str]:
    """Return this process's environment without preloaded libraries, which the symbolizer would also load."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _place(text: str) -> tuple[str, int] | None:
    """File and line of ``file:12 (discriminator 1)``; None for an unknown one."""
    file, _, line = text.partition(" (")[0].rpartition(":")
    return (os.path.normpath(file), int(line)) if line.isdigit() and int(line) and file != "??" else None


def lines_of(addresses: Sequence[Address]) -> list[Line]:
    """Return source lines of addresses, innermost first; an inlined call has its own line."""
    found: list[Line] = []
    for file, group in groupby(addresses, key=lambda one: one[0]):
        offsets = [offset for _, offset in group]
        found += _ask(file, offsets) or [(file, 0, offset) for offset in offsets]
    return found


def _ask(file: str, offsets: Sequence[str]) -> list[Line]:
    try:
        command = [*_command(file, has_functions=True), *offsets]
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env=_environment()
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    found, address, function = [], "", ""
    for text in asked.stdout.splitlines():
        if text.startswith("0x") and not function:
            address = text
        elif not function:
            function = text
        else:
            place = _place(text)
            name = function if function != "??" else address
            found.append((*place, name) if place else (file, 0, name))
            function = ""
    return found


class Symbolizer:
    """A symbolizer for one program or library, which reads its debug information once and resolves many offsets.

    Raises:
        OSError: no file descriptors left.
    """

    def __init__(self, path: str) -> None:
        self._socket: socket.socket | None = None
        command = _command(path, has_functions=False)
        if not command:
            return
        ours, theirs = socket.socketpair()  # not pipes: a dead reader must not cause a signal
        try:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for the program
            )
        except OSError as error:
            ours.close()
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                raise
        else:
            ours.settimeout(_ANSWER_S)
            self._socket = ours
        finally:
            theirs.close()

    def line_of(self, offset: str) -> str:
        """Return ``file:12``; empty if unknown."""
        if self._socket is None:
            return ""
        try:
            self._socket.send(f"{offset}\n".encode(), socket.MSG_NOSIGNAL)
            answer = b""
            while not answer.endswith(b"\n") and (piece := self._socket.recv(_MAX_BYTES)):
                answer += piece
        except OSError:
            answer = b""
        if not answer:  # the symbolizer has ended
            self._end()
        place = _place(os.fsdecode(answer).partition("\n")[0])
        return f"{place[0]}:{place[1]}" if place else ""

    def detach_in_child(self) -> None:
        """In a forked child: leave it to the parent, which continues using it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._process.returncode = 0  # not a child of this process

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._process.kill()
            self._process.wait()


def shown(headline: str, addresses: Sequence[Address]) -> str:
    """Format a headline and frames like faulthandler, without frames in system libraries."""
    inside = [one for one in addresses if not one[0].startswith(_SYSTEM) and Path(one[0]).name != _RUNTIME]
    lines = lines_of(inside or addresses)
    text = []
    for frame, again in groupby(f'  File "{file}", line {line} in {function}' for file, line, function in lines):
        text.append(frame)
        if (count := sum(1 for _ in again)) > 1:
            text.append(f"  (so {count} times)")
    if len(text) > MAX_SHOWN:
        text[MAX_SHOWN:] = [f"  and {len(text) - MAX_SHOWN} lines more"]
    return "\n".join([headline.rstrip("\n"), *text, ""])


def command() -> list[str]:
    """Return the command to run this file as a program."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve())]


if __name__ == "__main__":
    _, _headline, *_places = sys.argv
    sys.stdout.write(shown(_headline, list(zip(_places[::2], _places[1::2], strict=True))))
