"""What one side has to say, in the order in which it was decided, and never more bytes on their way than the window."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from hbrt.protocol.remote import WINDOW_BYTES, WINDOW_FRAMES

_STEP_BITS = 30

# Frames, made when there is room for them; each with the number of its PUSH or DATA, 0 for one that needs no room.
Job: TypeAlias = Iterator[tuple[int, bytes]]


class Pump:
    """Jobs of one side. Threads bring their own lock."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._on_their_way: deque[tuple[int, int]] = deque()  # number, bytes
        self._bytes = 0
        self._last_number = 0
        self.waiting_bytes = 0  # of frames that are made and have not left

    def next_number(self) -> int:
        """A number for DATA or REPLY: larger than all before, and known to nobody who has not read its frame."""
        self._last_number += 1 + secrets.randbits(_STEP_BITS)
        return self._last_number

    def add(self, job: Job) -> None:
        """Say this after all that was added before."""
        self._jobs.append(job)

    def add_frames(self, *frames: bytes) -> None:
        """Say these frames, which need no room."""
        self.waiting_bytes += sum(map(len, frames))
        self.add(self._made(frames))

    def add_numbered(self, make: Callable[[int], bytes], held_bytes: int = 0) -> None:
        """Say the frame that ``make(number)`` gives when there is room; until then it holds so many bytes."""
        self.waiting_bytes += held_bytes
        self.add(self._numbered(make, held_bytes))

    def _made(self, frames: tuple[bytes, ...]) -> Job:
        for frame in frames:
            self.waiting_bytes -= len(frame)
            yield 0, frame

    def _numbered(self, make: Callable[[int], bytes], held_bytes: int) -> Job:
        self.waiting_bytes -= held_bytes
        number = self.next_number()
        yield number, make(number)

    @property
    def job_count(self) -> int:
        """Jobs that were added and have more to say."""
        return len(self._jobs)

    @property
    def has_frames(self) -> bool:
        """Whether ``frames`` has something to give."""
        return bool(self._jobs) and self._bytes < WINDOW_BYTES and len(self._on_their_way) < WINDOW_FRAMES

    def frames(self) -> Iterator[bytes]:
        """The frames that may be sent now."""
        while self.has_frames:
            found = next(self._jobs[0], None)
            if found is None:
                self._jobs.popleft()
                continue
            number, frame = found
            if number:
                self._on_their_way.append((number, len(frame)))
                self._bytes += len(frame)
            yield frame

    def on_taken(self, number: int) -> bool:
        """The other side has taken in what has numbers up to this one; whether that one was on its way."""
        last = 0
        while self._on_their_way and self._on_their_way[0][0] <= number:
            last, size_bytes = self._on_their_way.popleft()
            self._bytes -= size_bytes
        return last == number
