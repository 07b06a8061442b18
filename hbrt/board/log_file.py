"""Read a log file from its end, and follow it while others append."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple

from hbrt.board.private_files import open_file

CHUNK_BYTES = 65536


class Part(NamedTuple):
    """A piece of a log.

    Args:
        raw: Its bytes.
        end: Offset in the file just past it.
        is_cut: Whether older lines were dropped to stay within the size limit.
    """

    raw: bytes
    end: int
    is_cut: bool = False


def last_lines(path: Path, count: int, end: int | None = None) -> bytes:
    """Return the last ``count`` lines before the offset ``end``, read backwards: a log may be larger than memory.

    Raises:
        OSError: the file cannot be read.
    """
    return tail(path, count, end=end).raw


def tail(path: Path, count: int, most_bytes: int | None = None, end: int | None = None) -> Part:
    """Like ``last_lines``, but as many whole lines as fit in ``most_bytes``.

    Raises:
        OSError: the file cannot be read.
    """
    with _open(path) as file:
        end = file.seek(0, os.SEEK_END) if end is None else end
        at, start = end, max(0, end - most_bytes) if most_bytes is not None else 0
        found = b""
        # One newline more than lines: the one before the first wanted line.
        while at > start and found.count(b"\n") <= count:
            step = min(CHUNK_BYTES, at - start)
            at -= step
            file.seek(at)
            found = file.read(step) + found
    lines = found.removesuffix(b"\n").split(b"\n") if found else []
    is_cut = at > 0 and len(lines) <= count
    if is_cut and len(lines) > 1:
        del lines[0]  # it may start earlier
    wanted = b"".join(line + b"\n" for line in lines[max(0, len(lines) - count) :])
    return Part(wanted, end, is_cut)


def bytes_since(path: Path, since: int, most_bytes: int) -> Part:
    """Return up to ``most_bytes`` from an offset of a file; from its start if it has become shorter.

    Raises:
        OSError: the file cannot be read.
    """
    with _open(path) as file:
        at = file.seek(since if since <= file.seek(0, os.SEEK_END) else 0)
        raw = file.read(most_bytes)
    return Part(raw, at + len(raw))


def _open(path: Path) -> BinaryIO:
    return os.fdopen(open_file(path, os.O_RDONLY), "rb")


def shorten(path: Path, most_bytes: int, kept_bytes: int) -> int:
    """Truncate a file larger than ``most_bytes`` to its last lines, less than ``kept_bytes`` in all.

    Others may keep appending; what they write while this reads is lost.

    Returns:
        Number of bytes dropped.

    Raises:
        OSError: the file cannot be read or written.
    """
    fd = open_file(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        if size <= most_bytes:
            return 0
        kept = os.pread(fd, kept_bytes, size - kept_bytes).partition(b"\n")[2]
        os.ftruncate(fd, 0)
        os.write(fd, kept)
        return size - len(kept)
    finally:
        os.close(fd)


class Follower:
    """Reads what others append to a file from its position on; from the new end if it was truncated."""

    LOOK_SECONDS: ClassVar[float] = 0.1

    def __init__(self, path: Path) -> None:
        """Start at the beginning of the file.

        Raises:
            OSError: the file cannot be read.
        """
        self._fd = open_file(path, os.O_RDONLY)

    def skip_to_end(self) -> int:
        """Skip existing content; returns the offset of what comes next."""
        return os.lseek(self._fd, 0, os.SEEK_END)

    def read(self) -> Iterator[bytes]:
        """Yield everything appended since; ends when there is no more for now."""
        if os.fstat(self._fd).st_size < os.lseek(self._fd, 0, os.SEEK_CUR):
            self.skip_to_end()
        while chunk := os.read(self._fd, CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
