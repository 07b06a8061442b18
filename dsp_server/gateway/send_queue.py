"""Frames that wait to be sent: only the gateway's thread may use its socket."""

from __future__ import annotations

import contextlib
import os
from collections import deque


class SendQueue:
    """Frames for programs, from any thread; its descriptor is readable while there are some."""

    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, bytes | None]] = deque()
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def put(self, identity: bytes, frame: bytes) -> None:
        """Queue a frame for a program."""
        self._put(identity, frame)

    def disconnect(self, identity: bytes) -> None:
        """Disconnect a program when its queued frames have been sent."""
        self._put(identity, None)

    def _put(self, identity: bytes, frame: bytes | None) -> None:
        self._frames.append((identity, frame))
        os.eventfd_write(self.fd, 1)

    def take_all(self) -> list[tuple[bytes, bytes | None]]:
        """Remove and return all frames with their identities; None instead of a frame disconnects the program."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        taken = []
        while self._frames:
            taken.append(self._frames.popleft())
        return taken

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)
