"""Reading a log file from its end, and following it while others append."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

CHUNK_BYTES = 65536


def last_lines(path: Path, count: int, end: int | None = None) -> bytes:
    """The last ``count`` lines of a file before the offset ``end``, read backwards: a log may be larger than memory.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END) if end is None else end
        tail = b""
        # One line end more than lines: the one before the first line wanted.
        while at > 0 and tail.count(b"\n") <= count:
            step = min(CHUNK_BYTES, at)
            at -= step
            file.seek(at)
            tail = file.read(step) + tail
    lines = tail.removesuffix(b"\n").split(b"\n") if tail else []
    return b"".join(line + b"\n" for line in lines[max(0, len(lines) - count) :])


class Follower:
    """What others append to a file, from where it stands."""

    LOOK_SECONDS: ClassVar[float] = 0.1

    def __init__(self, path: Path) -> None:
        """Stand at the start of the file.

        Raises:
            OSError: the file cannot be read.
        """
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def skip_to_end(self) -> int:
        """Leave out what is there already; returns the offset of what comes next."""
        return os.lseek(self._fd, 0, os.SEEK_END)

    def read(self) -> Iterator[bytes]:
        """All that has come since; ends when there is no more now."""
        while chunk := os.read(self._fd, CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        """Let the file go."""
        os.close(self._fd)
