"""Read files that others may have created, without hanging on a FIFO, device or endless file."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, max_bytes: int, *, follow: bool = True) -> bytes:
    """Read a file after checking its kind and size.

    Args:
        path: The file.
        max_bytes: Its maximum size.
        follow: Whether to follow a link at the end of the path.

    Raises:
        OSError: it is not a regular file, is too large, or cannot be opened; ``strerror`` says which.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if not follow and path.is_symlink():
            raise OSError(error.errno, "it is a link", str(path)) from None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file", str(path))
        if found.st_size > max_bytes:
            raise OSError(0, f"it has {found.st_size} bytes, more than {max_bytes}", str(path))
        with open(fd, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(fd)
