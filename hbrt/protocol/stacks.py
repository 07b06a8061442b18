"""Call stacks as text, one line per frame, innermost first, in faulthandler's format: of ops and of waiting threads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_WAIT = re.compile(r"^Waits for slot (-?\d+)(?: by way of (.+))?$")


NO_SLOT = -1


class Frame(NamedTuple):
    """One call: its file, line and function."""

    file: str
    line: int
    function: str

    @property
    def site(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f'  File "{self.file}", line {self.line} in {self.function}'


class Wait(NamedTuple):
    """A waiting thread of a program.

    Attributes:
        slot: Slot of the task, -1 if unknown.
        stack: The thread's stack, innermost frame first.
        lock: For a thread that waits for a program lock: a clause on the lock and its holder; ``slot`` is what the
            holder waits for, -1 if unknown or none, and below -1 for threads that wait for each other, the same number
            for those of one cycle, in its order. Empty for a thread that waits for the board.
    """

    slot: int
    stack: tuple[Frame, ...]
    lock: str = ""


def frames_of(text: str) -> tuple[Frame, ...]:
    """Parse the frames in a text, skipping other lines."""
    found = (_FRAME.match(line) for line in text.splitlines())
    return tuple(Frame(match[1], int(match[2]), match[3]) for match in found if match)


def text_of(waits: Iterable[Wait], most: int) -> str:
    """Format waits within a character limit: drops outer frames first, then whole waits."""
    lines: list[str] = []
    for slot, stack, lock in waits:
        for line in (f"Waits for slot {slot}{lock and f' by way of {lock}'}", *map(str, stack)):
            if (most := most - len(line) - 1) < 0:
                return "\n".join(lines)
            lines.append(line)
    return "\n".join(lines)


def waits_of(text: str) -> tuple[Wait, ...]:
    """Parse waits from text, skipping anything else."""
    waits: list[tuple[int, str, list[str]]] = []
    for line in text.splitlines():
        if (match := _WAIT.match(line)) is not None:
            waits.append((int(match[1]), match[2] or "", []))
        elif waits:
            waits[-1][2].append(line)
    return tuple(Wait(slot, frames_of("\n".join(lines)), lock) for slot, lock, lines in waits)
