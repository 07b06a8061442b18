"""The run time's calls as libhbrt.so hands them over: addresses as numbers; native/arm/calls.h has the prototypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

from rknn_api.capi import functions, matmul, queries
from rknn_api.custom_op_types import rknn_custom_op, rknn_custom_op_attr, rknn_custom_op_context
from rknn_api.types import (
    rknn_context,
    rknn_init_extend,
    rknn_input,
    rknn_matmul_info,
    rknn_matmul_io_attr,
    rknn_matmul_shape,
    rknn_matmul_tensor_attr,
    rknn_output,
    rknn_output_extend,
    rknn_quant_params,
    rknn_run_extend,
    rknn_tensor_attr,
    rknn_tensor_mem,
)

_S = TypeVar("_S", bound=ctypes.Structure)
_made: dict[int, rknn_tensor_mem] = {}  # by address: C has the pointers


def hbrt_rknn_init(context: int, model: int, size: int, flag: int, extend: int) -> int:
    """As rknn_init; with size 0 ``model`` is the address of a path."""
    made = rknn_context()
    given = ctypes.string_at(model) if model and not size else model or None
    code = functions.rknn_init(made if context else None, given, size, flag, _at(rknn_init_extend, extend))
    if not code:
        rknn_context.from_address(context).value = made.value
    return code


def hbrt_rknn_dup_context(context_in: int, context_out: int) -> int:
    """As rknn_dup_context."""
    source, made = rknn_context.from_address(context_in) if context_in else 0, rknn_context()
    code = functions.rknn_dup_context(source, made if context_out else None)
    if not code:
        rknn_context.from_address(context_out).value = made.value
    return code


def hbrt_rknn_query(context: int, cmd: int, info: int, size: int) -> int:
    """As rknn_query."""
    return functions.rknn_query(context, cmd, _at(queries.info_of(cmd), info), size)


def hbrt_rknn_inputs_set(context: int, n_inputs: int, inputs: int) -> int:
    """As rknn_inputs_set."""
    return functions.rknn_inputs_set(context, n_inputs, _array(rknn_input, inputs, n_inputs))


def hbrt_rknn_outputs_get(context: int, n_outputs: int, outputs: int, extend: int) -> int:
    """As rknn_outputs_get."""
    given = _array(rknn_output, outputs, n_outputs)
    return functions.rknn_outputs_get(context, n_outputs, given, _at(rknn_output_extend, extend))


def hbrt_rknn_run(context: int, extend: int) -> int:
    """As rknn_run."""
    return functions.rknn_run(context, _at(rknn_run_extend, extend))


def hbrt_rknn_outputs_release(context: int, n_outputs: int, outputs: int) -> int:
    """As rknn_outputs_release."""
    return functions.rknn_outputs_release(context, n_outputs, _array(rknn_output, outputs, n_outputs))


def hbrt_rknn_set_input_shapes(context: int, n_inputs: int, attr: int) -> int:
    """As rknn_set_input_shapes."""
    return functions.rknn_set_input_shapes(context, n_inputs, _array(rknn_tensor_attr, attr, n_inputs))


def hbrt_rknn_set_input_shape(context: int, attr: int) -> int:
    """As rknn_set_input_shape."""
    return functions.rknn_set_input_shape(context, attr)


def hbrt_rknn_set_io_mem(context: int, mem: int, attr: int) -> int:
    """As rknn_set_io_mem."""
    return functions.rknn_set_io_mem(context, _mem(mem), _at(rknn_tensor_attr, attr))


def hbrt_rknn_set_weight_mem(context: int, mem: int) -> int:
    """As rknn_set_weight_mem."""
    return functions.rknn_set_weight_mem(context, _mem(mem))


def hbrt_rknn_set_internal_mem(context: int, mem: int) -> int:
    """As rknn_set_internal_mem."""
    return functions.rknn_set_internal_mem(context, _mem(mem))


def hbrt_rknn_mem_sync(context: int, mem: int, mode: int) -> int:
    """As rknn_mem_sync."""
    return functions.rknn_mem_sync(context, _mem(mem), mode)


def hbrt_rknn_register_custom_ops(context: int, op: int, custom_op_num: int) -> int:
    """As rknn_register_custom_ops."""
    return functions.rknn_register_custom_ops(context, _array(rknn_custom_op, op, custom_op_num), custom_op_num)


def hbrt_rknn_custom_op_get_op_attr(op_ctx: int, attr_name: int, op_attr: int) -> int:
    """As rknn_custom_op_get_op_attr."""
    name = ctypes.string_at(attr_name) if attr_name else b""
    functions.rknn_custom_op_get_op_attr(_at(rknn_custom_op_context, op_ctx), name, _at(rknn_custom_op_attr, op_attr))
    return 0


def hbrt_rknn_destroy_mem(context: int, mem: int) -> int:
    """As rknn_destroy_mem; the structure goes with the memory."""
    code = functions.rknn_destroy_mem(context, _mem(mem))
    if not code:
        del _made[mem]
    return code


def _kept(create: Callable[..., rknn_tensor_mem | None]) -> Callable[..., int]:
    def created(*given: int) -> int:
        made = create(*given)
        if made is None:
            return 0
        address = ctypes.addressof(made)
        _made[address] = made
        return address

    return created


def hbrt_rknn_matmul_create(ctx: int, info: int, io_attr: int) -> int:
    """As rknn_matmul_create."""
    return matmul.rknn_matmul_create(
        _at(rknn_context, ctx), _at(rknn_matmul_info, info), _at(rknn_matmul_io_attr, io_attr)
    )


def hbrt_rknn_matmul_create_dynamic_shape(
    ctx: int, info: int, shape_num: int, dynamic_shapes: int, io_attrs: int
) -> int:
    """As rknn_matmul_create_dynamic_shape."""
    return matmul.rknn_matmul_create_dynamic_shape(
        _at(rknn_context, ctx),
        _at(rknn_matmul_info, info),
        shape_num,
        _array(rknn_matmul_shape, dynamic_shapes, shape_num),
        _array(rknn_matmul_io_attr, io_attrs, shape_num),
    )


def hbrt_rknn_matmul_set_dynamic_shape(ctx: int, shape: int) -> int:
    """As rknn_matmul_set_dynamic_shape."""
    return matmul.rknn_matmul_set_dynamic_shape(ctx, _at(rknn_matmul_shape, shape))


def hbrt_rknn_matmul_set_io_mem(ctx: int, mem: int, attr: int) -> int:
    """As rknn_matmul_set_io_mem."""
    return matmul.rknn_matmul_set_io_mem(ctx, _mem(mem), _at(rknn_matmul_tensor_attr, attr))


def hbrt_rknn_matmul_set_quant_params(ctx: int, params: int) -> int:
    """As rknn_matmul_set_quant_params."""
    return matmul.rknn_matmul_set_quant_params(ctx, _at(rknn_quant_params, params))


def hbrt_rknn_B_normal_layout_to_native_layout(b_input: int, b_output: int, k: int, n: int, info: int) -> int:
    """As rknn_B_normal_layout_to_native_layout."""
    return matmul.rknn_B_normal_layout_to_native_layout(b_input, b_output, k, n, _at(rknn_matmul_info, info))


hbrt_rknn_matmul_set_core_mask = matmul.rknn_matmul_set_core_mask
hbrt_rknn_matmul_run = matmul.rknn_matmul_run
hbrt_rknn_matmul_destroy = matmul.rknn_matmul_destroy
hbrt_rknn_create_mem = _kept(functions.rknn_create_mem)
hbrt_rknn_create_mem2 = _kept(functions.rknn_create_mem2)
hbrt_rknn_create_mem_from_fd = _kept(functions.rknn_create_mem_from_fd)
hbrt_rknn_create_mem_from_phys = _kept(functions.rknn_create_mem_from_phys)
hbrt_rknn_destroy = functions.rknn_destroy
hbrt_rknn_wait = functions.rknn_wait
hbrt_rknn_set_core_mask = functions.rknn_set_core_mask
hbrt_rknn_set_batch_core_num = functions.rknn_set_batch_core_num


def _at(kind: type[_S], address: int) -> _S | None:
    return kind.from_address(address) if address else None


def _mem(address: int) -> rknn_tensor_mem | None:
    """The structure that Python made; one that the program copied is read as it is."""
    return _made.get(address) or _at(rknn_tensor_mem, address)


def _array(kind: type[_S], address: int, count: int) -> Any:
    return (kind * max(0, min(count, 4096))).from_address(address) if address else None
