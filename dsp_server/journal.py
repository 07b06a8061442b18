"""What the daemon says: lines in the board's log, and the findings that ``hbrt status`` lists."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from typing import Any

MOST_FINDINGS = 200


class Journal:
    """The board's log and its latest findings: mistakes of clients that a board would hide."""

    def __init__(self, log_fd: int) -> None:
        """``log_fd`` is open for appending; the cores write to it as well, so that a line is one write."""
        self.log_fd = log_fd
        self.findings: deque[dict[str, Any]] = deque(maxlen=MOST_FINDINGS)

    def say(self, sentence: str) -> None:
        """Write a line to the log."""
        stamp = time.strftime("%H:%M:%S", time.localtime())
        with contextlib.suppress(OSError):  # a full disk must not end the board
            os.write(self.log_fd, f"{stamp} daemon {sentence}\n".encode("utf-8", "replace"))

    def find(self, kind: str, sentence: str) -> None:
        """Keep a finding, and log it."""
        self.findings.append({"kind": kind, "text": sentence, "time": time.time()})
        self.say(f"{kind}: {sentence}")
