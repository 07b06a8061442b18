"""The result of one item, and what a function may return instead of a plain value. Pure."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

MAX_SHOWN = 20  # stored failed items: there may be thousands of files, and the results list them all


class Status(StrEnum):
    """The outcome of an item."""

    GOOD = "good"
    FAILED = "failed"  # its function raised; its text has the exception
    POISON = "poison"  # its board, or its board's process, died each time


class Compared(NamedTuple):
    """Return this from a function to add digests of its outputs, or a comparison, to the result.

    Attributes:
        outputs: Arrays or bytes, each of which gets a digest.
        error: Largest difference from a reference; None without one.
        failure: A message if the item counts as failed although nothing was raised; otherwise empty.
        value: The result's value.
    """

    outputs: tuple[Any, ...] = ()
    error: float | None = None
    failure: str = ""
    value: Any = None


class Outcome(NamedTuple):
    """One completed attempt.

    Attributes:
        status: The outcome.
        measured_ns: Host time of the function, in nanoseconds.
        cycles: Modeled cycles that the board's cores charged during the item; None if a core was restarted.
        findings: The board's findings, each as ``kind: sentence``.
        digests: SHA-256 of each output, in hexadecimal digits.
        error: Largest difference from the reference; None without one.
        text: Why it failed; empty if it did not.
        value: What the function returned.
    """

    status: Status
    measured_ns: int = 0
    cycles: int | None = None
    findings: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    error: float | None = None
    text: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of an item, by its index among the items.

    Attributes:
        index: Its position, from 0.
        item: The item's name: a path or a number as text, otherwise ``item INDEX``.
        attempts: Number of attempts; more than 1 if boards or their processes died.
        outcome: The outcome of the last attempt.
    """

    index: int
    item: str
    attempts: int
    outcome: Outcome

    @property
    def status(self) -> Status:
        """The status."""
        return self.outcome.status

    @property
    def value(self) -> Any:
        """What the function returned; None if it failed."""
        return self.outcome.value

    @property
    def text(self) -> str:
        """Why it failed; empty if it did not."""
        return self.outcome.text


def digests_of(outputs: Iterable[Any]) -> tuple[str, ...]:
    """SHA-256 of bytes, or of an array's bytes in C order."""
    raw = (output if isinstance(output, bytes) else output.tobytes() for output in outputs)
    return tuple(hashlib.sha256(one).hexdigest() for one in raw)


def name_of(index: int, item: object) -> str:
    """Name of an item in its result."""
    return str(item) if isinstance(item, str | int | os.PathLike) else f"item {index}"
