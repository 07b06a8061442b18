"""What ops raise, in the board's log: a traceback once, and how often it came again."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

MOST_KINDS = 64
_MOST_FRAMES = 20
Kind: TypeAlias = tuple[str, type[BaseException], tuple[tuple[str, int], ...]]


class FaultLog:
    """Writes each kind of failure whole the first time, then a line each time that its count has doubled.

    Failures are of one kind when the same op raised the same type at the same lines, whatever the message says: an op
    that fails at every call, with another value each time, costs a few lines and not the log. Of MOST_KINDS kinds the
    one that came up first is forgotten for a new one.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        """``write`` puts a record into the log."""
        self._write = write
        self._counts: dict[Kind, int] = {}

    def note(self, op: str, error: BaseException, text: str) -> None:
        """Note that an op raised.

        Args:
            op: Such as "softmax (command 0x400)".
            error: What it raised.
            text: What its caller is told: the traceback.
        """
        frames: deque[tuple[str, int]] = deque(maxlen=_MOST_FRAMES)
        for frame, line in traceback.walk_tb(error.__traceback__):
            frames.append((frame.f_code.co_filename, line))
        kind = (op, type(error), tuple(frames))
        count = self._counts.get(kind, 0) + 1
        if count == 1 and len(self._counts) >= MOST_KINDS:
            del self._counts[next(iter(self._counts))]
        self._counts[kind] = count
        if count == 1:
            self._write(f"{op} raised:\n{text}")
        elif count & count - 1 == 0:
            where = "{}:{}".format(*frames[-1]) if frames else "the same place"
            self._write(
                f"{op} has raised {type(error).__name__} {count} times at {where}, the last time: {_last(text)}"
            )


def _last(text: str) -> str:
    return text.splitlines()[-1] if text else "no text"
