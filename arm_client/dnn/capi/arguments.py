"""Read the arguments of the C names: handles, out-parameters, arrays, numbers; errors have a message."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from arm_client.cabi.arguments import deref, integer, referent, short_repr
from arm_client.cabi.last_error import returning_status
from arm_client.dnn.cores.bpu import ALL_CORES
from arm_client.dnn.environment import refused
from arm_client.dnn.errors import bad_argument, one_line
from hbrt.ddr.layout import MAX_CORES
from hbrt.dnn_types import hbDNNInferCtrlParam, hbDNNTensor
from hbrt.errors import StatusError
from hbrt.status import Status

_MAX_WAIT_MS = (1 << 31) - 1  # maximum of a C int; 24 days


def _status_of(error: Exception, name: str) -> tuple[int, str]:
    if isinstance(error, StatusError):
        return error.status, error.text
    if isinstance(error, MemoryError):
        return Status.HB_DNN_OUT_OF_MEMORY, f"{name}: the host is out of memory: {one_line(error)}"
    return (  # the caller's object may raise anything
        Status.HB_DNN_INVALID_ARGUMENT,
        f"{name} cannot use an argument: {type(error).__name__}: {one_line(error)}",
    )


returns_status = returning_status(Exception, _status_of, refused)


def checked_ctrl(ctrl: object) -> hbDNNInferCtrlParam:
    """Return a copy of a task's scheduling parameters.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    given = deref(ctrl, hbDNNInferCtrlParam)
    if given is None:
        raise bad_argument(f"The control parameter is {short_repr(ctrl)}; pass an hbDNNInferCtrlParam.")
    check_schedule(given.bpuCoreId, given.priority)
    if not 0 <= given.dspCoreId < 1 << MAX_CORES:
        raise bad_argument(f"dspCoreId is {given.dspCoreId}; use HB_DSP_CORE_ANY (0) or a mask of cores.")
    return hbDNNInferCtrlParam.from_buffer_copy(given)


def check_schedule(bpu_core_id: int, priority: int) -> None:
    """Check the BPU cores and priority of a control parameter.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    if not 0 <= bpu_core_id <= ALL_CORES:
        raise bad_argument(
            f"bpuCoreId is {bpu_core_id}; use HB_BPU_CORE_ANY (0), HB_BPU_CORE_0 (1), HB_BPU_CORE_1 (2) or both."
        )
    if not 0 <= priority <= 255:
        raise bad_argument(f"The priority is {priority}, but must be 0 to 255.")


def tensors_behind(given: Any, what: str) -> Sequence[hbDNNTensor]:
    """Return the caller's tensors, indexable, from an array, list, structure, pointer, or pointer to a pointer.

    Raises:
        ModelError: INVALID_ARGUMENT: NULL, or not a tensor.
    """
    found = referent(given)
    if isinstance(found, hbDNNTensor):
        return [found] if found is given else cast("Sequence[hbDNNTensor]", ctypes.pointer(found))
    if isinstance(found, (list, tuple)):
        return [deref(one, hbDNNTensor) or one for one in found]
    for _ in range(2):
        if isinstance(found, ctypes.Array) and issubclass(found._type_, hbDNNTensor):
            return cast("Sequence[hbDNNTensor]", found)
        if not isinstance(found, ctypes._Pointer) or not bool(found):  # noqa: SLF001 - the base of all pointer types
            break
        if isinstance(found.contents, hbDNNTensor):
            return cast("Sequence[hbDNNTensor]", found)
        found = found.contents
    raise bad_argument(f"The {what} is {short_repr(given)}; pass an array of hbDNNTensor.")


def out_behind(given: Any, kind: Any, name: str) -> Any:
    """Return the structure to fill: itself, ``byref()`` or a pointer.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    found = deref(given, kind)
    if found is None:
        raise bad_argument(f"{name} is {short_repr(given)}; pass a {kind.__name__} to fill.")
    return found


def handle_behind(given: object, kind: type[ctypes.c_void_p]) -> int | None:
    """Return the handle in an argument, a handle object or a number; None for NULL."""
    found = deref(given, kind)
    if found is not None:
        return found.value
    return integer(given) if given is not None else None


def first_of(given: Any, count: object, name: str) -> list[Any]:
    """Return the first ``count`` entries of an array, list or pointer; ``byref()`` of a value has one.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    number = integer(count)
    if number is None or number < 1:
        raise bad_argument(f"The count is {short_repr(count)}, but must be the number of models, at least 1.")
    if given is None or isinstance(given, (str, bytes)):
        raise bad_argument(f"{name} is {short_repr(given)}; pass an array or a list of {number}.")
    found = getattr(given, "_obj", given)
    if isinstance(found, ctypes._SimpleCData) and found is not given:  # noqa: SLF001 - &name, as the samples write it
        found = [found]
    try:
        return [found[at] for at in range(number)]
    except IndexError:
        raise bad_argument(f"{name} has {len(found)} entries, fewer than the count of {number}.") from None


def filled(given: Any, what: str) -> Any:
    """Return a nonempty string from text or a c_char_p.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    value = given.value if isinstance(given, ctypes.c_char_p) else given
    if not value:
        raise bad_argument(f"A {what} is null or empty.")
    return value


def path_behind(given: Any) -> Path:
    """Return a file name from str, bytes, Path or c_char_p.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    name = filled(given, "file name")
    if not isinstance(name, (str, bytes, os.PathLike)):
        raise bad_argument(f"A file name is {short_repr(name)}; pass a str, bytes or Path.")
    text = os.fsdecode(name)
    if "\0" in text:
        raise bad_argument(
            f"The file name {short_repr(name)} has a zero byte; pass a model's bytes with hbDNNInitializeFromDDR."
        )
    return Path(text)


def text_behind(given: Any) -> str:
    """Return a model name from str, bytes or c_char_p.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    value = filled(given, "model name")
    return value.decode() if isinstance(value, bytes) else str(value)


def milliseconds(timeout: object) -> int:
    """Return milliseconds clamped to a C int.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    whole = integer(timeout)
    if whole is None:
        if isinstance(timeout, (str, bytes)) or timeout is None:
            raise bad_argument(f"Invalid timeout {short_repr(timeout)}: use milliseconds.")
        whole = math.ceil(min(float(cast("Any", timeout)), _MAX_WAIT_MS))
    return min(whole, _MAX_WAIT_MS)
