"""A private board's console: what ops print and the board finds goes to its program's standard error.

The cores write to the log. This copies the lines meant for the program whenever the kernel reports a write, so it
costs the cores nothing. A program that does not read its standard error does not block the daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
from pathlib import Path

from dsp_server.process.event_loop import Loop
from hbrt.board.log_file import Follower
from hbrt.board.log_lines import ProgramLines

_IN_MODIFY = 2
_PIECE_BYTES = 4096  # a ready pipe takes this much without blocking
_RETRY_SECONDS = 0.05
_LAST_MS = 1000  # how long writing the last lines may take


class Console:
    """Copies a board's log to a descriptor.

    Args:
        log: The board's log, read from its beginning.
        fd: Descriptor to write to; this object takes it over.
        loop: Watches the log.
    """

    def __init__(self, log: Path, fd: int, loop: Loop) -> None:
        self._fd = fd
        self._loop = loop
        self._log = Follower(log)
        self._lines = ProgramLines()
        self._unsent = b""
        self._changes = _watched(log)
        if self._changes >= 0:
            loop.watch(self._changes, self._on_change)
        self._on_change()

    def close(self) -> None:
        """Copy what is left, and release everything."""
        if self._changes >= 0:
            self._loop.unwatch(self._changes)
            os.close(self._changes)
            self._changes = -1
        self._unsent += self._lines.take(b"".join(self._log.read()), is_last=True)
        self._flush(_LAST_MS)
        self._unsent = b""
        self._log.close()
        os.close(self._fd)
        self._fd = -1

    def _on_change(self) -> None:
        if self._fd < 0:
            return
        if self._changes >= 0:
            with contextlib.suppress(BlockingIOError):
                os.read(self._changes, _PIECE_BYTES)
        else:  # this user already watches too many files
            self._loop.later(Follower.LOOK_SECONDS, self._on_change)
        is_waiting = bool(self._unsent)
        self._unsent += self._lines.take(b"".join(self._log.read()))
        if not is_waiting:
            self._flush()

    def _flush(self, wait_ms: int = 0) -> None:
        poller = select.poll()
        poller.register(self._fd, select.POLLOUT)
        try:
            while self._unsent and poller.poll(wait_ms):
                self._unsent = self._unsent[os.write(self._fd, self._unsent[:_PIECE_BYTES]) :]
        except OSError:  # nobody is reading any more
            self._unsent = b""
        if self._unsent:
            self._loop.later(_RETRY_SECONDS, lambda: self._flush() if self._fd >= 0 else None)


def _watched(path: Path) -> int:
    """Return a descriptor that becomes readable when a file is written; -1 if the system has none to give."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(fd)
        return -1
    return fd
