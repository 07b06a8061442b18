"""The table of status codes: number, name, message, source.

``HB_DNN_*`` and the first three ``HB_SYS_*`` codes have the public values of the DNN runtime API manual.
The ``HB_DSP_*`` codes are not public: their names and numbers are the emulator's choice, in a separate block that no
public code uses. ``docs/status-codes.md`` is generated from the table below.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Self

_PUBLIC = "public"
_CHOICE = "emulator"


class Status(IntEnum):
    """A status that a call of the vendor's API returns; 0 is success, every error is negative.

    Attributes:
        sentence: Its meaning, and what to do.
        source: Origin of its number: "public" or "emulator".
    """

    sentence: str
    source: str

    def __new__(cls, code: int, sentence: str = "", source: str = _CHOICE) -> Self:
        """A row of the table."""
        self = int.__new__(cls, code)
        self._value_, self.sentence, self.source = code, sentence, source
        return self

    HB_SYS_SUCCESS = 0, "The call succeeded.", _PUBLIC
    HB_DNN_INVALID_ARGUMENT = -6000001, "An argument of the DNN call is not valid.", _PUBLIC
    HB_DNN_INVALID_MODEL = -6000002, "The model file is damaged or is not a model.", _PUBLIC
    HB_DNN_MODEL_NUMBER_EXCEED_LIMIT = -6000003, "Too many models are loaded.", _PUBLIC
    HB_DNN_INVALID_PACKED_DNN_HANDLE = -6000004, "Invalid packed model handle: unknown, or already released.", _PUBLIC
    HB_DNN_INVALID_DNN_HANDLE = -6000005, "Invalid model handle: unknown, or already released.", _PUBLIC
    HB_DNN_CAN_NOT_OPEN_FILE = -6000006, "The model file cannot be opened.", _PUBLIC
    HB_DNN_OUT_OF_MEMORY = -6000007, "There is not enough device memory for the model.", _PUBLIC
    HB_DNN_TIMEOUT = -6000008, "The wait for the model task timed out; the task keeps running.", _PUBLIC
    HB_DNN_TASK_NUM_EXCEED_LIMIT = -6000009, "More than 32 model tasks are alive; release some.", _PUBLIC
    HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT = -6000010, "The chain of small models is too long.", _PUBLIC
    HB_DNN_INVALID_TASK_HANDLE = -6000011, "Invalid model task handle: unknown, or already released.", _PUBLIC
    HB_DNN_RUN_TASK_FAILED = -6000012, "The model task failed while it ran.", _PUBLIC
    HB_DNN_MODEL_IS_RUNNING = -6000013, "The model is in use and cannot be released.", _PUBLIC
    HB_DNN_INCOMPATIBLE_MODEL = -6000014, "The model does not fit this runtime.", _PUBLIC
    HB_DNN_API_USE_ERROR = -6000015, "The DNN calls were made in the wrong order.", _PUBLIC
    HB_DNN_MULTI_PROGRESS_USE_ERROR = -6000016, "Processes use the DNN runtime incorrectly.", _PUBLIC
    HB_SYS_INVALID_ARGUMENT = (
        -6000129,
        "An argument of the memory call is not valid: a null pointer, a size of 0, or an unknown flag.",
        _PUBLIC,
    )
    HB_SYS_OUT_OF_MEMORY = -6000130, "The DDR has no free range of that size; free some blocks.", _PUBLIC
    HB_SYS_REGISTER_MEM_FAILED = (
        -6000131,
        "The physical range is not inside one live block, so it cannot be registered.",
        _PUBLIC,
    )
    HB_SYS_NOT_ALLOCATED = (
        -6000132,
        (
            "No live block of this process starts at that physical address: it was never allocated, was freed before, "
            "or belongs to another process."
        ),
    )
    HB_SYS_NOT_RUNNING = -6000133, "No board is running; start one with 'hbrt start'."
    HB_SYS_BOARD_LOST = -6000134, "The daemon of the board died; start it again and attach again."
    HB_SYS_FORKED = -6000135, "This process is a fork of the one that attached to the board; attach again in the child."
    HB_SYS_NOT_SUPPORTED = -6000136, "The function is declared, but hbrt has no body for it."
    HB_DSP_INVALID_ARGUMENT = -6000257, "An argument of the RPC is not valid: a null pointer or a bad value."
    HB_DSP_INVALID_CORE = -6000258, "dspCoreId names a core that this board does not have."
    HB_DSP_INVALID_PRIORITY = -6000259, "The priority is outside 0..255."
    HB_DSP_INVALID_ADDRESS = (
        -6000260,
        "A physical range is not inside one live block; was a virtual address passed, or the block freed?",
    )
    HB_DSP_UNALIGNED_ADDRESS = -6000261, "An RPC block does not start at a multiple of 8 bytes."
    HB_DSP_TASK_NUM_EXCEED_LIMIT = -6000262, "Every task slot is in use; release finished tasks with hbDSPReleaseTask."
    HB_DSP_INVALID_TASK_HANDLE = -6000263, "The value is not a task handle."
    HB_DSP_TASK_RELEASED = -6000264, "The task handle was already released."
    HB_DSP_FOREIGN_TASK_HANDLE = -6000265, "The task handle belongs to another process or another attachment."
    HB_DSP_TIMEOUT = -6000266, "The wait timed out; the task keeps running and can be waited for again."
    HB_DSP_UNKNOWN_COMMAND = -6000267, "No op is registered for the command; see 'hbrt ops'."
    HB_DSP_RUN_TASK_FAILED = -6000268, "The op raised an exception; the task's text has its traceback, or its sentence."
    HB_DSP_TASK_CANCELLED = -6000269, "The task was cancelled before a core claimed it."
    HB_DSP_CORE_LOST = -6000270, "The core died while it ran the task; other tasks continue."
    HB_DSP_WATCHDOG = -6000271, "The op exceeded its time limit; its core was restarted."
    HB_DSP_NOT_RUNNING = -6000272, "No board is running; start one with 'hbrt start'."
    HB_DSP_BOARD_LOST = -6000273, "The daemon of the board died; start it again and attach again."
    HB_DSP_FORKED = -6000274, "This process is a fork of the one that attached to the board; attach again in the child."
    HB_DSP_OUT_OF_TCM = -6000275, "A TCM bank has no free range of that size."
    HB_DSP_PERMISSION = -6000276, "Only the owner of the block or task may make this request."
    HB_DSP_RELAY_LOST = (
        -6000277,
        (
            "The relay that carried the task died, or cannot be reached; the board keeps running, and the next "
            "call starts or finds a new one."
        ),
    )
    HB_ERR_MMAP_FAILED = -6000300, "The op could not map a physical range; it is not inside one live block."


if TYPE_CHECKING:

    def __getattr__(name: str) -> Status: ...


# The flat names of the vendor's headers: the same objects as the members.
globals().update(Status.__members__)
HB_DSP_SUCCESS = HB_DNN_SUCCESS = Status.HB_SYS_SUCCESS

_CODES = frozenset(map(int, Status))
_OF_MEMORY: dict[int, Status] = {
    Status.HB_DSP_BOARD_LOST: Status.HB_SYS_BOARD_LOST,
    Status.HB_DSP_RELAY_LOST: Status.HB_SYS_BOARD_LOST,  # for a board on another machine, whose memory is lost with it
    Status.HB_DSP_FORKED: Status.HB_SYS_FORKED,
    Status.HB_DSP_NOT_RUNNING: Status.HB_SYS_NOT_RUNNING,
}


def sys_status(code: int) -> int:
    """Return the status of a memory call (hbSys*, a model's tensors) where a task call returns ``code``."""
    return _OF_MEMORY.get(code, code)


def name_of(code: int) -> str:
    """Return the name of a status code, or its decimal number if it is not in the table (an op's own value)."""
    return Status(code).name if code in _CODES else str(code)


def describe(code: int) -> str:
    """Return the message for a status code; a value not in the table came from an op's return statement."""
    return Status(code).sentence if code in _CODES else f"The op returned {code}, which is not a runtime status code."
