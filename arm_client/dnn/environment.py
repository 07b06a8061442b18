"""The board's environment variables for models: their meaning on the board, their effect here, and the log.

docs/dnn-layers.md has a table generated from this one. A variable that is set but has no effect gives one warning.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from arm_client.cabi.call_site import call_site
from arm_client.cabi.last_error import note
from arm_client.dnn.errors import ModelError
from hbrt.borders.printable import LINES, printable
from hbrt.status import Status, name_of


class Level(IntEnum):
    """Log levels: the three named in the manual, and two lower ones, which are never used."""

    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4
    FATAL = 5


class Variable(NamedTuple):
    """One variable of the board's runtime.

    Attributes:
        name: Its name.
        meaning: Its meaning on the board.
        here: Its effect here.
        is_honored: Otherwise it gives a warning line with ``here``.
        right_value: A case-insensitive value that requests the default behavior and gives no warning.
    """

    name: str
    meaning: str
    here: str
    is_honored: bool = False
    right_value: str = ""


TABLE = (
    Variable(
        "HB_DNN_LOG_LEVEL",
        "which records the log shows: 3 warnings and above (default), 4 errors, 5 fatal ones, 0 none",
        "the same, on standard error. A call of the program's that was refused is an error, with last_error()'s "
        "sentence; so is the wait for a task that failed, but not one that expires",
        is_honored=True,
    ),
    Variable(
        "HB_DNN_PLUGIN_PATH",
        "libraries with layers",
        "Python files with layers, or directories of them, separated by os.pathsep; read when HB_DNN_ENABLE_DSP is 1",
        is_honored=True,
    ),
    Variable(
        "HB_DNN_ENABLE_DSP",
        "1 lets models run operators on the DSP",
        "1 loads the shipped plugin and those of HB_DNN_PLUGIN_PATH, before the first model is loaded",
        is_honored=True,
    ),
    Variable(
        "HB_DNN_PROFILER_LOG_PATH",
        "directory for the times of each stage",
        "a directory there for each model gets profiler.log and profiler.csv, at its release or when the process ends",
        is_honored=True,
    ),
    Variable(
        "HB_MAX_THREAD_NUM",
        "CPU threads of a model, default 4",
        "threads of one onnxruntime session; half of the CPUs by default",
        is_honored=True,
    ),
    Variable("HB_MAX_TASK_NUM", "tasks in parallel, default 8", "32 model tasks can be alive, and two cores run them"),
    Variable("HB_DNN_CONV_MAP_PATH", "which convolution layers to dump", "no compiled layers to dump"),
    Variable(
        "HB_DNN_DUMP_PATH",
        "destination of the results of convolution layers",
        "no layer is dumped; 'hrt_model_exec infer --dump_intermediate' dumps every node's result",
    ),
    Variable(
        "HB_DNN_SIM_PLATFORM",
        "chip of the vendor's simulator",
        "the chip is always the J5 (BAYES)",
        right_value="BAYES",
    ),
    Variable(
        "HB_DNN_SIM_BPU_MEM_SIZE", "the vendor's simulator: memory in MB", "HBRT_DDR sets how much memory a board has"
    ),
    Variable(
        "HB_DNN_ENABLE_PERFETTO",
        "true switches tracing on",
        "true traces the board from the first model on, in process; the trace is written when the process ends. See "
        "[time.md](time.md#as-a-timeline)",
        is_honored=True,
    ),
    Variable(
        "HB_DNN_PERFETTO_CONFIG_PATH",
        "configuration of the trace",
        "a JSON file whose field trace_record_file names the trace, dnn.pftrace without it; a relative name is in the "
        "working directory, and an existing file is refused. Other fields have no effect",
        is_honored=True,
    ),
    Variable("HB_NN_LOG_LEVEL", "J6: which records the log shows", "this is a J5; it is HB_DNN_LOG_LEVEL there"),
    Variable("HB_UCP_LOG_LEVEL", "J6: which records the log shows", "this is a J5; it is HB_DNN_LOG_LEVEL there"),
    Variable("HB_UCP_LOG_PATH", "J6: file for the log", "this is a J5; its log is standard error"),
    Variable("HB_UCP_CUSTOM_SCHEDULE_CONFIG", "J6: bypasses the scheduler", "this is a J5; it always schedules"),
    Variable("HB_UCP_ENABLE_PERFETTO", "J6: switches tracing on", "this is a J5; it is HB_DNN_ENABLE_PERFETTO there"),
    Variable(
        "HB_UCP_PERFETTO_CONFIG_PATH",
        "J6: configuration of the trace",
        "this is a J5; it is HB_DNN_PERFETTO_CONFIG_PATH there",
    ),
    Variable("HB_UCP_TRACE_LOG_LEVEL", "J6: what is traced to the log", "no trace"),
    Variable("HB_UCP_USE_ALOG", "J6: log to Android's log", "the log is standard error"),
)
TRACE_FILE = "dnn.pftrace"
_warned: set[str] = set()
_lock = threading.Lock()


def check() -> None:
    """Warn about each variable that is set but has no effect, once per process.

    Raises:
        ModelError: HB_DNN_INVALID_ARGUMENT: an honored variable has an invalid value.
    """
    log_level()
    threads = os.environ.get("HB_MAX_THREAD_NUM")
    if threads and not (threads.isdecimal() and int(threads) > 0):
        raise _bad("HB_MAX_THREAD_NUM", threads, "a number of threads above 0")
    is_dsp_enabled()
    trace_file()
    for variable in TABLE:
        value = os.environ.get(variable.name)
        if not variable.is_honored and value and value.upper() != variable.right_value:
            warn_once(f"{variable.name} is set but has no effect here: {variable.here}.")


def log_level() -> int:
    """HB_DNN_LOG_LEVEL: records of this level and above are shown; 0 for none.

    Raises:
        ModelError: HB_DNN_INVALID_ARGUMENT: it is not a level.
    """
    text = os.environ.get("HB_DNN_LOG_LEVEL") or str(int(Level.WARNING))
    if text not in {"0", *(str(int(level)) for level in Level)}:
        raise _bad("HB_DNN_LOG_LEVEL", text, "0 for none, or the lowest level to show, 1 to 5; 3 for warnings")
    return int(text)


def is_dsp_enabled() -> bool:
    """HB_DNN_ENABLE_DSP: whether layers of plugins are used.

    Raises:
        ModelError: HB_DNN_INVALID_ARGUMENT: it is neither 1 nor 0.
    """
    text = os.environ.get("HB_DNN_ENABLE_DSP") or "0"
    if text.lower() not in {"0", "1", "true", "false"}:
        raise _bad("HB_DNN_ENABLE_DSP", text, "1 or 0")
    return text.lower() in {"1", "true"}


def trace_file() -> Path | None:
    """The file of the trace requested by HB_DNN_ENABLE_PERFETTO; None for no trace.

    Raises:
        ModelError: HB_DNN_INVALID_ARGUMENT: it is not a yes or no, or the configuration cannot be read.
    """
    text = os.environ.get("HB_DNN_ENABLE_PERFETTO") or "false"
    if text.lower() not in {"0", "1", "true", "false"}:
        raise _bad("HB_DNN_ENABLE_PERFETTO", text, "true or false")
    if text.lower() not in {"1", "true"}:
        return None
    path = os.environ.get("HB_DNN_PERFETTO_CONFIG_PATH")
    if not path:
        return Path(TRACE_FILE)
    try:
        named = json.loads(Path(path).read_text(encoding="utf-8")).get("trace_record_file", TRACE_FILE)
    except (OSError, ValueError, AttributeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a JSON object"
        raise _bad("HB_DNN_PERFETTO_CONFIG_PATH", path, f"a file that can be read: {why}") from None
    if not isinstance(named, str) or not named:
        raise _bad("trace_record_file", f"{named} in {path}", "the name of a file")
    return Path(named)


def log(level: Level, text: str) -> None:
    """Write one record to standard error if its level is shown."""
    try:
        shown = log_level()
    except ModelError:
        shown = Level.WARNING
    if shown and level >= shown and sys.stderr is not None:
        sys.stderr.write(f"[DNN] {level.name}: {printable(text, LINES)}\n")


def warn(text: str) -> None:
    """Log a warning."""
    log(Level.WARNING, text)


def warn_once(text: str) -> None:
    """Log a warning once per process."""
    with _lock:
        if text in _warned:
            return
        _warned.add(text)
    warn(text)


def _bad(name: str, value: str, wanted: str) -> ModelError:
    return ModelError(Status.HB_DNN_INVALID_ARGUMENT, f"{name} is {value!r}; must be {wanted}.")


def refused(status: int, sentence: str) -> int:
    """Return a status from a C name; its message is logged as an error and stored for last_error(). For C names.

    An expired wait is not logged, since it is a normal result, nor are this package's own calls, since they raise.
    """
    caller = sys._getframe(1).f_back  # noqa: SLF001 - who called the C name; none where the interpreter did, as at exit
    module = "" if caller is None else str(caller.f_globals.get("__name__"))
    is_programs = not module.startswith("arm_client.") or module.startswith("arm_client.c_library.")  # a C program's
    if is_programs and status != Status.HB_DNN_TIMEOUT:
        with contextlib.suppress(Exception):  # stderr is closed: C names never raise
            log(Level.ERROR, f"{sentence} [{name_of(status)}] at {call_site()}")
    return note(status, sentence)
