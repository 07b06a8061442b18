"""``hbDNN*``: models, in the vendor's names, argument order and codes. No call raises; each returns a status.

Out-parameters are objects that get filled, as in C: hbPackedDNNHandle_t, hbDNNHandle_t and hbDNNTaskHandle_t for handles,
c_int32 for counts, c_char_p for a name, hbDNNTensorProperties; each itself, by ``byref()`` or by pointer.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, cast

from arm_client.dnn.errors import bad_argument, one_line
from arm_client.dnn.infer import job_of
from arm_client.dnn.properties import fill_properties
from arm_client.dnn.runtime import Loaded, device_memory, runtime
from arm_client.pointers import behind, bytes_of, integer, shown
from arm_client.refusal import RequestRefusedError, note
from hbrt import status as codes
from hbrt.dnn_types import (
    HB_DNN_VERSION_MAJOR,
    HB_DNN_VERSION_MINOR,
    HB_DNN_VERSION_PATCH,
    hbDNNHandle_t,
    hbDNNInferCtrlParam,
    hbDNNTaskHandle_t,
    hbDNNTensor,
    hbDNNTensorProperties,
    hbPackedDNNHandle_t,
)
from hbrt.status import Status

_P = ParamSpec("_P")
_MOST_WAIT_MS = (1 << 31) - 1  # of a C int; 24 days
_CORES = 3  # bits of a mask


def _status(call: Callable[_P, None]) -> Callable[_P, int]:
    """C's habit: the status of a refusal is returned, its sentence kept for last_error()."""

    @wraps(call)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> int:
        try:
            call(*args, **kwargs)
        except RequestRefusedError as error:
            return note(error.status, str(error))
        except MemoryError as error:
            return note(Status.HB_DNN_OUT_OF_MEMORY, f"{call.__name__}: the host has no memory left: {one_line(error)}")
        except Exception as error:  # noqa: BLE001 - an object that the caller passed may raise anything
            return note(
                Status.HB_DNN_INVALID_ARGUMENT,
                f"{call.__name__} cannot use an argument: {type(error).__name__}: {one_line(error)}",
            )
        return 0

    return wrapped


def hbDNNGetVersion() -> str:
    """Version text of the DNN runtime API that is emulated, and of the emulator."""
    from hbrt import __version__

    return f"{HB_DNN_VERSION_MAJOR}.{HB_DNN_VERSION_MINOR}.{HB_DNN_VERSION_PATCH} (hbrt {__version__} emulator)"


def hbDNNGetErrorDesc(code: int) -> str:
    """Sentence for a status code."""
    number = integer(code)
    return codes.describe(number) if number is not None else f"{shown(code)} is no status code."


@_status
def hbDNNInitializeFromFiles(packed: hbPackedDNNHandle_t, files: Sequence[str | bytes | Path], count: int) -> None:
    """Load models from ONNX files.

    Args:
        packed: Out: handle of all of them.
        files: Paths: a sequence of str, bytes or Path, or an array of c_char_p.
        count: How many.

    Returns:
        0; HB_DNN_CAN_NOT_OPEN_FILE, _INVALID_MODEL or _INCOMPATIBLE_MODEL with the reason, _INVALID_ARGUMENT,
        _MODEL_NUMBER_EXCEED_LIMIT. One that is refused leaves nothing loaded.
    """
    out = _out(packed, hbPackedDNNHandle_t, "packed")
    paths = [Path(os.fsdecode(_filled(name, "file name"))) for name in _first(files, count, "files")]
    out.value = runtime.initialize(paths)


@_status
def hbDNNInitializeFromDDR(
    packed: hbPackedDNNHandle_t, data: Sequence[Any], lengths: Sequence[int], count: int
) -> None:
    """Load models from memory.

    Args:
        packed: Out: handle of all of them.
        data: The bytes of each: bytes, bytearray, memoryview, numpy array, ctypes array, or an address.
        lengths: Bytes of each.
        count: How many.

    Returns:
        As hbDNNInitializeFromFiles, but for files.
    """
    out = _out(packed, hbPackedDNNHandle_t, "packed")
    sources = []
    sizes = _first(lengths, count, "lengths")
    for at, (given, length) in enumerate(zip(_first(data, count, "data"), sizes, strict=True)):
        size_bytes = integer(length)
        if size_bytes is None or size_bytes <= 0:
            raise bad_argument(f"lengths[{at}] is {shown(length)}; write the bytes of the model.")
        view = bytes_of(given, size_bytes)
        if len(view) < size_bytes:
            raise bad_argument(f"data[{at}] has {len(view)} bytes, fewer than the {size_bytes} of lengths[{at}].")
        sources.append(view[:size_bytes])
    out.value = runtime.initialize(sources)


@_status
def hbDNNRelease(packed: hbPackedDNNHandle_t) -> None:
    """Release the models of a packed handle; their model handles end with it.

    Returns:
        0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_MODEL_IS_RUNNING while a task that has not ended uses one.
    """
    runtime.release(_handle(packed, hbPackedDNNHandle_t))


@_status
def hbDNNGetModelNameList(names: Any, count: ctypes.c_int32, packed: hbPackedDNNHandle_t) -> None:
    """Names of the models of a packed handle.

    Args:
        names: Out: ``POINTER(c_char_p)()``; memory of the runtime, until hbDNNRelease. A list is filled with str.
        count: Out.
        packed: Handle.

    Returns:
        0; HB_DNN_INVALID_PACKED_DNN_HANDLE, HB_DNN_INVALID_ARGUMENT.
    """
    found = runtime.packed.get(_handle(packed, hbPackedDNNHandle_t))
    number = _out(count, ctypes.c_int32, "count")
    if isinstance(names, list):
        names[:] = [one.model.name for one in found.models]
    else:
        target = _out(names, ctypes.POINTER(ctypes.c_char_p), "names")
        target.contents = ctypes.cast(found.name_list, ctypes.POINTER(ctypes.c_char_p)).contents
    number.value = len(found.models)


@_status
def hbDNNGetModelHandle(model: hbDNNHandle_t, packed: hbPackedDNNHandle_t, name: str | bytes) -> None:
    """Handle of one model, by its name.

    Args:
        model: Out.
        packed: Handle.
        name: str, bytes or c_char_p, as hbDNNGetModelNameList gives it.

    Returns:
        0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT when no model has that name.
    """
    found = runtime.packed.get(_handle(packed, hbPackedDNNHandle_t))
    out = _out(model, hbDNNHandle_t, "model")
    wanted = _text(name)
    for one in found.models:
        if one.model.name == wanted:
            out.value = one.handle
            return
    known = ", ".join(repr(one.model.name) for one in found.models)
    raise bad_argument(f"No model is named {wanted!r}; there is {known}.")


@_status
def hbDNNGetInputCount(count: ctypes.c_int32, model: hbDNNHandle_t) -> None:
    """Number of a model's inputs.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE, HB_DNN_INVALID_ARGUMENT.
    """
    _count(count, model, "inputs")


@_status
def hbDNNGetOutputCount(count: ctypes.c_int32, model: hbDNNHandle_t) -> None:
    """Number of a model's outputs; as hbDNNGetInputCount."""
    _count(count, model, "outputs")


@_status
def hbDNNGetInputName(name: ctypes.c_char_p, model: hbDNNHandle_t, index: int) -> None:
    """Name of an input.

    Args:
        name: Out: ``c_char_p()``; memory of the runtime, until hbDNNRelease.
        model: Handle.
        index: From 0.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT for an index that is out of range.
    """
    _name(name, model, index, "inputs")


@_status
def hbDNNGetOutputName(name: ctypes.c_char_p, model: hbDNNHandle_t, index: int) -> None:
    """Name of an output; as hbDNNGetInputName."""
    _name(name, model, index, "outputs")


@_status
def hbDNNGetInputTensorProperties(properties: hbDNNTensorProperties, model: hbDNNHandle_t, index: int) -> None:
    """What an input looks like in memory.

    Args:
        properties: Out: shapes, layout, type, quantisation (its arrays are memory of the runtime, until hbDNNRelease),
            alignedByteSize and strides in bytes; -1 for sizes that the data decides.
        model: Handle.
        index: From 0.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT for an index that is out of range.
    """
    _properties(properties, model, index, "inputs")


@_status
def hbDNNGetOutputTensorProperties(properties: hbDNNTensorProperties, model: hbDNNHandle_t, index: int) -> None:
    """What an output looks like in memory; as hbDNNGetInputTensorProperties."""
    _properties(properties, model, index, "outputs")


@_status
def hbDNNInfer(
    task: hbDNNTaskHandle_t, output: Any, input: Any, model: hbDNNHandle_t, ctrl: hbDNNInferCtrlParam
) -> None:
    """Submit one inference.

    Args:
        task: Out: handle. In: null for a new task; a task that awaits more (``ctrl.more``) to add to it.
        output: Output tensors, in order: an array of hbDNNTensor, its address (as C's hbDNNTensor **), or a list. For
            sizes that the data decides, the task fills validShape, stride and alignedByteSize.
        input: Input tensors, in order; a batch of N as one tensor, or as N of batch 1 at addresses of their own.
        model: Handle.
        ctrl: Cores, priority, customId; more = 1 when further inferences are to be added.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT with the tensor and the rule; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_API_USE_ERROR: *task is
        not null and awaits nothing; HB_DNN_TASK_NUM_EXCEED_LIMIT: 32 are alive; HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT.
    """
    out = _out(task, hbDNNTaskHandle_t, "task")
    loaded = model_behind(model)
    how = checked_ctrl(ctrl)
    job = job_of(loaded, tensors_behind(output, "output"), tensors_behind(input, "input"), how, device_memory())
    out.value = runtime.tasks.add(
        out.value,
        job,
        loaded.model,
        is_last=not how.more,
        core_mask=how.bpuCoreId,
        priority=how.priority,
        custom_id=how.customId,
    )


@_status
def hbDNNWaitTaskDone(task: hbDNNTaskHandle_t, timeout: int) -> None:
    """Wait for a task.

    Args:
        task: Handle.
        timeout: Milliseconds; <= 0 waits for ever.

    Returns:
        0; HB_DNN_TIMEOUT, and the task goes on; HB_DNN_RUN_TASK_FAILED; HB_DNN_INVALID_TASK_HANDLE;
        HB_DNN_API_USE_ERROR: the task still awaits inferences.
    """
    status, text = runtime.tasks.wait(_handle(task, hbDNNTaskHandle_t), _milliseconds(timeout))
    if status:
        raise RequestRefusedError(status, text)


@_status
def hbDNNReleaseTask(task: hbDNNTaskHandle_t) -> None:
    """Release a task; once for each. A queued one is cancelled; one that runs is ended at a node's boundary first.

    Returns:
        0; HB_DNN_INVALID_TASK_HANDLE. Afterwards nothing writes to the task's tensors.
    """
    runtime.tasks.release(_handle(task, hbDNNTaskHandle_t))


@_status
def hbDNNSetTaskDoneCb(
    task: hbDNNTaskHandle_t, callback: Callable[[hbDNNTaskHandle_t, int, Any], None], userdata: Any = None
) -> None:
    """Have ``callback(task, status, userdata)`` called once, in a thread of the runtime, when the task has ended.

    At once when it has ended already; the last one that was set counts. A task that is released before it ends calls it
    with HB_DNN_RUN_TASK_FAILED.

    Returns:
        0; HB_DNN_INVALID_TASK_HANDLE; HB_DNN_INVALID_ARGUMENT when the callback is not callable.
    """
    handle = _handle(task, hbDNNTaskHandle_t)
    given: object = callback  # a C program that passes no function would crash later
    if not callable(given):
        runtime.tasks.check(handle)
        raise bad_argument(f"The callback {shown(callback)} is not callable.")
    token = hbDNNTaskHandle_t(handle)
    runtime.tasks.set_callback(handle, lambda status: callback(token, status, userdata))


def model_behind(model: object) -> Loaded:
    """The model of a handle.

    Raises:
        ModelError: INVALID_DNN_HANDLE.
    """
    return runtime.models.get(_handle(model, hbDNNHandle_t))


def checked_ctrl(ctrl: object) -> hbDNNInferCtrlParam:
    """A copy of how a task is to be scheduled.

    Raises:
        ModelError: INVALID_ARGUMENT.
    """
    given = behind(ctrl, hbDNNInferCtrlParam)
    if given is None:
        raise bad_argument(f"The control parameter is {shown(ctrl)}; pass an hbDNNInferCtrlParam.")
    if not 0 <= given.bpuCoreId <= _CORES:
        raise bad_argument(
            f"bpuCoreId is {given.bpuCoreId}; write HB_BPU_CORE_ANY (0), HB_BPU_CORE_0 (1), HB_BPU_CORE_1 (2) or both (3)."
        )
    if not 0 <= given.dspCoreId <= _CORES:
        raise bad_argument(f"dspCoreId is {given.dspCoreId}; write HB_DSP_CORE_ANY (0), or bits of cores.")
    if not 0 <= given.priority <= 255:
        raise bad_argument(f"The priority is {given.priority}; write 0 to 255.")
    return hbDNNInferCtrlParam.from_buffer_copy(given)


def tensors_behind(given: Any, what: str) -> Sequence[hbDNNTensor]:
    """The caller's tensors, to be indexed: of an array, a list, one structure, a pointer, or a pointer to a pointer.

    Raises:
        ModelError: INVALID_ARGUMENT for NULL and for what is no tensor.
    """
    found = getattr(given, "_obj", given)  # byref
    if isinstance(found, hbDNNTensor):
        return [found] if found is given else cast("Sequence[hbDNNTensor]", ctypes.pointer(found))
    if isinstance(found, (list, tuple)):
        return [behind(one, hbDNNTensor) or one for one in found]
    for _ in range(2):
        if isinstance(found, ctypes.Array) and issubclass(found._type_, hbDNNTensor):
            return cast("Sequence[hbDNNTensor]", found)
        if not isinstance(found, ctypes._Pointer) or not found:  # noqa: SLF001 - the base of all pointer types
            break
        if isinstance(found.contents, hbDNNTensor):
            return cast("Sequence[hbDNNTensor]", found)
        found = found.contents
    raise bad_argument(f"The {what} is {shown(given)}; pass an array of hbDNNTensor.")


def _out(given: Any, kind: Any, name: str) -> Any:
    found = behind(given, kind)
    if found is None:
        raise bad_argument(f"{name} is {shown(given)}; pass a {kind.__name__} to be filled.")
    return found


def _handle(given: object, kind: type[ctypes.c_void_p]) -> int | None:
    found = behind(given, kind)
    if found is not None:
        return found.value
    return integer(given) if given is not None else None


def _count(count: object, model: object, which: str) -> None:
    specs = getattr(model_behind(model).model, which)
    _out(count, ctypes.c_int32, "count").value = len(specs)


def _spec(model: object, index: object, which: str) -> tuple[Loaded, Any]:
    loaded = model_behind(model)
    specs = getattr(loaded.model, which)
    number = integer(index)
    if number is None or not 0 <= number < len(specs):
        raise bad_argument(f"The index is {shown(index)}; {loaded.model.name!r} has {len(specs)} {which}, from 0.")
    return loaded, specs[number]


def _name(name: Any, model: object, index: object, which: str) -> None:
    loaded, spec = _spec(model, index, which)
    kept = loaded.names.setdefault(spec.name, ctypes.c_char_p(spec.name.encode()))
    _out(name, ctypes.c_char_p, "name").value = kept.value


def _properties(properties: object, model: object, index: object, which: str) -> None:
    _, spec = _spec(model, index, which)
    fill_properties(spec, _out(properties, hbDNNTensorProperties, "properties"))


def _first(given: Any, count: object, name: str) -> list[Any]:
    number = integer(count)
    if number is None or number < 1:
        raise bad_argument(f"The count is {shown(count)}; write how many models there are, at least 1.")
    if given is None or isinstance(given, (str, bytes)):
        raise bad_argument(f"{name} is {shown(given)}; pass an array or a list of {number}.")
    found = getattr(given, "_obj", given)
    try:
        return [found[at] for at in range(number)]
    except IndexError:
        raise bad_argument(f"{name} has {len(found)} entries, fewer than the count of {number}.") from None


def _filled(given: Any, what: str) -> Any:
    value = given.value if isinstance(given, ctypes.c_char_p) else given
    if not value:
        raise bad_argument(f"A {what} is null or empty.")
    return value


def _text(given: Any) -> str:
    value = _filled(given, "model name")
    return value.decode() if isinstance(value, bytes) else str(value)


def _milliseconds(timeout: object) -> int:
    whole = integer(timeout)
    if whole is None:
        if isinstance(timeout, (str, bytes)) or timeout is None:
            raise bad_argument(f"The timeout is {shown(timeout)}; write milliseconds.")
        whole = math.ceil(min(float(cast("Any", timeout)), _MOST_WAIT_MS))
    return min(whole, _MOST_WAIT_MS)
