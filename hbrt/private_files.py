"""Directories and files that are this user's alone, and fully this user's, whatever the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing; one that is there stays as it is.

    Raises:
        FileExistsError: something else is there. OSError: it cannot be made.
    """
    try:
        _make(path)
    except FileNotFoundError:
        make_directory(path.parent)
        _make(path)


def _make(path: Path) -> None:
    try:
        path.mkdir(DIRECTORY_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    if path.lstat().st_mode & 0o777 != DIRECTORY_MODE:  # the umask took something of it
        path.chmod(DIRECTORY_MODE)


def open_file(path: Path, flags: int) -> int:
    """Descriptor of a file, which is not inherited; a link is refused (ELOOP).

    Args:
        path: Which.
        flags: As for ``os.open``, for one with O_CREAT.

    Raises:
        OSError: it cannot be opened.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    if mode & FILE_MODE != FILE_MODE:  # as above
        os.fchmod(fd, mode | FILE_MODE)
    return fd
