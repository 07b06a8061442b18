"""Exit codes of all verbs, and the failures that they stand for: the only place that decides."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from hbrt.borders.guests import MissingGuestError
from hbrt.errors import BoardError, WrongUseError
from hbrt.settings import BadSettingError
from hbrt.status import Status


class Exit(IntEnum):
    """The meaning of a verb's exit code."""

    GOOD = 0
    FAILED = 1  # the user's op, image or check failed
    USAGE = 2  # wrong usage: bad options, start when running, stop when offline, unknown board
    BROKEN = 3  # the tool or its environment: the daemon is gone, no permission, disk full
    UNCHECKED = 4  # a process of the program is still attached, so its mistakes are not all known
    TIME_LIMIT = 124  # as timeout(1)
    INTERRUPTED = 130  # as in shells: 128 + SIGINT
    UNREAD = 141  # as in shells: 128 + SIGPIPE; nobody reads the output anymore, as in 'hbrt ops | head -1'


_S = Status
_BY_STATUS: dict[int, Exit] = {
    **dict.fromkeys(
        (
            _S.HB_DSP_INVALID_ARGUMENT,
            _S.HB_DSP_INVALID_CORE,
            _S.HB_DSP_INVALID_PRIORITY,
            _S.HB_SYS_INVALID_ARGUMENT,
            _S.HB_DNN_INVALID_ARGUMENT,
            _S.HB_DNN_CAN_NOT_OPEN_FILE,
        ),
        Exit.USAGE,
    ),
    **dict.fromkeys((_S.HB_DSP_TIMEOUT, _S.HB_DNN_TIMEOUT), Exit.TIME_LIMIT),
    **dict.fromkeys(
        (
            _S.HB_SYS_NOT_RUNNING,
            _S.HB_SYS_BOARD_LOST,
            _S.HB_SYS_FORKED,
            _S.HB_DSP_NOT_RUNNING,
            _S.HB_DSP_BOARD_LOST,
            _S.HB_DSP_FORKED,
            _S.HB_DSP_PERMISSION,
            _S.HB_DSP_RELAY_LOST,
        ),
        Exit.BROKEN,
    ),
}

# The first matching row decides.
_BY_KIND: tuple[tuple[type[Exception], Exit], ...] = (
    (WrongUseError, Exit.USAGE),
    (BadSettingError, Exit.USAGE),
    (BoardError, Exit.BROKEN),
    (MissingGuestError, Exit.BROKEN),
    (TimeoutError, Exit.TIME_LIMIT),
    (OSError, Exit.BROKEN),
    (MemoryError, Exit.BROKEN),
    (RecursionError, Exit.USAGE),
)


def exit_for_status(status: int) -> Exit:
    """Exit code for a status of the runtime; any other value came from the user's op, and is its failure."""
    if status == Status.HB_SYS_SUCCESS:
        return Exit.GOOD
    return _BY_STATUS.get(status, Exit.FAILED)


def exit_for(error: Exception) -> Exit | None:
    """Exit code for an expected error, whose text is a message for the user; None for a bug of ours."""
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return exit_for_status(status)
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), None)


def sentence_of(error: Exception) -> str:
    """The message for the user; for errors of the operating system, the file name is appended."""
    if isinstance(error, FileNotFoundError) and not error.filename and not _has_directory():
        return "The current directory no longer exists; change to another one."
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}."
    if isinstance(error, MemoryError):
        return f"Out of memory: {error}." if str(error) else "Out of memory."
    if isinstance(error, RecursionError):
        return "An input is nested too deeply to be read."
    return str(error)


def _has_directory() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True
