"""The cost of a program's calls: arguments passed without a copy, and bytes copied."""

from __future__ import annotations

from typing import NamedTuple


class Statistics(NamedTuple):
    """Counters since the program began, or since they were reset.

    Attributes:
        calls: Invocations that were sent.
        shared_buffers: Arguments inside registered memory: no copy.
        shared_bytes: Their bytes.
        copied_buffers: Arguments outside, each copied to a multiple of 128 bytes.
        copied_bytes: Their bytes.
        padding_bytes: Bytes added by alignment.
    """

    calls: int = 0
    shared_buffers: int = 0
    shared_bytes: int = 0
    copied_buffers: int = 0
    copied_bytes: int = 0
    padding_bytes: int = 0

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.calls} calls: {self.shared_buffers} buffers ({self.shared_bytes} bytes) shared, "
            f"{self.copied_buffers} ({self.copied_bytes} bytes and {self.padding_bytes} of padding) copied"
        )


class Tally:
    """The counters of calls with the same arguments."""

    __slots__ = ("calls", "each")

    def __init__(self, each: Statistics) -> None:
        """``each`` is what one call adds."""
        self.calls = 0
        self.each = each

    def total(self, more: int = 0) -> Statistics:
        """Their total, plus this many more calls."""
        return Statistics(*((self.calls + more) * one for one in self.each))


def added(one: Statistics, other: Statistics) -> Statistics:
    """The sum of two."""
    return Statistics(*map(sum, zip(one, other, strict=True)))


class Counts:
    """The counters of all calls; few forms of call are repeated often."""

    def __init__(self) -> None:
        self._tallies: dict[Statistics, Tally] = {}

    def tally(self, each: Statistics) -> Tally:
        """The counter of calls that add ``each``."""
        tally = self._tallies.get(each)
        return tally if tally is not None else self._tallies.setdefault(each, Tally(each))

    def total(self) -> Statistics:
        """Their total."""
        total = Statistics()
        for tally in [*self._tallies.values()]:
            total = added(total, tally.total())
        return total
