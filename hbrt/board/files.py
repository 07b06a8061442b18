"""A board's files: its directory, which must be private; its lock, held by one daemon; leftovers of a dead one."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path

from hbrt.board import private_files
from hbrt.board.paths import BoardPaths, default_home
from hbrt.errors import BoardBusyError, BoardError

_MAX_TRIES = 10
_MAX_LOOKS = 100
_LOOK_SECONDS = 0.01
# struct flock of a 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")
_WHOLE_FILE = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def make_directory(paths: BoardPaths) -> None:
    """Create the board's directory, or accept an existing one that is private to us.

    Raises:
        BoardError: it is a link, another user's, or open to others.
    """
    path, why = paths.path, ""
    for _ in range(_MAX_TRIES):
        try:
            for path in (paths.path.parent, paths.path):
                private_files.make_directory(path)
            check_directory(paths)
            return
        except FileExistsError:
            raise BoardError(f"{path} is not a directory; remove it or choose another board name.") from None
        except OSError as error:
            why = error.strerror or str(error)
            if not isinstance(error, FileNotFoundError):
                break  # else the last board of this home has just ended and removed the empty directories
    raise BoardError(f"Cannot create the board directory {path}: {why}.")


def check_directory(paths: BoardPaths) -> None:
    """Refuse a board directory that is a link, another user's, or open to others, or that others could replace.

    Raises:
        BoardError: as above, or it cannot be read. FileNotFoundError is passed on.
    """
    parent = paths.path.parent
    try:
        _check_ours(paths.path, "board directory")
        if parent == default_home():
            _check_ours(parent, "home of the boards")
            return
        info = parent.stat()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BoardError(f"Cannot read board {paths.path}: {error.strerror}.") from None
    if info.st_uid not in {0, os.getuid()} and os.getuid() != 0:
        raise BoardError(
            f"The directory {parent} belongs to user {info.st_uid}, who could replace the board in it; choose another."
        )
    if info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
        raise BoardError(
            f"The directory {parent} is writable by everyone, who could replace the board in it; "
            f"run 'chmod o-w {parent}'."
        )


def _check_ours(path: Path, what: str) -> None:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        raise BoardError(f"The {what} {path} is a symbolic link; name the real directory.")
    if not stat.S_ISDIR(info.st_mode):
        raise BoardError(f"{path} is not a directory; remove it or choose another board name.")
    if info.st_uid != os.getuid():
        raise BoardError(f"The {what} {path} belongs to user {info.st_uid}; choose another.")
    if info.st_mode & 0o077:
        raise BoardError(
            f"The {what} {path} has mode {stat.S_IMODE(info.st_mode):o}, open to others; run 'chmod 700 {path}'."
        )


def take_lock(paths: BoardPaths) -> int:
    """Become the board's only daemon; the returned descriptor holds the lock until it is closed.

    Raises:
        BoardBusyError: a daemon is running; the message names its process.
    """
    fd = lock_file(paths.lock)
    if fd is None:
        raise BoardBusyError(already_running(paths, _holder_soon(paths.lock)))
    return fd


def lock_file(path: Path) -> int | None:
    """Lock a file, created if missing, and write this process's id into it; None if another process has it.

    Returns:
        Descriptor that holds the lock until it is closed.

    Raises:
        BoardError: the file cannot be opened or written, or is a link.
    """
    while True:
        fd = _open_lock(path)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _WHOLE_FILE)
        except BlockingIOError:
            os.close(fd)
            return None
        if is_still(fd, path):
            break
        os.close(fd)  # the previous daemon removed the file between our open and our lock
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        path.unlink(missing_ok=True)
        os.close(fd)
        raise BoardError(f"Cannot write the lock {path}: {error.strerror}.") from None
    return fd


def _holder_soon(path: Path) -> int | str:
    """Return the process that holds a lock; one that has just taken it may not have replaced a dead one's id yet."""
    for _ in range(_MAX_LOOKS):
        holder = lock_holder(path)
        if holder is not None and Path(f"/proc/{holder}").exists():
            return holder
        time.sleep(_LOOK_SECONDS)
    return "unknown"


def already_running(paths: BoardPaths, holder: int | str) -> str:
    """Return the message for a start while the daemon ``holder`` is running."""
    return (
        f"Board {paths.name} is already running: its daemon is process {holder}. Nothing was changed; "
        "'hbrt restart' reloads its image, 'hbrt restart --image FILE' loads another; 'hbrt stop' stops it."
    )


def _open_lock(path: Path) -> int:
    try:
        return private_files.open_file(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be opened: {error.strerror}"
        raise BoardError(f"The lock {path} {why}.") from None


def is_still(fd: int, path: Path) -> bool:
    """Return whether a path still names the file of this descriptor: it may have been removed, or replaced."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def daemon_pid(paths: BoardPaths) -> int | None:
    """Return the running daemon's process id, or None; checks the lock, not just the file's text.

    Raises:
        BoardError: the directory is not private to us, or cannot be read.
    """
    try:
        check_directory(paths)
    except FileNotFoundError:
        return None
    return lock_holder(paths.lock)


def lock_holder(path: Path) -> int | None:
    """Return the id of the process that holds a lock of ``lock_file``, or None.

    Raises:
        BoardError: the file cannot be read.
    """
    try:
        fd = private_files.open_file(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BoardError(f"Cannot read the lock {path}: {error.strerror}.") from None
    try:
        # Only a query: it must not hold the lock while a starting daemon wants it.
        found = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _WHOLE_FILE))
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    finally:
        os.close(fd)
    return int(text) if found[0] != fcntl.F_UNLCK and text.isdigit() else None


def boards_in(place: Path) -> list[BoardPaths]:
    """Return the boards in a home directory, running or not, by name; empty if there is no home.

    Raises:
        OSError: the home cannot be read.
    """
    try:
        entries = sorted(place.iterdir())
    except FileNotFoundError:
        return []
    return [
        BoardPaths(entry)
        for entry in entries
        if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith(".")
    ]


def leftovers(paths: BoardPaths) -> list[Path]:
    """Return files that a dead daemon left in its directory; call while holding the lock, or when none runs."""
    named = [paths.attach, paths.control, paths.hidden_control, paths.relay, paths.relay_tasks, paths.relay_lock]
    found = [
        *named,
        paths.trace_switch,
        *sorted(paths.path.glob("image-*")),
        *sorted(paths.path.glob("model-*")),
        *sorted(paths.path.glob("prepared-*")),
        *sorted(paths.trace.glob("*")),
    ]
    return [path for path in found if os.path.lexists(path)]


def remove_stopped(paths: BoardPaths, *, keep_log: bool = True) -> list[str]:
    """Remove what a board without a daemon left behind; returns the names.

    Raises:
        BoardBusyError: a daemon is running, perhaps started meanwhile.
    """
    lock = take_lock(paths)
    try:
        return [path.name for path in remove_files(paths, keep_log=keep_log)]
    finally:
        os.close(lock)


def remove_files(paths: BoardPaths, *, keep_log: bool = True) -> list[Path]:
    """Remove a board's files and, if then empty, its directory; returns what was removed."""
    targets = [*leftovers(paths), paths.lock]
    if not keep_log:
        targets.append(paths.log)
    removed = []
    for path in targets:
        try:
            path.unlink()
        except (FileNotFoundError, IsADirectoryError):  # a directory is not one of ours
            continue
        removed.append(path)
    with suppress(OSError):
        paths.trace.rmdir()
    try:
        paths.path.rmdir()
        if paths.path.parent == default_home():
            paths.path.parent.rmdir()
    except OSError:
        pass  # the log, user files, or another board are still there
    return removed
