"""``rknn_*``: the runtime with the names, argument order and codes of its C API. Calls return codes, never raise.

Where a C program passes an address, pass an object that the call fills: ``rknn_init(ctx, model, len(model), 0, None)``
with ``ctx = rknn_context()``. Buffers are addresses, such as ``array.ctypes.data``.

Source: RKNN C API Reference (2.3.2), functions, https://github.com/airockchip/rknn-toolkit2
Emulator: arrays are lists, tuples or ctypes arrays; a message on standard error says why a call was rejected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any, Final, ParamSpec

from arm_client.cabi.arguments import bytes_of, integer
from arm_client.cabi.last_error import note
from hbrt.borders.interrupts import let_out
from hbrt.errors import RequestRefusedError
from hbrt.models.errors import GraphError
from hbrt.status import Status
from rknn_api import planning, sram
from rknn_api.calls import path_of
from rknn_api.capi.arguments import array_of, handle_of, handle_or_none, number_of, structure_of
from rknn_api.capi.context import ASYNC, Context
from rknn_api.capi.model import RknnModel
from rknn_api.capi.op_memory import OpMemory
from rknn_api.capi.queries import answer, layers
from rknn_api.capi.runtime import RknnRuntime, existing, runtime
from rknn_api.container import Container
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.log import Log
from rknn_api.run import c_ops
from rknn_api.run.runner import refused
from rknn_api.types import (
    RknnFlag,
    rknn_context,
    rknn_custom_op,
    rknn_custom_op_attr,
    rknn_custom_op_context,
    rknn_init_extend,
    rknn_input,
    rknn_output,
    rknn_output_extend,
    rknn_run_extend,
    rknn_tensor_attr,
    rknn_tensor_mem,
)

_P = ParamSpec("_P")
_log: Final = Log()
_OF_BOARD: Final = {
    int(Status.HB_SYS_OUT_OF_MEMORY): RknnStatus.RKNN_ERR_MALLOC_FAIL,
    int(Status.HB_SYS_INVALID_ARGUMENT): RknnStatus.RKNN_ERR_PARAM_INVALID,
    int(Status.HB_SYS_REGISTER_MEM_FAILED): RknnStatus.RKNN_ERR_PARAM_INVALID,
}
_KNOWN_FLAGS: Final = sum(RknnFlag)
_WITHOUT_EFFECT: Final = (
    (RknnFlag.RKNN_FLAG_FENCE_IN_OUTSIDE, "fences are not emulated"),
    (RknnFlag.RKNN_FLAG_FENCE_OUT_OUTSIDE, "fences are not emulated"),
    (RknnFlag.RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU, "no GPU is emulated"),
    (RknnFlag.RKNN_FLAG_SHARE_SRAM, "each context has SRAM of its own"),
)
_PRIORITY: Final = int(RknnFlag.RKNN_FLAG_PRIOR_MEDIUM | RknnFlag.RKNN_FLAG_PRIOR_LOW)
_SHOWS_SRAM, _SHOWS_LAYERS = frozenset("3456"), frozenset("456")  # levels of RKNN_LOG_LEVEL


def _failed(call: str, error: Exception) -> int:
    if isinstance(error, RequestRefusedError):
        status: int = _OF_BOARD.get(error.status, RknnStatus.RKNN_ERR_DEVICE_UNAVAILABLE)
        sentence = error.text
    elif isinstance(error, GraphError):
        status, sentence = refused(error).status, str(error)
    else:
        assert isinstance(error, RknnError)  # noqa: S101 - the type that is caught
        status, sentence = error.status, error.text
    _log.error(call, sentence)
    return note(status, sentence)


def returns_code(call: Callable[_P, None]) -> Callable[_P, int]:
    """Make a function return like C: 0, or the code of its error, whose message is logged."""

    @wraps(call)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> int:
        try:
            call(*args, **kwargs)
        except (RknnError, RequestRefusedError, GraphError) as error:
            let_out(error)
            return _failed(call.__name__, error)
        return int(RknnStatus.RKNN_SUCC)

    return wrapped


@cache  # once per process
def warn_once(call: str, sentence: str) -> None:
    """Log that something in a call has no effect."""
    _log.warning(call, sentence)


def _returns_memory(call: Callable[_P, rknn_tensor_mem]) -> Callable[_P, rknn_tensor_mem | None]:
    @wraps(call)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> rknn_tensor_mem | None:
        try:
            return call(*args, **kwargs)
        except (RknnError, RequestRefusedError) as error:
            let_out(error)
            _failed(call.__name__, error)
            return None

    return wrapped


# -- contexts


@returns_code
def rknn_init(context: Any, model: Any, size: int, flag: int, extend: Any = None) -> None:
    """Load a model and create a context.

    Args:
        context: Out: a rknn_context.
        model: The model's bytes, or their address; with size 0 the path of its file.
        size: Bytes of the model, 0 for a path.
        flag: RKNN_FLAG_*, ORed.
        extend: rknn_init_extend, or None.

    Returns:
        0; RKNN_ERR_PARAM_INVALID, RKNN_ERR_MODEL_INVALID, RKNN_ERR_TARGET_PLATFORM_UNMATCH: the model is for another
        chip; RKNN_ERR_DEVICE_UNAVAILABLE: no running board has an NPU.

    Emulator: fences, GPU and shared SRAM have no effect, and a warning says so once. Nice values are never changed.
    """
    target = structure_of("context", context, rknn_context)
    flags, given = number_of("flag", flag), None if extend is None else structure_of("extend", extend, rknn_init_extend)
    if flags & ~_KNOWN_FLAGS:
        raise invalid_parameter(
            f"Invalid flag {flags:#x}: {flags & ~_KNOWN_FLAGS:#x} of it is not a flag of rknn_init."
        )
    for flag_bit, why in _WITHOUT_EFFECT:
        if flags & flag_bit:
            warn_once("rknn_init", f"{flag_bit.name} has no effect: {why}.")
    container, label = _container(model, number_of("size", size), flags, given)
    here = runtime(container.metadata.target_platform)
    here.check_platform(container.metadata.target_platform)
    priority = here.priority(flags & _PRIORITY)
    owner = None
    if flags & RknnFlag.RKNN_FLAG_SHARE_WEIGHT_MEM:
        if container.metadata.dynamic_input:
            raise invalid_parameter(
                "A model with several shapes cannot share its weights (RKNN_FLAG_SHARE_WEIGHT_MEM)."
            )
        owner = here.context(given.ctx if given is not None else 0).model
    is_run = not flags & RknnFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY
    loaded = RknnModel(container, label, partial(OpMemory, here.memory), is_run=is_run, weights_of=owner)
    made = Context(loaded, here.memory, flags, here.cores, priority)
    if flags & RknnFlag.RKNN_FLAG_ENABLE_SRAM:
        made.sram = here.take_sram(loaded.internal_bytes)
    level = os.environ.get("RKNN_LOG_LEVEL", "").strip()
    if level in _SHOWS_SRAM:
        weights = loaded.weight_bytes, planning.weight_bytes(loaded.proto, 1)
        sys.stderr.write(f"{sram.table(loaded.placed, loaded.edges, weights, made.sram, here.sram_base)}\n")
    if level in _SHOWS_LAYERS and is_run:
        sys.stderr.write(f"{layers(made)}\n")
    target.value = here.add(made)


def _container(model: Any, size: int, flags: int, extend: rknn_init_extend | None) -> tuple[Container, str]:
    if model is None:
        raise invalid_parameter("model is NULL; pass the model's bytes, or a path with size 0.")
    if size < 0:
        raise invalid_parameter(f"Invalid size {size}: must be the number of the model's bytes, or 0 for a path.")
    if not size:
        path = path_of(os.fsdecode(model) if isinstance(model, bytes) else model, "model")
        return Container.read(path), f"the model {path.name}"
    try:
        data: Any = bytes_of(model, size)
    except (TypeError, ValueError, BufferError) as error:
        raise invalid_parameter(f"model is {type(model).__name__}: {error}.") from None
    if len(data) < size:
        raise invalid_parameter(f"size is {size}, but model has {len(data)} bytes.")
    data = data[:size]
    if flags & RknnFlag.RKNN_FLAG_MODEL_BUFFER_ZERO_COPY and extend is not None and extend.real_model_size:
        start, end = extend.real_model_offset, extend.real_model_offset + extend.real_model_size
        if start < 0 or end > size:
            raise invalid_parameter(
                f"real_model_offset {start} and real_model_size {extend.real_model_size} exceed the {size} bytes."
            )
        data = data[start:end]
    return Container.from_bytes(data if isinstance(model, bytes) else bytes(data)), "the model"


@returns_code
def rknn_dup_context(context_in: Any, context_out: Any) -> None:
    """Create a context that shares another's model: for another thread.

    Returns:
        0; RKNN_ERR_CTX_INVALID; RKNN_ERR_PARAM_INVALID for a model with several shapes.
    """
    here, source = _found("rknn_dup_context", context_in)
    target = structure_of("context_out", context_out, rknn_context)
    if source.model.sets:
        raise invalid_parameter("A model with several shapes cannot be duplicated: call rknn_init again.")
    with source.lock:
        priority = source.schedule.priority
        target.value = here.add(Context(source.model.shared(), here.memory, source.flags, here.cores, priority))


@returns_code
def rknn_destroy(context: Any) -> None:
    """End a context; memory that the program allocated stays until rknn_destroy_mem.

    Returns:
        0; RKNN_ERR_CTX_INVALID.
    """
    handle = handle_of(context)
    here = existing(handle)
    gone = here.discard(handle)
    gone.wait()
    with gone.lock:
        gone.close()
    here.give_sram(gone.sram)


@returns_code
def rknn_set_core_mask(context: Any, core_mask: int) -> None:
    """Choose the NPU cores of a context: a bit per core, AUTO for an idle one, or ALL.

    Returns:
        0; RKNN_ERR_TARGET_PLATFORM_UNMATCH on a chip with one core; RKNN_ERR_PARAM_INVALID: the chip has no such core.
    """
    here, found = _found("rknn_set_core_mask", context)
    found.schedule = found.schedule._replace(cores=here.mask(number_of("core_mask", core_mask)))


@returns_code
def rknn_set_batch_core_num(context: Any, core_num: int) -> None:
    """Choose how many cores run the images of a batch; without a batch, this has no effect, and a warning says so.

    Returns:
        0; RKNN_ERR_TARGET_PLATFORM_UNMATCH on a chip with one core; RKNN_ERR_PARAM_INVALID: it has fewer cores.
    """
    here, found = _found("rknn_set_batch_core_num", context)
    number = number_of("core_num", core_num)
    if not 1 <= number <= here.cores:
        raise invalid_parameter(f"core_num is {number}; {here.chip} has 1 to {here.cores} cores.")
    found.workers = number
    if found.model.metadata.rknn_batch_size == 1:
        _log.warning(
            "rknn_set_batch_core_num",
            f"core_num {number} has no effect: the model has no batch. Convert it with rknn_batch_size above 1.",
        )


# -- the program's ops


@returns_code
def rknn_register_custom_ops(ctx: Any, op: Any, custom_op_num: int) -> None:
    """Register ops for nodes that the program computes itself; init is called for each node.

    Args:
        ctx: The context.
        op: An array of rknn_custom_op, with different op types.
        custom_op_num: Number of ops.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: the model has no such op type, or a callback is missing; RKNN_ERR_FAIL: an init
        returned a nonzero value, or an op type is already registered.

    Source: RKNN SDK advanced guide (chapter 5), 5.5.4
    Emulator: a context from rknn_dup_context has the ops that its origin had, with its own init.
    """
    _, found = _found("rknn_register_custom_ops", ctx)
    given = array_of("op", op, custom_op_num, rknn_custom_op)
    with found.lock:
        found.model.register(given)


def rknn_custom_op_get_op_attr(op_ctx: Any, attr_name: Any, op_attr: Any) -> None:
    """Query an attribute of the node in a callback; "name" is the node's name.

    Args:
        op_ctx: The context passed to the callback.
        attr_name: String or bytes.
        op_attr: Out: rknn_custom_op_attr; strings are RKNN_TENSOR_UINT8, integers RKNN_TENSOR_INT64; n_elems is 0
            for an attribute that the node does not set.

    Source: RKNN SDK advanced guide (chapter 5), 5.5.4
    """
    try:
        context = structure_of("op_ctx", op_ctx, rknn_custom_op_context)
        name = attr_name.decode(errors="replace") if isinstance(attr_name, bytes) else str(attr_name)
        c_ops.get_op_attr(context, name, structure_of("op_attr", op_attr, rknn_custom_op_attr))
    except RknnError as error:
        _failed("rknn_custom_op_get_op_attr", error)


# -- queries


@returns_code
def rknn_query(context: Any, cmd: int, info: Any, size: int) -> None:
    """Query a model or a run.

    Args:
        context: The context.
        cmd: RKNN_QUERY_*.
        info: Out: the structure of the command; for rknn_tensor_attr and rknn_input_range, the caller sets ``index``.
        size: ``ctypes.sizeof`` the structure.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: unknown command or index, or wrong structure size;
        RKNN_ERR_TARGET_PLATFORM_UNMATCH: the chip has no such query; RKNN_ERR_FAIL: the model has not been run yet, or
            no shapes were chosen.
    """
    here, found = _found("rknn_query", context)
    answer(here, found, number_of("cmd", cmd), info, number_of("size", size))


def hbrt_rknn_sram() -> str:
    """The SRAM pages held by contexts of all the board's programs, as a board's driver shows them.

    Returns:
        The bitmap; empty if no rknn_init has succeeded, the board is gone, or the chip has no SRAM.

    Emulator: a board has a file for it, /sys/kernel/debug/rknpu/mm.
    """
    try:
        here = existing(0)
        return sram.bitmap(here.sram_bytes, here.sram()) if here.sram_bytes else ""
    except (RknnError, RequestRefusedError):
        return ""


# -- runs


@returns_code
def rknn_inputs_set(context: Any, n_inputs: int, inputs: Any) -> None:
    """Copy and convert inputs; the general API.

    Args:
        context: The context.
        n_inputs: Number of inputs.
        inputs: An array of rknn_input: numbers of ``type`` in ``fmt``, or with pass_through the model's own.

    Returns:
        0; RKNN_ERR_INPUT_INVALID: an index, type, layout or size does not fit; RKNN_ERR_FAIL: the context uses the
        zero-copy API.
    """
    _, found = _found("rknn_inputs_set", context)
    given = array_of("inputs", inputs, n_inputs, rknn_input)
    if len(given) > (most := len(found.model.metadata.inputs)):  # in C, nothing follows them
        raise RknnError(
            RknnStatus.RKNN_ERR_INPUT_INVALID, f"n_inputs is {len(given)}; the model has the inputs 0 to {most - 1}."
        )
    with found.lock:
        found.set_inputs(given)


@returns_code
def rknn_run(context: Any, extend: Any = None) -> None:
    """Run once, and return when the outputs are ready.

    With RKNN_FLAG_ASYNC_MASK, or non_block 1 in ``extend``, a run of the general API continues in the background:
    rknn_outputs_get, the next rknn_run and rknn_destroy wait for it, and the first two return its error. With the flag,
    rknn_outputs_get returns the outputs of the previous frame at once, from the second frame on.

    Args:
        context: The context.
        extend: rknn_run_extend, or None. Out: frame_id, the number of the run.

    Returns:
        0; RKNN_ERR_FAIL: an input, memory or shapes were not set, or the run failed.

    Emulator: the call for the first frame blocks. The zero-copy API always waits, since no chip has rknn_wait;
    timeout_ms and fence_fd have no effect; for timeout_ms, a warning says so once, for fences rknn_init does.
    """
    _, found = _found("rknn_run", context)
    given = None if extend is None else structure_of("extend", extend, rknn_run_extend)
    if given is not None and given.timeout_ms:
        warn_once("rknn_run", "timeout_ms has no effect: a run has no time limit.")
    is_waited = not (found.flags & ASYNC or (given is not None and given.non_block))
    found.wait()
    with found.lock:
        number = found.run(is_waited=is_waited)
    if given is not None:
        given.frame_id = number


@returns_code
def rknn_wait(context: Any, extend: Any = None) -> None:
    """Not available on any chip.

    Returns:
        RKNN_ERR_TARGET_PLATFORM_UNMATCH.
    """
    del extend
    _found("rknn_wait", context)


@returns_code
def rknn_outputs_get(context: Any, n_outputs: int, outputs: Any, extend: Any = None) -> None:
    """Convert and copy outputs; the general API.

    Args:
        context: The context.
        n_outputs: Number of outputs.
        outputs: An array of rknn_output: want_float 1 for float32, 0 for the stored type; is_prealloc 1 for a buffer of
            the program with at least ``size`` bytes. Out: buf, size.
        extend: rknn_output_extend, or None. Out: frame_id, the number of the run.

    Returns:
        0; RKNN_ERR_OUTPUT_INVALID: an index or a buffer does not fit; RKNN_ERR_FAIL: the model has not been run.
    """
    _, found = _found("rknn_outputs_get", context)
    given = array_of("outputs", outputs, n_outputs, rknn_output)
    told = None if extend is None else structure_of("extend", extend, rknn_output_extend)
    if not found.lags:
        found.wait()
    with found.lock:
        frame = found.get_outputs(given)
        if told is not None:
            told.frame_id = frame


@returns_code
def rknn_outputs_release(context: Any, n_outputs: int, outputs: Any) -> None:
    """Free the buffers that rknn_outputs_get allocated.

    Returns:
        0; RKNN_ERR_OUTPUT_INVALID: it did not allocate the buffer, or the buffer was already released.
    """
    _, found = _found("rknn_outputs_release", context)
    given = array_of("outputs", outputs, n_outputs, rknn_output)
    with found.lock:
        found.release_outputs(given)


@returns_code
def rknn_set_input_shapes(context: Any, n_inputs: int, attr: Any) -> None:
    """Choose the shapes of a model with several; then set inputs or memory again.

    Args:
        context: The context.
        n_inputs: All inputs.
        attr: An array of rknn_tensor_attr: index, dims, n_dims, fmt (NHWC for four dimensions, otherwise UNDEFINED).

    Returns:
        0; RKNN_ERR_PARAM_INVALID: the model was not converted for these shapes.
    """
    _, found = _found("rknn_set_input_shapes", context)
    given = array_of("attr", attr, n_inputs, rknn_tensor_attr)
    found.wait()
    with found.lock:
        found.choose_shapes(given)


@returns_code
def rknn_set_input_shape(context: Any, attr: Any) -> None:
    """Superseded by rknn_set_input_shapes.

    Returns:
        RKNN_ERR_FAIL.
    """
    del attr
    _found("rknn_set_input_shape", context)
    raise RknnError(RknnStatus.RKNN_ERR_FAIL, "rknn_set_input_shape was removed: call rknn_set_input_shapes.")


# -- memory


@_returns_memory
def rknn_create_mem(context: Any, size: int) -> rknn_tensor_mem:
    """Allocate cacheable board memory; None if out of memory."""
    here = _runtime_of("rknn_create_mem", context)
    return here.memory.create(number_of("size", size))


@_returns_memory
def rknn_create_mem2(context: Any, size: int, alloc_flags: int) -> rknn_tensor_mem:
    """Allocate board memory by flags: RKNN_FLAG_MEMORY_*; with RKNN_MEM_FLAG_ALLOC_NO_CONTEXT, the context may be 0."""
    flags = number_of("alloc_flags", alloc_flags)
    if flags & RknnFlag.RKNN_MEM_FLAG_ALLOC_NO_CONTEXT and not handle_or_none(context):
        return runtime().memory.create(number_of("size", size), flags)
    here = _runtime_of("rknn_create_mem2", context)
    return here.memory.create(number_of("size", size), flags)


@_returns_memory
def rknn_create_mem_from_fd(context: Any, fd: int, virt_addr: Any, size: int, offset: int) -> rknn_tensor_mem:
    """Wrap memory given by a file descriptor, from any offset.

    Args:
        context: Any context of the process.
        fd: From a memfd or shared memory of another library, or the field fd of memory from rknn_create_mem.
        virt_addr: The field virt_addr of that memory, or an address in it; otherwise it has no effect.
        size: Bytes.
        offset: Offset of the memory in the file; with such an address, the distance from it.
    """
    here = _runtime_of("rknn_create_mem_from_fd", context)
    return here.memory.from_fd(
        number_of("fd", fd), integer(virt_addr) or 0, number_of("size", size), number_of("offset", offset)
    )


@_returns_memory
def rknn_create_mem_from_phys(context: Any, phys_addr: int, virt_addr: Any, size: int) -> rknn_tensor_mem:
    """Wrap memory given by a physical address on the board."""
    del virt_addr
    here = _runtime_of("rknn_create_mem_from_phys", context)
    return here.memory.from_phys(number_of("phys_addr", phys_addr), number_of("size", size))


@returns_code
def rknn_destroy_mem(context: Any, mem: Any) -> None:
    """Free memory, or release wrapped memory, which remains the program's.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: it is not valid, or was already destroyed.
    """
    handle = handle_or_none(context)
    existing(handle or 0).memory.destroy(structure_of("mem", mem, rknn_tensor_mem))


@returns_code
def rknn_mem_sync(context: Any, mem: Any, mode: int) -> None:
    """Move bytes between the CPU's cache and memory: before the NPU reads, or after it has written.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: no such direction.
    """
    here = existing(handle_or_none(context) or 0)
    if not handle_or_none(context) and here.column not in {1, 2}:
        raise RknnError(RknnStatus.RKNN_ERR_CTX_INVALID, f"rknn_mem_sync needs a context on {here.chip}.")
    here.memory.sync(here.memory.of(structure_of("mem", mem, rknn_tensor_mem)), number_of("mode", mode))


@returns_code
def rknn_set_io_mem(context: Any, mem: Any, attr: Any) -> None:
    """Place an input or output in board memory; zero-copy API.

    Args:
        context: The context.
        mem: Memory with at least the attribute's size_with_stride.
        attr: As returned by a query, with permitted changes of type, fmt, pass_through and strides; its size is the
            queried one or the one after the changes.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: a size, type or layout does not fit; RKNN_ERR_FAIL: the context uses the general API.
    """
    _, found = _found("rknn_set_io_mem", context)
    memory, described = structure_of("mem", mem, rknn_tensor_mem), structure_of("attr", attr, rknn_tensor_attr)
    with found.lock:
        found.bind(memory, described)


@returns_code
def rknn_set_weight_mem(context: Any, mem: Any) -> None:
    """Set the memory of the weights; with RKNN_FLAG_MEM_ALLOC_OUTSIDE, before the first run.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: it is too small; RKNN_ERR_FAIL: a different flag, or too late.
    """
    _, found = _found("rknn_set_weight_mem", context)
    with found.lock:
        found.set_outside("weight", structure_of("mem", mem, rknn_tensor_mem), found.model.weight_bytes)


@returns_code
def rknn_set_internal_mem(context: Any, mem: Any) -> None:
    """Set the memory of internal tensors; with the flags for it, before the first run.

    Returns:
        0; RKNN_ERR_PARAM_INVALID: it is too small; RKNN_ERR_FAIL: a different flag, or too late.
    """
    _, found = _found("rknn_set_internal_mem", context)
    with found.lock:
        found.set_outside("internal", structure_of("mem", mem, rknn_tensor_mem), found.model.internal_bytes)


# -- arguments


def _found(call: str, context: Any) -> tuple[RknnRuntime, Context]:
    handle = handle_of(context)
    here = existing(handle)
    found = here.context(handle)
    here.check_function(call)
    return here, found


def _runtime_of(call: str, context: Any) -> RknnRuntime:
    """The memory allocator for a context of a model or of a matrix product."""
    handle = handle_of(context)
    here = existing(handle)
    here.check_handle(handle)
    here.check_function(call)
    return here
