"""Bounds the size of a board's log: an op that prints would fill the disk, which is often memory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.board.log_file import shorten

KEPT_SHIFT = 3


class LogBound:
    """Checks the log's size regularly, and drops its older lines when it is too long.

    Args:
        path: The log.
        loop: The daemon's event loop.
        journal: Writes to the log.
        most_bytes: The most bytes of the log; an eighth of them stays.
    """

    POLL_SECONDS: ClassVar[float] = 2.0

    def __init__(self, path: Path, loop: Loop, journal: Journal, most_bytes: int) -> None:
        self._path = path
        self._loop = loop
        self._journal = journal
        self._most_bytes = most_bytes

    def poll(self) -> None:
        """Check now, and regularly from now on."""
        self._loop.later(self.POLL_SECONDS, self.poll)
        with contextlib.suppress(OSError):  # there may be no log, or no room for the kept part
            dropped = shorten(self._path, self._most_bytes, self._most_bytes >> KEPT_SHIFT)
            if dropped:
                had = f"more than {self._most_bytes} bytes (HBRT_LOG)"
                self._journal.say(f"The log had {had}: its first {dropped} bytes were dropped.")
