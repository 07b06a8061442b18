"""Temporary directories: those of killed processes are removed by the next one with the same prefix."""

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
    """Create a private directory, removed at the end; first removes those whose process was killed.

    A process holds a lock on its directory, which ends with the process. A process id would not work, since it is
    reused.

    Args:
        prefix: Prefix of its name, unique to this kind of directory.
        place: Parent directory; None for the directory of temporary files.

    Raises:
        OSError: it cannot be created.
    """
    remove_abandoned(prefix, place)
    with contextlib.ExitStack() as stack:
        while True:
            path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            # Until it is locked, a process that starts at the same time may mistake it for a dead one's.
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                stack.enter_context(_locked(path))
                if path.exists():
                    break
        yield path


def remove_abandoned(prefix: str, place: str | None = None) -> None:
    """Remove directories of ``temporary_directory`` whose process was killed."""
    for old in Path(place or tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), _locked(old):
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a directory, which a dead process no longer holds.

    Raises:
        BlockingIOError: another process holds it. OSError: it is another user's, or not a directory.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        if os.fstat(fd).st_uid != os.getuid():  # root could open it
            raise PermissionError(f"{path} belongs to another user.")
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
