"""The interface of timeline file writers: tracks, and slices, instants and counters on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple, TypeAlias

Facts: TypeAlias = Mapping[str, "int | float | str"]


class Flow(NamedTuple):
    """A point on a task's path through slices and instants; its number is unique in the file."""

    number: int
    is_first: bool = False
    is_last: bool = False


class Sink(ABC):
    """Writes a timeline incrementally; all times are CLOCK_MONOTONIC ns."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @abstractmethod
    def group(self, name: str, pid: int = 0) -> int:
        """Create a group of tracks: a process, or without ``pid`` a part of the board. Returns its number."""

    @abstractmethod
    def track(self, name: str, group: int, tid: int = 0) -> int:
        """Create a track in a group, with ``tid`` a thread's; its slices nest. Returns its number."""

    @abstractmethod
    def counter(self, name: str, group: int) -> int:
        """Create a track of values. Returns its number."""

    @abstractmethod
    def slice(
        self, track: int, name: str, start_ns: int, end_ns: int, facts: Facts | None = None, flow: Flow | None = None
    ) -> None:
        """Write a slice; one that starts together with another follows it in the file and is nested below it."""

    @abstractmethod
    def instant(self, track: int, name: str, at_ns: int, facts: Facts | None = None, flow: Flow | None = None) -> None:
        """Write a mark."""

    @abstractmethod
    def value(self, counter: int, at_ns: int, value: int) -> None:
        """Write the value of a counter from a time on."""

    @abstractmethod
    def close(self) -> None:
        """Write the end of the file."""
