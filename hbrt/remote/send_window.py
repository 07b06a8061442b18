"""The frames sent by one side, in ``add`` order, with no more bytes in flight than the window allows."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from hbrt.protocol.remote import WINDOW_BYTES, WINDOW_FRAMES

_STEP_BITS = 30

# Frames, created when there is room; each with the number of its PUSH or DATA, 0 for one that needs no room.
FrameSource: TypeAlias = Iterator[tuple[int, bytes]]


class SendWindow:
    """The frame sources of one side. Callers must lock."""

    def __init__(self) -> None:
        self._sources: deque[FrameSource] = deque()
        self._in_flight: deque[tuple[int, int]] = deque()  # number, bytes
        self._bytes = 0
        self._last_number = 0
        self.waiting_bytes = 0  # of frames created but not sent

    def next_number(self) -> int:
        """Return a number for DATA or REPLY: larger than all before, and known only to a reader of its frame."""
        self._last_number += 1 + secrets.randbits(_STEP_BITS)
        return self._last_number

    def add(self, source: FrameSource) -> None:
        """Send a source's frames after everything added earlier."""
        self._sources.append(source)

    def add_frames(self, *frames: bytes) -> None:
        """Send these frames, which need no room."""
        self.waiting_bytes += sum(map(len, frames))
        self.add(self._made(frames))

    def add_numbered(self, make: Callable[[int], bytes], held_bytes: int = 0) -> None:
        """Send the frame returned by ``make(number)`` when there is room; until then it holds this many bytes."""
        self.waiting_bytes += held_bytes
        self.add(self._numbered(make, held_bytes))

    def _made(self, frames: tuple[bytes, ...]) -> FrameSource:
        for frame in frames:
            self.waiting_bytes -= len(frame)
            yield 0, frame

    def _numbered(self, make: Callable[[int], bytes], held_bytes: int) -> FrameSource:
        self.waiting_bytes -= held_bytes
        number = self.next_number()
        yield number, make(number)

    @property
    def source_count(self) -> int:
        """Added sources with more frames."""
        return len(self._sources)

    @property
    def has_frames(self) -> bool:
        """Whether ``frames`` has frames to return."""
        return bool(self._sources) and self._bytes < WINDOW_BYTES and len(self._in_flight) < WINDOW_FRAMES

    def frames(self) -> Iterator[bytes]:
        """Yield the frames that may be sent now."""
        while self.has_frames:
            found = next(self._sources[0], None)
            if found is None:
                self._sources.popleft()
                continue
            number, frame = found
            if number:
                self._in_flight.append((number, len(frame)))
                self._bytes += len(frame)
            yield frame

    def on_taken(self, number: int) -> bool:
        """Record that the other side has processed numbers up to this one; returns whether it was in flight."""
        last = 0
        while self._in_flight and self._in_flight[0][0] <= number:
            last, size_bytes = self._in_flight.popleft()
            self._bytes -= size_bytes
        return last == number
