"""``hbDNN*``: models, in the vendor's names, argument order and codes. No call raises; each returns a status.

Out-parameters are objects that get filled, as in C: hbPackedDNNHandle_t, hbDNNHandle_t and hbDNNTaskHandle_t for
handles, c_int32 for counts, c_char_p for a name, hbDNNTensorProperties; each passed itself, by ``byref()`` or by
pointer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from arm_client.cabi.arguments import bytes_of, integer, is_function, short_repr, takes
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.dnn.capi.arguments import (
    checked_ctrl,
    first_of,
    handle_behind,
    milliseconds,
    out_behind,
    path_behind,
    returns_status,
    tensors_behind,
    text_behind,
)
from arm_client.dnn.capi.infer import job_of
from arm_client.dnn.capi.runtime import Loaded, device_memory, runtime
from arm_client.dnn.errors import bad_argument
from arm_client.dnn.spec.properties import fill_properties
from hbrt import status as codes
from hbrt.dnn_types import (
    HB_DNN_VERSION_MAJOR,
    HB_DNN_VERSION_MINOR,
    HB_DNN_VERSION_PATCH,
    hbDNNHandle_t,
    hbDNNInferCtrlParam,
    hbDNNTaskHandle_t,
    hbDNNTensorProperties,
    hbPackedDNNHandle_t,
)

Files = Sequence[str | bytes | Path] | ctypes.Array[ctypes.c_char_p]
Lengths = Sequence[int] | ctypes.Array[ctypes.c_int32]
_FIRST_ADDRESS = 1 << 16  # Linux maps nothing below this


def hbDNNGetVersion() -> str:
    """Return the version of the emulated DNN runtime API, and of the emulator."""
    from hbrt import __version__

    return f"{HB_DNN_VERSION_MAJOR}.{HB_DNN_VERSION_MINOR}.{HB_DNN_VERSION_PATCH} (hbrt {__version__} emulator)"


def hbDNNGetErrorDesc(code: int) -> str:
    """Return the message for a status code."""
    number = integer(code)
    return codes.describe(number) if number is not None else f"{short_repr(code)} is not a status code."


@returns_status
def hbDNNInitializeFromFiles(packed: hbPackedDNNHandle_t, files: Files, count: int) -> None:
    """Load models from ONNX files.

    Args:
        packed: Out: one handle for all of them.
        files: Paths: a sequence of str, bytes or Path, or an array of c_char_p.
        count: Number of models.

    Returns:
        0; HB_DNN_CAN_NOT_OPEN_FILE, _INVALID_MODEL or _INCOMPATIBLE_MODEL with the reason, _INVALID_ARGUMENT,
        _MODEL_NUMBER_EXCEED_LIMIT. If one is refused, nothing is loaded.
    """
    out = out_behind(packed, hbPackedDNNHandle_t, "packed")
    paths = [path_behind(name) for name in first_of(files, count, "files")]
    out.value = runtime.initialize(paths)


@returns_status
def hbDNNInitializeFromDDR(packed: hbPackedDNNHandle_t, data: Sequence[Any], lengths: Lengths, count: int) -> None:
    """Load models from memory.

    Args:
        packed: Out: one handle for all of them.
        data: The bytes of each model: bytes, bytearray, memoryview, numpy array, ctypes array, or an address.
        lengths: Byte size of each model.
        count: Number of models.

    Returns:
        As for hbDNNInitializeFromFiles, except for file errors.
    """
    out = out_behind(packed, hbPackedDNNHandle_t, "packed")
    sources = []
    sizes = first_of(lengths, count, "lengths")
    for at, (given, length) in enumerate(zip(first_of(data, count, "data"), sizes, strict=True)):
        size_bytes = integer(length)
        if size_bytes is None or size_bytes <= 0:
            raise bad_argument(f"lengths[{at}] is {short_repr(length)}; set it to the model's size in bytes.")
        if isinstance(given, int) and given < _FIRST_ADDRESS:
            raise bad_argument(f"data[{at}] is {given:#x}, which is not the address of a model; pass its bytes.")
        if given is None:
            raise bad_argument(f"data[{at}] is null; pass the bytes of a model, or their address.")
        view = bytes_of(given, size_bytes)
        if len(view) < size_bytes:
            raise bad_argument(f"data[{at}] has {len(view)} bytes, fewer than the {size_bytes} of lengths[{at}].")
        sources.append(view[:size_bytes])
    out.value = runtime.initialize(sources)


@returns_status
def hbDNNRelease(packed: hbPackedDNNHandle_t) -> None:
    """Release the models of a packed handle; their model handles become invalid.

    Returns:
        0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_MODEL_IS_RUNNING while an unfinished task uses one.
    """
    runtime.release(handle_behind(packed, hbPackedDNNHandle_t))


@returns_status
def hbDNNGetModelNameList(names: Any, count: ctypes.c_int32, packed: hbPackedDNNHandle_t) -> None:
    """Get the names of a packed handle's models.

    Args:
        names: Out: ``POINTER(c_char_p)()``; memory of the runtime, until hbDNNRelease. A list is filled with str.
        count: Out.
        packed: Handle.

    Returns:
        0; HB_DNN_INVALID_PACKED_DNN_HANDLE, HB_DNN_INVALID_ARGUMENT.
    """
    found = runtime.packed.get(handle_behind(packed, hbPackedDNNHandle_t))
    number = out_behind(count, ctypes.c_int32, "count")
    if isinstance(names, list):
        names[:] = [one.model.name for one in found.models]
    else:
        target = out_behind(names, ctypes.POINTER(ctypes.c_char_p), "names")
        target.contents = ctypes.cast(found.name_list, ctypes.POINTER(ctypes.c_char_p)).contents
    number.value = len(found.models)


@returns_status
def hbDNNGetModelHandle(model: hbDNNHandle_t, packed: hbPackedDNNHandle_t, name: str | bytes) -> None:
    """Get the handle of one model by name.

    Args:
        model: Out.
        packed: Handle.
        name: str, bytes or c_char_p, as returned by hbDNNGetModelNameList.

    Returns:
        0; HB_DNN_INVALID_PACKED_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT if no model has that name.
    """
    found = runtime.packed.get(handle_behind(packed, hbPackedDNNHandle_t))
    out = out_behind(model, hbDNNHandle_t, "model")
    wanted = text_behind(name)
    for one in found.models:
        if one.model.name == wanted:
            out.value = one.handle
            return
    known = ", ".join(repr(one.model.name) for one in found.models)
    raise bad_argument(f"No model is named {wanted!r}; known: {known}.")


@returns_status
def hbDNNGetInputCount(count: ctypes.c_int32, model: hbDNNHandle_t) -> None:
    """Get the number of a model's inputs.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE, HB_DNN_INVALID_ARGUMENT.
    """
    _count(count, model, "inputs")


@returns_status
def hbDNNGetOutputCount(count: ctypes.c_int32, model: hbDNNHandle_t) -> None:
    """Get the number of a model's outputs; like hbDNNGetInputCount."""
    _count(count, model, "outputs")


@returns_status
def hbDNNGetInputName(name: ctypes.c_char_p, model: hbDNNHandle_t, index: int) -> None:
    """Get the name of an input.

    Args:
        name: Out: ``c_char_p()``; memory of the runtime, until hbDNNRelease.
        model: Handle.
        index: From 0.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT: the index is out of range.
    """
    _name(name, model, index, "inputs")


@returns_status
def hbDNNGetOutputName(name: ctypes.c_char_p, model: hbDNNHandle_t, index: int) -> None:
    """Get the name of an output; like hbDNNGetInputName."""
    _name(name, model, index, "outputs")


@returns_status
def hbDNNGetInputSource(source: ctypes.c_int32, model: hbDNNHandle_t, index: int) -> None:
    """Get the source of an input.

    Args:
        source: Out: an hbDNNInputSource.
        model: Handle.
        index: From 0.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT: the index is out of range.
    """
    _, spec = _spec(model, index, "inputs")
    out_behind(source, ctypes.c_int32, "source").value = spec.source


@returns_status
def hbDNNGetInputTensorProperties(properties: hbDNNTensorProperties, model: hbDNNHandle_t, index: int) -> None:
    """Get the memory layout of an input.

    Args:
        properties: Out: shapes, layout, type, quantization (its arrays are memory of the runtime, until hbDNNRelease),
            alignedByteSize and strides in bytes; -1 for data-dependent sizes.
        model: Handle.
        index: From 0.

    Returns:
        0; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_INVALID_ARGUMENT: the index is out of range.
    """
    _properties(properties, model, index, "inputs")


@returns_status
def hbDNNGetOutputTensorProperties(properties: hbDNNTensorProperties, model: hbDNNHandle_t, index: int) -> None:
    """Get the memory layout of an output; like hbDNNGetInputTensorProperties."""
    _properties(properties, model, index, "outputs")


@returns_status
def hbDNNInfer(
    task: hbDNNTaskHandle_t, output: Any, input: Any, model: hbDNNHandle_t, ctrl: hbDNNInferCtrlParam
) -> None:
    """Submit one inference.

    Args:
        task: Out: handle. In: null for a new task; a task that expects more (``ctrl.more``) to add to it.
        output: Output tensors, in order: an array of hbDNNTensor, its address (as C's hbDNNTensor **), or a list. For
            data-dependent sizes, the task fills validShape, stride and alignedByteSize.
        input: Input tensors, in order; a batch of N as one tensor, or as N tensors of batch 1 at separate addresses.
        model: Handle.
        ctrl: Cores, priority, customId; more = 1 if further inferences will be added.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT with the tensor and the rule; HB_DNN_INVALID_DNN_HANDLE; HB_DNN_API_USE_ERROR: *task
        is not null and expects no more; HB_DNN_TASK_NUM_EXCEED_LIMIT: 32 are alive;
        HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT.
    """
    out = out_behind(task, hbDNNTaskHandle_t, "task")
    loaded = model_behind(model)
    how = checked_ctrl(ctrl)
    outputs, inputs = tensors_behind(output, "output"), tensors_behind(input, "input")
    job = job_of(loaded, loaded.bindings.of(outputs, inputs, device_memory()), how)
    runtime.tasks.add(
        out,
        job,
        loaded.model,
        is_last=not how.more,
        core_mask=how.bpuCoreId,
        priority=how.priority,
        custom_id=how.customId,
    )


@returns_status
def hbDNNWaitTaskDone(task: hbDNNTaskHandle_t, timeout: int) -> None:
    """Wait for a task.

    Args:
        task: Handle.
        timeout: Milliseconds; <= 0 waits forever.

    Returns:
        0; HB_DNN_TIMEOUT (the task keeps running); HB_DNN_RUN_TASK_FAILED; HB_DNN_INVALID_TASK_HANDLE;
        HB_DNN_API_USE_ERROR: the task still expects inferences.
    """
    status, text = runtime.tasks.wait(handle_behind(task, hbDNNTaskHandle_t), milliseconds(timeout))
    if status:
        raise RequestRefusedError(status, text)


@returns_status
def hbDNNReleaseTask(task: hbDNNTaskHandle_t) -> None:
    """Release a task, once. A queued task is canceled; a running one is first stopped at a node boundary.

    Returns:
        0; HB_DNN_INVALID_TASK_HANDLE. Afterward, nothing writes to the task's tensors.
    """
    runtime.tasks.release(handle_behind(task, hbDNNTaskHandle_t))


@returns_status
def hbDNNSetTaskDoneCb(
    task: hbDNNTaskHandle_t, callback: Callable[[hbDNNTaskHandle_t, int, Any], None], userdata: Any = None
) -> None:
    """Call ``callback(task, status, userdata)`` once, in a thread of the runtime, when the task has ended.

    It is called at once if the task has already ended; the last one set is used. If the task is released before it
    ends, it is called with HB_DNN_RUN_TASK_FAILED.

    Args:
        task: Handle.
        callback: A Python function, or an hbDNNTaskDoneCb, which may point to a C library's function.
        userdata: Any object; for an hbDNNTaskDoneCb, a value that ctypes passes as a void pointer.

    Returns:
        0; HB_DNN_INVALID_TASK_HANDLE; HB_DNN_INVALID_ARGUMENT if the callback is NULL or not callable.
    """
    handle = handle_behind(task, hbDNNTaskHandle_t)
    if not is_function(callback):  # a C program that passes no function would crash later
        runtime.tasks.check(handle)
        raise bad_argument(f"The callback {short_repr(callback)} is not callable.")
    if not takes(callback, userdata):
        raise bad_argument(
            f"userdata is {short_repr(userdata)}, but an hbDNNTaskDoneCb takes a void *: pass an address, byref() of a "
            "ctypes object, or None; or pass the Python function itself, which takes any object."
        )
    token = hbDNNTaskHandle_t(handle)
    runtime.tasks.set_callback(handle, lambda status: callback(token, status, userdata))


def model_behind(model: object) -> Loaded:
    """Return the model of a handle.

    Raises:
        ModelError: INVALID_DNN_HANDLE.
    """
    return runtime.models.get(handle_behind(model, hbDNNHandle_t))


def _count(count: object, model: object, which: str) -> None:
    specs = getattr(model_behind(model).model, which)
    out_behind(count, ctypes.c_int32, "count").value = len(specs)


def _spec(model: object, index: object, which: str) -> tuple[Loaded, Any]:
    loaded = model_behind(model)
    specs = getattr(loaded.model, which)
    number = integer(index)
    if number is None or not 0 <= number < len(specs):
        raise bad_argument(f"The index is {short_repr(index)}; {loaded.model.name!r} has {len(specs)} {which}, from 0.")
    return loaded, specs[number]


def _name(name: Any, model: object, index: object, which: str) -> None:
    loaded, spec = _spec(model, index, which)
    kept = loaded.names.setdefault(spec.name, ctypes.c_char_p(spec.name.encode()))
    # The pointer itself: an assigned value would be a copy, freed with the caller's object.
    ctypes.memmove(
        ctypes.addressof(out_behind(name, ctypes.c_char_p, "name")), ctypes.addressof(kept), ctypes.sizeof(kept)
    )


def _properties(properties: object, model: object, index: object, which: str) -> None:
    _, spec = _spec(model, index, which)
    fill_properties(spec, out_behind(properties, hbDNNTensorProperties, "properties"))
