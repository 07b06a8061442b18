"""Exceptions of the Python API: one root, with branches by whose fault it is. Each carries its status and numbers."""

from __future__ import annotations

from hbrt.errors import BoardError, StatusError
from hbrt.status import Status, name_of

__all__ = [
    "BoardError",
    "BoardLostError",
    "CallerError",
    "CoreLostError",
    "HbrtError",
    "OpFailedError",
    "OutOfMemoryError",
    "TaskCancelledError",
    "UnknownCommandError",
    "error_for",
]


class HbrtError(StatusError, RuntimeError):
    """A call on a board failed. ``status`` is the code that the C function would return."""

    def __init__(self, status: int, sentence: str, cmd: int | None = None) -> None:
        super().__init__(status, sentence)
        self.status_name = name_of(status)
        self.cmd = cmd

    def __str__(self) -> str:
        where = f"Command {self.cmd:#x}: " if self.cmd is not None else ""
        return f"{where}{self.text or 'no text'} [{self.status_name}]"


class CallerError(HbrtError):
    """The caller's fault: a bad argument, address, core or priority."""


class OutOfMemoryError(HbrtError):
    """DDR, TCM or task slots ran out; the message says which, and how much was free."""


class UnknownCommandError(HbrtError):
    """No op is registered for the command."""


class OpFailedError(HbrtError):
    """The op or the model run failed; ``text`` has the op's message or traceback, or which node failed and why."""


class TaskCancelledError(HbrtError):
    """The task was canceled before a core claimed it."""


class CoreLostError(HbrtError):
    """The core died, or was restarted, while it ran the task."""


class BoardLostError(HbrtError):
    """The daemon or the relay is gone, or this process is a fork of the one that attached."""


_KINDS: dict[int, type[HbrtError]] = {
    Status.HB_SYS_OUT_OF_MEMORY: OutOfMemoryError,
    Status.HB_DSP_OUT_OF_TCM: OutOfMemoryError,
    Status.HB_DSP_TASK_NUM_EXCEED_LIMIT: OutOfMemoryError,
    Status.HB_DNN_OUT_OF_MEMORY: OutOfMemoryError,
    Status.HB_DNN_TASK_NUM_EXCEED_LIMIT: OutOfMemoryError,
    Status.HB_DSP_UNKNOWN_COMMAND: UnknownCommandError,
    Status.HB_DSP_RUN_TASK_FAILED: OpFailedError,
    Status.HB_ERR_MMAP_FAILED: OpFailedError,
    Status.HB_DNN_RUN_TASK_FAILED: OpFailedError,
    Status.HB_DSP_TASK_CANCELLED: TaskCancelledError,
    Status.HB_DSP_CORE_LOST: CoreLostError,
    Status.HB_DSP_WATCHDOG: CoreLostError,
    Status.HB_DSP_BOARD_LOST: BoardLostError,
    Status.HB_SYS_BOARD_LOST: BoardLostError,
    Status.HB_DSP_RELAY_LOST: BoardLostError,
    Status.HB_DSP_FORKED: BoardLostError,
    Status.HB_SYS_FORKED: BoardLostError,
    Status.HB_DSP_NOT_RUNNING: BoardLostError,
    Status.HB_SYS_NOT_RUNNING: BoardLostError,
}
_RUNTIME_CODES = frozenset(int(code) for code in Status)


def error_for(status: int, sentence: str, cmd: int | None = None, *, from_op: bool = False) -> HbrtError:
    """Return the exception for a status: an op's own value is the op's failure, other codes are the caller's fault."""
    kind = _KINDS.get(status)
    if kind is None:
        kind = OpFailedError if from_op or status not in _RUNTIME_CODES else CallerError
    return kind(status, sentence, cmd)
