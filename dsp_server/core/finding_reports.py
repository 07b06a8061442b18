"""Findings of a core on their way to the daemon: the first of a mistake at once, then each time its count doubles."""

from __future__ import annotations

from collections.abc import Callable

from hbrt.findings.record import Finding

MAX_MISTAKES = 256


class FindingReports:
    """Sends findings to the daemon. An op with a mistake in each call costs a few messages, not the daemon's time.

    Beyond MAX_MISTAKES mistakes, the oldest one is forgotten for a new one.
    """

    def __init__(self, send: Callable[[Finding], bool]) -> None:
        """``send`` sends a finding; it returns False when there is no room now."""
        self._send = send
        self._seen: dict[tuple[int, str], tuple[int, int]] = {}  # the count, and how many of it were not sent

    def forget(self, client: int) -> None:
        """Forget the mistakes of a program that is gone: the next one with its id has its own."""
        self._seen = {key: counts for key, counts in self._seen.items() if key[0] != client}

    def report(self, found: Finding) -> None:
        """Send a finding, or count it for later."""
        key = (found.client, found.fingerprint)
        total, unsent = self._seen.get(key, (0, 0))
        total, unsent = total + 1, unsent + 1
        if total & total - 1 == 0 and self._send(found._replace(times=unsent)):
            unsent = 0
        if total == 1 and len(self._seen) >= MAX_MISTAKES:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (total, unsent)
