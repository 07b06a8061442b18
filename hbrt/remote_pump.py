"""What one side has to say, in the order in which it was decided, and never more bytes on their way than the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from hbrt.remote_wire import WINDOW_BYTES, WINDOW_FRAMES

# Frames, made when there is room for them; each with the number of its PUSH or DATA, 0 for one that needs no room.
Job: TypeAlias = Iterator[tuple[int, bytes]]


class Pump:
    """Jobs of one side. Threads bring their own lock."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._on_their_way: deque[tuple[int, int]] = deque()  # number, bytes
        self._bytes = 0

    def add(self, job: Job) -> None:
        """Say this after all that was added before."""
        self._jobs.append(job)

    def add_frames(self, *frames: bytes) -> None:
        """Say these frames, which need no room."""
        self.add(iter([(0, frame) for frame in frames]))

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

    def on_taken(self, number: int) -> None:
        """The other side has taken in what has numbers up to this one."""
        while self._on_their_way and self._on_their_way[0][0] <= number:
            self._bytes -= self._on_their_way.popleft()[1]
