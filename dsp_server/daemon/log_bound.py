"""Limits the size of a board's log: an op that prints could fill the disk, which is often memory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.board.log_file import shorten

KEPT_SHIFT = 3


class LogBound:
    """Checks the log's size regularly, and drops the oldest lines if it is too large.

    Args:
        path: The log.
        loop: The daemon's event loop.
        journal: Writes to the log.
        most_bytes: Maximum size of the log; after a cut, an eighth of it is kept.
    """

    POLL_SECONDS: ClassVar[float] = 2.0

    def __init__(self, path: Path, loop: Loop, journal: Journal, most_bytes: int) -> None:
        self._path = path
        self._loop = loop
        self._journal = journal
        self._most_bytes = most_bytes

    def poll(self) -> None:
        """Check the size now, and regularly from now on."""
        self._loop.later(self.POLL_SECONDS, self.poll)
        with contextlib.suppress(OSError):  # there may be no log, or no space for the part to keep
            dropped = shorten(self._path, self._most_bytes, self._most_bytes >> KEPT_SHIFT)
            if dropped:
                had = f"was larger than {self._most_bytes} bytes (HBRT_LOG)"
                self._journal.say(f"The log {had}: dropped its first {dropped} bytes.")
