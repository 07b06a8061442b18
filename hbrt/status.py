"""Every status code once: number, name, sentence, source.

``HB_DNN_*`` and the first three ``HB_SYS_*`` codes have the public values of the DNN runtime API manual.
The ``HB_DSP_*`` codes are not public: their names and numbers are the emulator's choice, in a block of
their own that no public code uses. ``docs/status-codes.md`` is generated from the table below.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

_PUBLIC = "public"
_CHOICE = "emulator"


class Status(IntEnum):
    """A status that a call of the vendor's API returns; 0 is success, every error is negative."""

    HB_SYS_SUCCESS = 0
    HB_DNN_INVALID_ARGUMENT = -6000001
    HB_DNN_INVALID_MODEL = -6000002
    HB_DNN_MODEL_NUMBER_EXCEED_LIMIT = -6000003
    HB_DNN_INVALID_PACKED_DNN_HANDLE = -6000004
    HB_DNN_INVALID_DNN_HANDLE = -6000005
    HB_DNN_CAN_NOT_OPEN_FILE = -6000006
    HB_DNN_OUT_OF_MEMORY = -6000007
    HB_DNN_TIMEOUT = -6000008
    HB_DNN_TASK_NUM_EXCEED_LIMIT = -6000009
    HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT = -6000010
    HB_DNN_INVALID_TASK_HANDLE = -6000011
    HB_DNN_RUN_TASK_FAILED = -6000012
    HB_DNN_MODEL_IS_RUNNING = -6000013
    HB_DNN_INCOMPATIBLE_MODEL = -6000014
    HB_DNN_API_USE_ERROR = -6000015
    HB_DNN_MULTI_PROGRESS_USE_ERROR = -6000016
    HB_SYS_INVALID_ARGUMENT = -6000129
    HB_SYS_OUT_OF_MEMORY = -6000130
    HB_SYS_REGISTER_MEM_FAILED = -6000131
    HB_SYS_NOT_ALLOCATED = -6000132
    HB_SYS_NOT_RUNNING = -6000133
    HB_SYS_BOARD_LOST = -6000134
    HB_SYS_FORKED = -6000135
    HB_DSP_INVALID_ARGUMENT = -6000257
    HB_DSP_INVALID_CORE = -6000258
    HB_DSP_INVALID_PRIORITY = -6000259
    HB_DSP_INVALID_ADDRESS = -6000260
    HB_DSP_UNALIGNED_ADDRESS = -6000261
    HB_DSP_TASK_NUM_EXCEED_LIMIT = -6000262
    HB_DSP_INVALID_TASK_HANDLE = -6000263
    HB_DSP_TASK_RELEASED = -6000264
    HB_DSP_FOREIGN_TASK_HANDLE = -6000265
    HB_DSP_TIMEOUT = -6000266
    HB_DSP_UNKNOWN_COMMAND = -6000267
    HB_DSP_RUN_TASK_FAILED = -6000268
    HB_DSP_TASK_CANCELLED = -6000269
    HB_DSP_CORE_LOST = -6000270
    HB_DSP_WATCHDOG = -6000271
    HB_DSP_NOT_RUNNING = -6000272
    HB_DSP_BOARD_LOST = -6000273
    HB_DSP_FORKED = -6000274
    HB_DSP_OUT_OF_TCM = -6000275
    HB_DSP_PERMISSION = -6000276
    HB_DSP_RELAY_LOST = -6000277
    HB_ERR_MMAP_FAILED = -6000300


class Entry(NamedTuple):
    """One row of the table: the code, what it means and what to do, and where its number comes from."""

    status: Status
    sentence: str
    source: str


def _row(status: Status, sentence: str, source: str = _CHOICE) -> Entry:
    return Entry(status, sentence, source)


_S = Status
TABLE: tuple[Entry, ...] = (
    _row(_S.HB_SYS_SUCCESS, "The call succeeded.", _PUBLIC),
    _row(_S.HB_DNN_INVALID_ARGUMENT, "An argument of the DNN call is not valid.", _PUBLIC),
    _row(_S.HB_DNN_INVALID_MODEL, "The model file is damaged or is not a model.", _PUBLIC),
    _row(_S.HB_DNN_MODEL_NUMBER_EXCEED_LIMIT, "Too many models are loaded.", _PUBLIC),
    _row(_S.HB_DNN_INVALID_PACKED_DNN_HANDLE, "The packed model handle is not a live one.", _PUBLIC),
    _row(_S.HB_DNN_INVALID_DNN_HANDLE, "The model handle is not a live one.", _PUBLIC),
    _row(_S.HB_DNN_CAN_NOT_OPEN_FILE, "The model file cannot be opened.", _PUBLIC),
    _row(_S.HB_DNN_OUT_OF_MEMORY, "There is not enough device memory for the model.", _PUBLIC),
    _row(_S.HB_DNN_TIMEOUT, "The wait for the model task timed out; the task goes on.", _PUBLIC),
    _row(_S.HB_DNN_TASK_NUM_EXCEED_LIMIT, "More than 32 model tasks are alive; release some.", _PUBLIC),
    _row(_S.HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT, "The chain of small models is too long.", _PUBLIC),
    _row(_S.HB_DNN_INVALID_TASK_HANDLE, "The model task handle is not a live one.", _PUBLIC),
    _row(_S.HB_DNN_RUN_TASK_FAILED, "The model task failed while it ran.", _PUBLIC),
    _row(_S.HB_DNN_MODEL_IS_RUNNING, "The model is in use and cannot be released.", _PUBLIC),
    _row(_S.HB_DNN_INCOMPATIBLE_MODEL, "The model does not fit this runtime.", _PUBLIC),
    _row(_S.HB_DNN_API_USE_ERROR, "The DNN calls were made in a wrong order.", _PUBLIC),
    _row(_S.HB_DNN_MULTI_PROGRESS_USE_ERROR, "The DNN runtime is used by processes in a wrong way.", _PUBLIC),
    _row(
        _S.HB_SYS_INVALID_ARGUMENT,
        "An argument of the memory call is not valid: a null pointer, a size of 0, or an unknown flag.",
        _PUBLIC,
    ),
    _row(_S.HB_SYS_OUT_OF_MEMORY, "The DDR has no free range of that size; free some blocks.", _PUBLIC),
    _row(
        _S.HB_SYS_REGISTER_MEM_FAILED,
        "The physical range is not inside one live block, so it cannot be registered.",
        _PUBLIC,
    ),
    _row(
        _S.HB_SYS_NOT_ALLOCATED,
        "No live block of this process starts at that physical address: it was never allocated, was freed "
        "before, or belongs to another process.",
    ),
    _row(_S.HB_SYS_NOT_RUNNING, "No board is running; start one with 'hbrt start'."),
    _row(_S.HB_SYS_BOARD_LOST, "The daemon of the board has gone; start it again and attach anew."),
    _row(
        _S.HB_SYS_FORKED,
        "This process is a fork of the one that attached to the board; attach anew in the child.",
    ),
    _row(_S.HB_DSP_INVALID_ARGUMENT, "An argument of the RPC is not valid: a null pointer or a bad value."),
    _row(_S.HB_DSP_INVALID_CORE, "dspCoreId names a core that this board does not have."),
    _row(_S.HB_DSP_INVALID_PRIORITY, "The priority is outside 0..255."),
    _row(
        _S.HB_DSP_INVALID_ADDRESS,
        "A physical range is not inside one live block; was a virtual address passed, or the block freed?",
    ),
    _row(_S.HB_DSP_UNALIGNED_ADDRESS, "An RPC block does not start at a multiple of 8 bytes."),
    _row(
        _S.HB_DSP_TASK_NUM_EXCEED_LIMIT,
        "Every task slot is in use; release finished tasks with hbDSPReleaseTask.",
    ),
    _row(_S.HB_DSP_INVALID_TASK_HANDLE, "The value is not a task handle."),
    _row(_S.HB_DSP_TASK_RELEASED, "The task handle was released before."),
    _row(_S.HB_DSP_FOREIGN_TASK_HANDLE, "The task handle belongs to another process or another attachment."),
    _row(_S.HB_DSP_TIMEOUT, "The wait timed out; the task goes on and can be waited for again."),
    _row(_S.HB_DSP_UNKNOWN_COMMAND, "No op is registered for the command; see 'hbrt ops'."),
    _row(_S.HB_DSP_RUN_TASK_FAILED, "The op raised an exception; the task's text has its traceback, or its sentence."),
    _row(_S.HB_DSP_TASK_CANCELLED, "The task was cancelled before a core claimed it."),
    _row(_S.HB_DSP_CORE_LOST, "The core died while it ran the task; other tasks go on."),
    _row(_S.HB_DSP_WATCHDOG, "The op outlived its time limit; its core was restarted."),
    _row(_S.HB_DSP_NOT_RUNNING, "No board is running; start one with 'hbrt start'."),
    _row(_S.HB_DSP_BOARD_LOST, "The daemon of the board has gone; start it again and attach anew."),
    _row(
        _S.HB_DSP_FORKED,
        "This process is a fork of the one that attached to the board; attach anew in the child.",
    ),
    _row(_S.HB_DSP_OUT_OF_TCM, "A TCM bank has no free range of that size."),
    _row(_S.HB_DSP_PERMISSION, "The request is for the owner of the block or of the task only."),
    _row(
        _S.HB_DSP_RELAY_LOST,
        "The relay that carried the task has gone, or none can be reached; the board goes on, and the next call starts "
        "or finds a new one.",
    ),
    _row(_S.HB_ERR_MMAP_FAILED, "The op could not map a physical range; it is not inside one live block."),
)

_BY_CODE = {int(entry.status): entry for entry in TABLE}

# The flat names of the vendor's headers: the same objects as the members.
HB_DSP_SUCCESS = Status.HB_SYS_SUCCESS
HB_DNN_SUCCESS = Status.HB_SYS_SUCCESS
HB_SYS_SUCCESS = Status.HB_SYS_SUCCESS
HB_DNN_INVALID_ARGUMENT = Status.HB_DNN_INVALID_ARGUMENT
HB_DNN_INVALID_MODEL = Status.HB_DNN_INVALID_MODEL
HB_DNN_MODEL_NUMBER_EXCEED_LIMIT = Status.HB_DNN_MODEL_NUMBER_EXCEED_LIMIT
HB_DNN_INVALID_PACKED_DNN_HANDLE = Status.HB_DNN_INVALID_PACKED_DNN_HANDLE
HB_DNN_INVALID_DNN_HANDLE = Status.HB_DNN_INVALID_DNN_HANDLE
HB_DNN_CAN_NOT_OPEN_FILE = Status.HB_DNN_CAN_NOT_OPEN_FILE
HB_DNN_OUT_OF_MEMORY = Status.HB_DNN_OUT_OF_MEMORY
HB_DNN_TIMEOUT = Status.HB_DNN_TIMEOUT
HB_DNN_TASK_NUM_EXCEED_LIMIT = Status.HB_DNN_TASK_NUM_EXCEED_LIMIT
HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT = Status.HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT
HB_DNN_INVALID_TASK_HANDLE = Status.HB_DNN_INVALID_TASK_HANDLE
HB_DNN_RUN_TASK_FAILED = Status.HB_DNN_RUN_TASK_FAILED
HB_DNN_MODEL_IS_RUNNING = Status.HB_DNN_MODEL_IS_RUNNING
HB_DNN_INCOMPATIBLE_MODEL = Status.HB_DNN_INCOMPATIBLE_MODEL
HB_DNN_API_USE_ERROR = Status.HB_DNN_API_USE_ERROR
HB_DNN_MULTI_PROGRESS_USE_ERROR = Status.HB_DNN_MULTI_PROGRESS_USE_ERROR
HB_SYS_INVALID_ARGUMENT = Status.HB_SYS_INVALID_ARGUMENT
HB_SYS_OUT_OF_MEMORY = Status.HB_SYS_OUT_OF_MEMORY
HB_SYS_REGISTER_MEM_FAILED = Status.HB_SYS_REGISTER_MEM_FAILED
HB_SYS_NOT_ALLOCATED = Status.HB_SYS_NOT_ALLOCATED
HB_SYS_NOT_RUNNING = Status.HB_SYS_NOT_RUNNING
HB_SYS_BOARD_LOST = Status.HB_SYS_BOARD_LOST
HB_SYS_FORKED = Status.HB_SYS_FORKED
HB_DSP_INVALID_ARGUMENT = Status.HB_DSP_INVALID_ARGUMENT
HB_DSP_INVALID_CORE = Status.HB_DSP_INVALID_CORE
HB_DSP_INVALID_PRIORITY = Status.HB_DSP_INVALID_PRIORITY
HB_DSP_INVALID_ADDRESS = Status.HB_DSP_INVALID_ADDRESS
HB_DSP_UNALIGNED_ADDRESS = Status.HB_DSP_UNALIGNED_ADDRESS
HB_DSP_TASK_NUM_EXCEED_LIMIT = Status.HB_DSP_TASK_NUM_EXCEED_LIMIT
HB_DSP_INVALID_TASK_HANDLE = Status.HB_DSP_INVALID_TASK_HANDLE
HB_DSP_TASK_RELEASED = Status.HB_DSP_TASK_RELEASED
HB_DSP_FOREIGN_TASK_HANDLE = Status.HB_DSP_FOREIGN_TASK_HANDLE
HB_DSP_TIMEOUT = Status.HB_DSP_TIMEOUT
HB_DSP_UNKNOWN_COMMAND = Status.HB_DSP_UNKNOWN_COMMAND
HB_DSP_RUN_TASK_FAILED = Status.HB_DSP_RUN_TASK_FAILED
HB_DSP_TASK_CANCELLED = Status.HB_DSP_TASK_CANCELLED
HB_DSP_CORE_LOST = Status.HB_DSP_CORE_LOST
HB_DSP_WATCHDOG = Status.HB_DSP_WATCHDOG
HB_DSP_NOT_RUNNING = Status.HB_DSP_NOT_RUNNING
HB_DSP_BOARD_LOST = Status.HB_DSP_BOARD_LOST
HB_DSP_FORKED = Status.HB_DSP_FORKED
HB_DSP_OUT_OF_TCM = Status.HB_DSP_OUT_OF_TCM
HB_DSP_PERMISSION = Status.HB_DSP_PERMISSION
HB_DSP_RELAY_LOST = Status.HB_DSP_RELAY_LOST
HB_ERR_MMAP_FAILED = Status.HB_ERR_MMAP_FAILED


_OF_MEMORY: dict[int, Status] = {
    Status.HB_DSP_BOARD_LOST: Status.HB_SYS_BOARD_LOST,
    Status.HB_DSP_RELAY_LOST: Status.HB_SYS_BOARD_LOST,  # of a board on another machine: the memory went with it
    Status.HB_DSP_FORKED: Status.HB_SYS_FORKED,
    Status.HB_DSP_NOT_RUNNING: Status.HB_SYS_NOT_RUNNING,
}


def sys_status(code: int) -> int:
    """What a call on memory (hbSys*, a model's tensors) answers where a call on tasks answers ``code``."""
    return _OF_MEMORY.get(code, code)


def name_of(code: int) -> str:
    """Name of a status code, or its decimal number when it is not in the table (an op's own value)."""
    entry = _BY_CODE.get(code)
    return entry.status.name if entry else str(code)


def describe(code: int) -> str:
    """Sentence for a status code; a value that is not in the table came from an op's return statement."""
    entry = _BY_CODE.get(code)
    return entry.sentence if entry else f"The op returned {code}, which is not a code of the runtime."
