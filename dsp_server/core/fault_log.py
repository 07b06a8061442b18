"""Reports of repeated faults: full text once, then counts; ops' exceptions to the log, findings to the daemon."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from hbrt.findings.record import Finding

MAX_KINDS = 64
MAX_MISTAKES = 256
_MAX_FRAMES = 20
Kind: TypeAlias = tuple[str, type[BaseException], tuple[tuple[str, int], ...]]


class Faults(Protocol):
    """Receives the exceptions of ops."""

    def note(self, op: str, error: BaseException, text: str) -> None:
        """Record that an op raised an exception.

        Args:
            op: Name of the op, such as "softmax (command 0x400)".
            error: The exception.
            text: The text that the caller gets: the traceback.
        """


class FaultLog:
    """Logs the full traceback of each kind of failure once, then one line whenever its count has doubled.

    Two failures are of the same kind if the same op raised the same type at the same lines, whatever the message: an op
    that fails on every call with a different value adds only a few lines to the log. Beyond MAX_KINDS kinds, each new
    one replaces the oldest.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        """``write`` adds a record to the log."""
        self._write = write
        self._counts: dict[Kind, int] = {}

    def note(self, op: str, error: BaseException, text: str) -> None:
        """See ``Faults.note``."""
        frames: deque[tuple[str, int]] = deque(maxlen=_MAX_FRAMES)
        for frame, line in traceback.walk_tb(error.__traceback__):
            frames.append((frame.f_code.co_filename, line))
        kind = (op, type(error), tuple(frames))
        count = self._counts.get(kind, 0) + 1
        if count == 1 and len(self._counts) >= MAX_KINDS:
            del self._counts[next(iter(self._counts))]
        self._counts[kind] = count
        if count == 1:
            self._write(f"{op} raised:\n{text}")
        elif count & count - 1 == 0:
            where = "{}:{}".format(*frames[-1]) if frames else "the same place"
            self._write(
                f"{op} has raised {type(error).__name__} {count} times at {where}; most recently: {_last(text)}"
            )


def _last(text: str) -> str:
    return text.splitlines()[-1] if text else "no text"


class FindingReports:
    """Sends findings to the daemon; an op that makes a mistake in every call costs only a few messages.

    Beyond MAX_MISTAKES mistakes, each new one replaces the oldest.
    """

    def __init__(self, send: Callable[[Finding], bool]) -> None:
        """``send`` sends a finding; it returns False if there is no room right now."""
        self._send = send
        self._seen: dict[tuple[int, str], tuple[int, int]] = {}  # the count, and how many were not sent

    def discard(self, client: int) -> None:
        """Forget the mistakes of a program that is gone, so that the next program with its id starts afresh."""
        self._seen = {key: counts for key, counts in self._seen.items() if key[0] != client}

    def report(self, found: Finding) -> None:
        """Send a finding now, or count it and send it later."""
        key = (found.client, found.fingerprint)
        total, unsent = self._seen.get(key, (0, 0))
        total, unsent = total + 1, unsent + 1
        if total & total - 1 == 0 and self._send(found._replace(times=unsent)):
            unsent = 0
        if total == 1 and len(self._seen) >= MAX_MISTAKES:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (total, unsent)
