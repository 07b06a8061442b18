"""Findings of a core on their way to the daemon: the first of a mistake at once, then each time its count doubles."""

from __future__ import annotations

from collections.abc import Callable

from hbrt.findings.record import Finding

MOST_MISTAKES = 256


class FindingReports:
    """Passes findings on. An op that leaves something behind in each call costs a few messages, not the daemon's time.

    Of MOST_MISTAKES mistakes the one that came up first is forgotten for a new one.
    """

    def __init__(self, send: Callable[[Finding], bool]) -> None:
        """``send`` sends one; False when there is no room for it now."""
        self._send = send
        self._seen: dict[tuple[int, str], tuple[int, int]] = {}  # how often, and how many of these were not sent

    def forget(self, client: int) -> None:
        """A program has gone, or begins: the next one with its id has mistakes of its own."""
        self._seen = {key: counts for key, counts in self._seen.items() if key[0] != client}

    def report(self, found: Finding) -> None:
        """Send a finding, or count it for later."""
        key = (found.client, found.fingerprint)
        total, unsent = self._seen.get(key, (0, 0))
        total, unsent = total + 1, unsent + 1
        if total & total - 1 == 0 and self._send(found._replace(times=unsent)):
            unsent = 0
        if total == 1 and len(self._seen) >= MOST_MISTAKES:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (total, unsent)
