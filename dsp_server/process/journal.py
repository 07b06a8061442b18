"""What a board writes about its programs: its log, the findings in ``hbrt status``, and the records of runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable

from hbrt.board.run_record import RunRecord
from hbrt.findings.record import Finding, Place
from hbrt.findings.text import log_line_of

MAX_FINDINGS = 200
MAX_PEERS = 64
REPEAT_SECONDS = 60.0


class Repeats:
    """Limits repeated log lines: the first line about a peer in each minute is logged, the others are counted."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}  # peers logged in this minute: number of lines since then
        self._since = 0.0

    def suffix(self, peer: bytes, now: float) -> str | None:
        """Return a suffix for a log line about a peer, given the time in seconds; None if it must not be logged."""
        left_out = 0
        if now - self._since >= REPEAT_SECONDS:
            left_out = sum(self._counts.values())
            self._counts.clear()
            self._since = now
        if peer not in self._counts and len(self._counts) >= MAX_PEERS:
            peer = b""  # shared by all peers that reconnect for each message
        if peer in self._counts:
            self._counts[peer] += 1
            return None
        self._counts[peer] = 0
        return f" ({left_out} more, from all peers, were not logged.)" if left_out else ""


class Journal:
    """The board's log and its latest findings: clients' mistakes that a real board would hide."""

    def __init__(self, log_fd: int) -> None:
        """``log_fd`` must be open for appending; the cores write to it too, so each line is one write."""
        self.log_fd = log_fd
        self.complete: Callable[[Finding], Finding] | None = None  # adds what the finder could not know
        self.on_found: Callable[[str], None] = lambda _: None  # called with each finding's line
        self.on_said: Callable[[str], None] = lambda _: None  # called with each other line
        # Time (CLOCK_MONOTONIC) and finding, keyed by program and fingerprint, latest last.
        self._found: dict[tuple[int, str], tuple[float, Finding]] = {}

    def say(self, sentence: str) -> None:
        """Write a line to the log."""
        self.on_said(sentence)
        self._write(sentence)

    def _write(self, sentence: str) -> None:
        stamp = time.strftime("%H:%M:%S", time.localtime())
        with contextlib.suppress(OSError):  # a full disk must not end the board
            os.write(self.log_fd, f"{stamp} daemon {sentence}\n".encode("utf-8", "replace"))

    @property
    def findings(self) -> list[Finding]:
        """The latest findings, each mistake of a program once, latest last."""
        return [found for _, found in self._found.values()]

    def of_program(self, client: int, since: float) -> list[Finding]:
        """Return the findings of a program and those without a program, latest last.

        Args:
            client: Its client id.
            since: When it attached, in seconds by CLOCK_MONOTONIC: before, its id belonged to another program.
        """
        found = self._found.values()
        return [one for at, one in found if not one.client or (one.client == client and at >= since)]

    def clear(self) -> None:
        """Drop the findings; their lines stay in the log."""
        self._found.clear()

    def find(self, kind: str, sentence: str, *places: Place, client: int = 0, times: int = 1) -> None:
        """Keep a finding; log it the first time, and whenever its count has doubled.

        Args:
            kind: One of hbrt.findings.record.KINDS.
            sentence: What is wrong, with values, and what to do.
            places: The places involved, the main one first.
            client: Id of the program that made the mistake; 0 for none.
            times: How often it was found.
        """
        self.keep(Finding(kind, sentence, places, client, times))

    def keep(self, found: Finding) -> None:
        """Like ``find``, for a finding made by another process."""
        found = (found if self.complete is None else self.complete(found))._replace(time=time.time())
        key = (found.client, found.fingerprint)
        _, before = self._found.pop(key, (0.0, None))
        now = before.again(found) if before is not None else found
        self._found[key] = time.monotonic(), now
        if len(self._found) > MAX_FINDINGS:
            del self._found[next(iter(self._found))]
        if before is None or before.times.bit_length() < now.times.bit_length():
            self._write(log_line_of(now))
        self.on_found(f"{found.kind}: {found.text}")


class RunRecords:
    """The records of the runs whose programs are attached."""

    def __init__(self) -> None:
        self._records: dict[int, RunRecord] = {}  # by client

    def join(self, client: int, path: str) -> None:
        """Record that a program is part of a run; do nothing if the run is over."""
        with contextlib.suppress(OSError, ValueError):
            record = RunRecord(path)
            try:
                record.hold()
            except OSError:
                record.close()
                raise
            self._records[client] = record

    def part(self, client: int, findings: Iterable[Finding]) -> bool:
        """Record what was found in a program that has ended; return False if nobody in its run is left to read it."""
        record = self._records.pop(client, None)
        if record is None:
            return True
        record.add(findings)
        is_heard = not record.is_over
        record.close()
        return is_heard
