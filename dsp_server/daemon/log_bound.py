"""Keeps a board's log from filling its disk, which is often memory: an op that prints does so at every call."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.board.log_file import shorten

KEPT_SHIFT = 3


class LogBound:
    """Looks at the log once in a while, and drops its older lines when it has become too long.

    Args:
        path: The log.
        loop: The daemon's.
        journal: Writes to the log.
        most_bytes: How long it may be; an eighth of that stays.
    """

    LOOK_SECONDS: ClassVar[float] = 2.0

    def __init__(self, path: Path, loop: Loop, journal: Journal, most_bytes: int) -> None:
        self._path = path
        self._loop = loop
        self._journal = journal
        self._most_bytes = most_bytes

    def look(self) -> None:
        """Look now, and from now on."""
        self._loop.later(self.LOOK_SECONDS, self.look)
        with contextlib.suppress(OSError):  # there may be no log, or no room for what is kept
            dropped = shorten(self._path, self._most_bytes, self._most_bytes >> KEPT_SHIFT)
            if dropped:
                had = f"more than {self._most_bytes} bytes (HBRT_LOG)"
                self._journal.say(f"The log had {had}: its first {dropped} bytes were dropped.")
