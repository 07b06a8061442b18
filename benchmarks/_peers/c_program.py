"""Peers in C: a program that calls the emulator, whose op is in Python or in C too, and a bare echo (folder ``c``).

A client here starts the program and passes it the benchmark's orders; the program measures itself.
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from benchmarks._peers import Place
from benchmarks._peers.board import IMAGE, running_board

_SOURCES = Path(__file__).with_name("c")
_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra")
_ANSWER = struct.Struct("<qq")  # when it ended, and how many calls or replies
CC = (*shlex.split(os.environ.get("CC", "cc")), "-pthread")
_HBRT_CC = (sys.executable, "-m", "hbrt", "cc")


def built(directory: Path, name: str, *command: str, libraries: Sequence[str] = ()) -> Path:
    """Compile a program or an image of the folder ``c``, once per run; ``libraries``: flags after its source."""
    made = directory / f"{name}.bin"
    if not made.exists():
        unfinished = directory / f"{name}.{os.getpid()}"
        source = str(_SOURCES / f"{name}.c")
        subprocess.run([*command, *_FLAGS, source, *libraries, "-o", str(unfinished)], check=True)
        unfinished.replace(made)
    return made


def serve_by(place: Place, *command: str | Path) -> None:
    """Run a server, which says that it is ready on standard output, until it ends."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            _read(server.stdout, len(b"ready\n"))
            place.ready()
            server.wait()
        finally:
            server.terminate()


def serve(place: Place) -> None:
    """Serve as the role says: ``echo``, or ``board-py`` or ``board-c`` by the language of the op."""
    if place.role == "echo":
        serve_by(place, built(place.directory, "eventfd_echo", *CC), "serve", place.socket)
        return
    image = built(place.directory, "image", *_HBRT_CC, "--dsp") if place.role == "board-c" else IMAGE
    with running_board(os.environ["HBRT_BOARD"], 1, image):
        place.ready()
        while True:
            signal.pause()


def _read(stream: IO[bytes] | None, size_bytes: int) -> bytes:
    raw = stream.read(size_bytes) if stream else b""
    if len(raw) < size_bytes:
        raise RuntimeError("The program in C has ended; what it said stands before.")
    return raw


class ProgramClient:
    """A program that makes calls, and measures them.

    Args:
        command: Its command line.
        is_pipelined: Whether it may have several calls under way.
    """

    def __init__(self, *command: str | Path, is_pipelined: bool) -> None:
        self.is_pipelined = is_pipelined
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.measure("warm", 0, 0)

    def measure(self, what: str, start_ns: int, end_ns: int) -> tuple[int, bytes | int]:
        """As ``sync`` and ``in_flight`` of ``benchmarks._peers.__main__``, or ``warm``."""
        orders = self._program.stdin
        if orders is not None:
            orders.write(f"{what} {start_ns} {end_ns}\n".encode())
            orders.flush()
        ended_ns, count = _ANSWER.unpack(_read(self._program.stdout, _ANSWER.size))
        return ended_ns, _read(self._program.stdout, count * 8) if what == "sync" else count

    def close(self) -> None:
        """End the program."""
        self._program.communicate()


def connect(place: Place) -> ProgramClient:
    """Return a client of the server at ``place``."""
    if "HBRT_BOARD" in os.environ:
        return ProgramClient(built(place.directory, "caller", *_HBRT_CC), is_pipelined=True)
    return ProgramClient(built(place.directory, "eventfd_echo", *CC), place.socket, is_pipelined=False)
