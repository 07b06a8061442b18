"""Directories and files that only this user can access, and with full access, whatever the umask."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFSOCK: "a socket",
}


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents; an existing one is left unchanged.

    Raises:
        FileExistsError: something else is there. OSError: it cannot be created.
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
    if path.lstat().st_mode & 0o777 != DIRECTORY_MODE:  # the umask removed permissions
        path.chmod(DIRECTORY_MODE)


def open_file(path: Path, flags: int) -> int:
    """Open a regular file that has no other name, not inheritable; never opens or waits for anything else.

    Args:
        path: The file.
        flags: As for ``os.open``.

    Raises:
        OSError: it cannot be opened, or is a link (ELOOP), a FIFO, a directory, a socket, a device, or one of several
            names of a file that may be outside this directory.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, FILE_MODE)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
            raise OSError(error.errno, _why_not(path.lstat()), str(path)) from None
        raise
    info = os.fstat(fd)
    if why := _why_not(info):
        os.close(fd)
        raise OSError(errno.EINVAL, why, str(path))
    mode = stat.S_IMODE(info.st_mode)
    if mode & FILE_MODE != FILE_MODE:  # as above
        os.fchmod(fd, mode | FILE_MODE)
    return fd


def _why_not(info: os.stat_result) -> str:
    """Say why a file is not private, from its status; empty if it is."""
    if not stat.S_ISREG(info.st_mode):
        kind = _KINDS.get(stat.S_IFMT(info.st_mode), "a device")
        return f"it is {kind}, not a regular file; remove it"
    if info.st_nlink > 1:
        return f"it is one of {info.st_nlink} hard links to a file, which may be another user's; remove it"
    return ""
