"""What deputies have to say: to their programs, as the gate's thread alone may use its socket, and to a log."""

from __future__ import annotations

import contextlib
import os
from collections import deque


def printable(text: str) -> str:
    """What a program said, for logs and terminals, which must not take it for a command or another line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


class Outbox:
    """Frames on their way to programs, from any thread, and a descriptor that is readable when there are some."""

    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, bytes | None]] = deque()
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def put(self, identity: bytes, frame: bytes) -> None:
        """Have a frame sent to a program."""
        self._frames.append((identity, frame))
        os.eventfd_write(self.fd, 1)

    def part(self, identity: bytes) -> None:
        """Have a program let go, after what was put for it before."""
        self._frames.append((identity, None))
        os.eventfd_write(self.fd, 1)

    def take_all(self) -> list[tuple[bytes, bytes | None]]:
        """Everything that has been put; a None lets its program go."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        taken = []
        while self._frames:
            taken.append(self._frames.popleft())
        return taken

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)
