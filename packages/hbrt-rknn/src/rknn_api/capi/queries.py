"""The results of rknn_query: for each command, the structure that it fills and its contents."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from rknn_api import types
from rknn_api.capi import attributes
from rknn_api.capi.arguments import structure_of
from rknn_api.capi.attributes import View
from rknn_api.capi.context import Context
from rknn_api.capi.groups import has_query
from rknn_api.capi.runtime import RknnRuntime
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.perf.report import layers_text, measured_line
from rknn_api.platforms import platform_of
from rknn_api.run.custom_ops import CustomOps
from rknn_api.types import (
    RknnFlag,
    rknn_custom_string,
    rknn_input_output_num,
    rknn_input_range,
    rknn_mem_size,
    rknn_perf_detail,
    rknn_perf_run,
    rknn_query_cmd,
    rknn_sdk_version,
    rknn_tensor_attr,
    rknn_tensor_mem,
)
from rknn_api.version import API, DRIVER, sdk_version

_Q: Final = rknn_query_cmd
_VIEWS: Final = {
    _Q.RKNN_QUERY_INPUT_ATTR: (True, View.PLAIN),
    _Q.RKNN_QUERY_OUTPUT_ATTR: (False, View.PLAIN),
    _Q.RKNN_QUERY_NATIVE_INPUT_ATTR: (True, View.NATIVE),
    _Q.RKNN_QUERY_NATIVE_OUTPUT_ATTR: (False, View.NATIVE),
    _Q.RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR: (True, View.NATIVE_NHWC),
    _Q.RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR: (False, View.NATIVE_NHWC),
    _Q.RKNN_QUERY_CURRENT_INPUT_ATTR: (True, View.CURRENT),
    _Q.RKNN_QUERY_CURRENT_OUTPUT_ATTR: (False, View.CURRENT),
    _Q.RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR: (True, View.NATIVE),
    _Q.RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR: (False, View.NATIVE),
}
_CURRENT: Final = frozenset(one for one in _VIEWS if "CURRENT" in one.name)


def answer(here: RknnRuntime, found: Context, number: int, info: Any, size: int) -> None:
    """Fill the structure of a command.

    Raises:
        RknnError: unknown command or index, wrong structure size, or no result yet.
    """
    if number not in set(_Q) or number == _Q.RKNN_QUERY_CMD_MAX:
        raise invalid_parameter(f"Invalid cmd {number}: must be one of RKNN_QUERY_*, 0 to {_Q.RKNN_QUERY_CMD_MAX - 1}.")
    command = _Q(number)
    if not has_query(here.column, command):
        raise RknnError(
            RknnStatus.RKNN_ERR_TARGET_PLATFORM_UNMATCH, f"{here.chip} has no {command.name}: see the table by chip."
        )
    kind = info_of(command)
    wanted = ctypes.sizeof(kind)
    if size < wanted:
        raise invalid_parameter(
            f"Invalid size {size}: {command.name} fills a {kind.__name__}, which has {wanted} bytes."
        )
    target = structure_of("info", info, kind)
    if command in {_Q.RKNN_QUERY_PERF_RUN, _Q.RKNN_QUERY_PERF_DETAIL}:
        found.wait()
    with found.lock:
        if isinstance(target, rknn_tensor_attr):
            if command in _CURRENT and (found.set is None or not found.model.sets):
                raise RknnError(
                    RknnStatus.RKNN_ERR_FAIL, f"{command.name} needs shapes chosen by rknn_set_input_shapes."
                )
            is_input, view = _VIEWS[command]
            attributes.fill(target, found.side(target.index, is_input=is_input), view, found.model.rules)
        else:
            _ANSWERS[command][1](here, found, target)


def info_of(command: int) -> type[ctypes.Structure]:
    """The structure for a query."""
    return _ANSWERS[_Q(command)][0] if command in _ANSWERS else rknn_tensor_attr


def _in_out_num(_here: RknnRuntime, found: Context, info: Any) -> None:
    info.n_input, info.n_output = len(found.model.metadata.inputs), len(found.model.metadata.outputs)


def _perf_detail(_here: RknnRuntime, found: Context, info: Any) -> None:
    if not found.flags & RknnFlag.RKNN_FLAG_COLLECT_PERF_MASK:
        raise RknnError(
            RknnStatus.RKNN_ERR_FAIL, "RKNN_QUERY_PERF_DETAIL needs RKNN_FLAG_COLLECT_PERF_MASK in rknn_init."
        )
    text = f"{layers(found)}\n\n{measured_line(_run_us(found))}\n".encode()
    kept = ctypes.create_string_buffer(text)
    found.kept[:] = [kept]
    info.perf_data, info.data_len = ctypes.addressof(kept), len(text)


def layers(found: Context) -> str:
    """The table of a context's layers, modeled.

    Raises:
        RknnError: the model cannot be run.
    """
    metadata = found.model.metadata
    if metadata.custom_ops:  # shapes are found by a run, and the program's callbacks only run in its own runs
        return f"The layers are not available: {', '.join(metadata.custom_ops)} are custom ops without a modeled cost."
    platform = platform_of(metadata.target_platform)
    cores = platform.cores_of(found.schedule.cores)
    return layers_text(found.model.proto, metadata, CustomOps(), platform, cores)


def _perf_run(_here: RknnRuntime, found: Context, info: Any) -> None:
    info.run_duration = _run_us(found)


def _run_us(found: Context) -> int:
    found.settle()
    if found.run_us is None:
        raise RknnError(RknnStatus.RKNN_ERR_FAIL, "The context has not run yet: call rknn_run first.")
    return found.run_us


def _sdk_version(_here: RknnRuntime, _found: Context, info: Any) -> None:
    info.api_version, info.drv_version = f"{API} ({sdk_version()})".encode(), f"{DRIVER} (emulator)".encode()


def _mem_size(here: RknnRuntime, found: Context, info: Any) -> None:
    info.total_weight_size, info.total_internal_size = found.model.weight_bytes, found.model.internal_bytes
    info.total_dma_allocated_size = found.model.weight_bytes + found.model.internal_bytes
    used = sum(one.size_bytes for one in here.sram()) if here.sram_bytes else 0
    info.total_sram_size, info.free_sram_size = here.sram_bytes, here.sram_bytes - used


def _custom_string(_here: RknnRuntime, found: Context, info: Any) -> None:
    info.string = found.model.metadata.custom_string.encode()[: ctypes.sizeof(rknn_custom_string) - 1]


def _device_mem(_here: RknnRuntime, found: Context, info: Any) -> None:
    info.virt_addr, info.phys_addr, info.fd, info.size = None, 0, -1, found.model.weight_bytes


def _range(_here: RknnRuntime, found: Context, info: Any) -> None:
    model = found.model
    if not model.sets:
        raise invalid_parameter("The model has one set of shapes: it was converted without dynamic_input.")
    index = info.index
    found.side(index, is_input=True)
    sides = [model.sides(at, is_input=True)[index] for at in range(model.sets)]
    layout = "NHWC" if sides[0].is_picture else "UNDEFINED"
    shapes = [attributes.dims_in(side, layout, 0) for side in sides][: types.RKNN_MAX_DYNAMIC_SHAPE_NUM]
    info.shape_number, info.n_dims = len(shapes), len(shapes[0])
    info.fmt = types.rknn_tensor_format[f"RKNN_TENSOR_{layout}"]
    info.name = sides[0].info.name.encode()[: types.RKNN_MAX_NAME_LEN - 1]
    for row, shape in zip(info.dyn_range, shapes, strict=False):
        row[: len(shape)] = shape


_ANSWERS: Final[dict[rknn_query_cmd, tuple[type[ctypes.Structure], Callable[[RknnRuntime, Context, Any], None]]]] = {
    _Q.RKNN_QUERY_IN_OUT_NUM: (rknn_input_output_num, _in_out_num),
    _Q.RKNN_QUERY_PERF_DETAIL: (rknn_perf_detail, _perf_detail),
    _Q.RKNN_QUERY_PERF_RUN: (rknn_perf_run, _perf_run),
    _Q.RKNN_QUERY_SDK_VERSION: (rknn_sdk_version, _sdk_version),
    _Q.RKNN_QUERY_MEM_SIZE: (rknn_mem_size, _mem_size),
    _Q.RKNN_QUERY_CUSTOM_STRING: (rknn_custom_string, _custom_string),
    _Q.RKNN_QUERY_DEVICE_MEM_INFO: (rknn_tensor_mem, _device_mem),
    _Q.RKNN_QUERY_INPUT_DYNAMIC_RANGE: (rknn_input_range, _range),
}
