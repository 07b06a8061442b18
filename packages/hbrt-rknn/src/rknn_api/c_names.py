"""The run time's calls as libhbrt.so hands them over: addresses as numbers; native/arm/calls.h has the prototypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from rknn_api.capi import functions, matmul, queries
from rknn_api.custom_op_types import rknn_custom_op, rknn_custom_op_attr, rknn_custom_op_context
from rknn_api.rga.calls import (
    hbrt_rga_do,
    hbrt_rga_import,
    hbrt_rga_release,
)
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

__all__ = ["hbrt_rga_do", "hbrt_rga_import", "hbrt_rga_release"]  # beside what is made here
STRUCTURES: dict[str, type[ctypes.Structure]] = {}
_S = TypeVar("_S", bound=ctypes.Structure)
_made: dict[int, rknn_tensor_mem] = {}  # by address: C has the pointers


class _Array(NamedTuple):
    """An argument that is the address of structures; another argument says how many."""

    kind: type[ctypes.Structure]
    count_at: int


_Kind = type[Any] | _Array | None


def _by_address(call: Callable[..., int], *kinds: _Kind) -> Callable[..., int]:
    """A call whose arguments of these kinds, in order, are addresses; None for one that is handed on."""

    def called(*given: int) -> int:
        return call(*(_argument(kind, value, given) for kind, value in zip(kinds, given, strict=True)))

    return called


def _argument(kind: _Kind, value: int, given: tuple[int, ...]) -> Any:
    if kind is None:
        return value
    if isinstance(kind, _Array):
        count = max(0, min(given[kind.count_at], 4096))
        return (kind.kind * count).from_address(value) if value else None
    return _mem(value) if kind is rknn_tensor_mem else _at(kind, value)


def _at(kind: type[_S], address: int) -> _S | None:
    return kind.from_address(address) if address else None


def _mem(address: int) -> rknn_tensor_mem | None:
    """The structure that Python made; one that the program copied is read as it is."""
    return _made.get(address) or _at(rknn_tensor_mem, address)


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


hbrt_rknn_inputs_set = _by_address(functions.rknn_inputs_set, None, None, _Array(rknn_input, 1))
hbrt_rknn_outputs_get = _by_address(functions.rknn_outputs_get, None, None, _Array(rknn_output, 1), rknn_output_extend)
hbrt_rknn_run = _by_address(functions.rknn_run, None, rknn_run_extend)
hbrt_rknn_outputs_release = _by_address(functions.rknn_outputs_release, None, None, _Array(rknn_output, 1))
hbrt_rknn_set_input_shapes = _by_address(functions.rknn_set_input_shapes, None, None, _Array(rknn_tensor_attr, 1))
hbrt_rknn_set_io_mem = _by_address(functions.rknn_set_io_mem, None, rknn_tensor_mem, rknn_tensor_attr)
hbrt_rknn_set_weight_mem = _by_address(functions.rknn_set_weight_mem, None, rknn_tensor_mem)
hbrt_rknn_set_internal_mem = _by_address(functions.rknn_set_internal_mem, None, rknn_tensor_mem)
hbrt_rknn_mem_sync = _by_address(functions.rknn_mem_sync, None, rknn_tensor_mem, None)
hbrt_rknn_register_custom_ops = _by_address(functions.rknn_register_custom_ops, None, _Array(rknn_custom_op, 2), None)
hbrt_rknn_matmul_create = _by_address(matmul.rknn_matmul_create, rknn_context, rknn_matmul_info, rknn_matmul_io_attr)
hbrt_rknn_matmul_create_dynamic_shape = _by_address(
    matmul.rknn_matmul_create_dynamic_shape,
    rknn_context,
    rknn_matmul_info,
    None,
    _Array(rknn_matmul_shape, 2),
    _Array(rknn_matmul_io_attr, 2),
)
hbrt_rknn_matmul_set_dynamic_shape = _by_address(matmul.rknn_matmul_set_dynamic_shape, None, rknn_matmul_shape)
hbrt_rknn_matmul_set_io_mem = _by_address(matmul.rknn_matmul_set_io_mem, None, rknn_tensor_mem, rknn_matmul_tensor_attr)
hbrt_rknn_matmul_set_quant_params = _by_address(matmul.rknn_matmul_set_quant_params, None, rknn_quant_params)
hbrt_rknn_B_normal_layout_to_native_layout = _by_address(
    matmul.rknn_B_normal_layout_to_native_layout, None, None, None, None, rknn_matmul_info
)
hbrt_rknn_set_input_shape = functions.rknn_set_input_shape
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


def function(name: str, host: Any) -> Callable[..., int]:
    """As ``Guest.function`` of arm_client/c_library/host.py."""
    del host
    call: Callable[..., int] = globals()[name]
    return call


def refusal(name: str, status: int) -> None:
    """As ``Guest.refusal`` of arm_client/c_library/host.py: the run time's own log has said it."""
    del name, status
