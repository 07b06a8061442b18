"""Temporary directories that do not stay when their process is killed: the next one of the same prefix removes them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary_directory(prefix: str, place: str | None = None) -> Iterator[Path]:
    """A directory of this user alone, gone at the end; those whose process was killed go before.

    A process holds a lock on its directory, which ends with it. A process id would not do: another process gets it.

    Args:
        prefix: What its name begins with, and that of no other kind of directory.
        place: Where; None for the directory of temporary files.

    Raises:
        OSError: it cannot be made.
    """
    remove_abandoned(prefix, place)
    with contextlib.ExitStack() as stack:
        while True:
            path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            # A process that starts at the same time may take it for a dead one's before it is locked.
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                stack.enter_context(_locked(path))
                if path.exists():
                    break
        yield path


def remove_abandoned(prefix: str, place: str | None = None) -> None:
    """Remove the directories of ``temporary_directory`` whose process was killed."""
    for old in Path(place or tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), _locked(old):
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a directory, which a process that has died holds no more.

    Raises:
        BlockingIOError: another process holds it. OSError: it is another user's, or no directory.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        if os.fstat(fd).st_uid != os.getuid():  # the superuser could open it
            raise PermissionError(f"{path} is another user's.")
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
