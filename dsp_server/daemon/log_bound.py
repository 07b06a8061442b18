"""Limits the size of a board's log: an op that prints could fill the disk, which is often memory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.board.log_file import shorten


class LogBound:
    """Checks the log's size regularly, and drops the oldest lines if it is too large.

    Args:
        path: The log.
        loop: The daemon's event loop.
        journal: Writes to the log.
    """

    MAX_BYTES: ClassVar[int] = 64 << 20  # after a cut, an eighth is kept
    POLL_SECONDS: ClassVar[float] = 2.0

    def __init__(self, path: Path, loop: Loop, journal: Journal) -> None:
        self._path = path
        self._loop = loop
        self._journal = journal

    def poll(self) -> None:
        """Check the size now, and regularly from now on."""
        self._loop.later(self.POLL_SECONDS, self.poll)
        with contextlib.suppress(OSError):  # there may be no log, or no space for the part to keep
            dropped = shorten(self._path, self.MAX_BYTES, self.MAX_BYTES // 8)
            if dropped:
                self._journal.say(f"The log was larger than {self.MAX_BYTES} bytes: dropped its first {dropped} bytes.")
