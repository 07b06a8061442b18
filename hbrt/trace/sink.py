"""What a file for a viewer of timelines takes: tracks, and slices, instants and counters on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple, TypeAlias

Facts: TypeAlias = Mapping[str, "int | float | str"]


class Flow(NamedTuple):
    """A place in the way of one task through slices and instants; its number is unique in the file."""

    number: int
    is_first: bool = False
    is_last: bool = False


class Sink(ABC):
    """Writes a timeline as it comes; all times are CLOCK_MONOTONIC ns."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @abstractmethod
    def group(self, name: str, pid: int = 0) -> int:
        """A new group of tracks: a process, or with no ``pid`` a part of the board. Returns its number."""

    @abstractmethod
    def track(self, name: str, group: int, tid: int = 0) -> int:
        """A new track of a group, with ``tid`` that of a thread; its slices nest. Returns its number."""

    @abstractmethod
    def counter(self, name: str, group: int) -> int:
        """A new track of values. Returns its number."""

    @abstractmethod
    def slice(
        self, track: int, name: str, start_ns: int, end_ns: int, facts: Facts | None = None, flow: Flow | None = None
    ) -> None:
        """A slice; one that begins together with another follows it in the file, and lies below it."""

    @abstractmethod
    def instant(self, track: int, name: str, at_ns: int, facts: Facts | None = None, flow: Flow | None = None) -> None:
        """A mark."""

    @abstractmethod
    def value(self, counter: int, at_ns: int, value: int) -> None:
        """The value of a counter from a time on."""

    @abstractmethod
    def close(self) -> None:
        """Write the end of the file."""
