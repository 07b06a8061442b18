"""Exceptions of ops in the board's log: each traceback once, and then its count."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

MAX_KINDS = 64
_MAX_FRAMES = 20
Kind: TypeAlias = tuple[str, type[BaseException], tuple[tuple[str, int], ...]]


class Faults(Protocol):
    """Takes the exceptions of ops."""

    def note(self, op: str, error: BaseException, text: str) -> None:
        """Note that an op raised.

        Args:
            op: Such as "softmax (command 0x400)".
            error: The exception.
            text: The text for the caller: the traceback.
        """


class FaultLog:
    """Writes the whole traceback of each kind of failure once, then a line each time that its count has doubled.

    Failures are of one kind when the same op raised the same type at the same lines, with any message: an op that fails
    at every call with another value costs a few lines of the log. Beyond MAX_KINDS kinds, the oldest one is forgotten
    for a new one.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        """``write`` puts a record into the log."""
        self._write = write
        self._counts: dict[Kind, int] = {}

    def note(self, op: str, error: BaseException, text: str) -> None:
        """As ``Faults.note``."""
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
                f"{op} has raised {type(error).__name__} {count} times at {where}, the last time: {_last(text)}"
            )


def _last(text: str) -> str:
    return text.splitlines()[-1] if text else "no text"
