"""The run time's calls as libhbrt.so hands them over: addresses as numbers, which the headers' prototypes read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import rknn_api
from hbrt.structures import Several
from rknn_api.capi import functions, queries
from rknn_api.errors import RknnStatus
from rknn_api.log import Log
from rknn_api.rga.calls import hbrt_rga_do, hbrt_rga_import, hbrt_rga_release
from rknn_api.types import (
    FUNCTIONS,
    rknn_context,
    rknn_custom_op_attr,
    rknn_custom_op_context,
    rknn_init_extend,
    rknn_tensor_mem,
)

_MAX_STRUCTURES = 4096
_made: dict[int, ctypes.Structure] = {}  # by address: C has the pointers


def _rknn_init(context: int, model: int, size: int, flag: int, extend: int) -> int:
    """As rknn_init; with size 0 ``model`` is the address of a path."""
    given = ctypes.string_at(model) if model and not size else model or None
    return functions.rknn_init(_read(rknn_context, context), given, size, flag, _read(rknn_init_extend, extend))


def _rknn_query(context: int, cmd: int, info: int, size: int) -> int:
    """As rknn_query."""
    return functions.rknn_query(context, cmd, _read(queries.info_of(cmd), info), size)


def _rknn_custom_op_get_op_attr(op_ctx: int, attr_name: int, op_attr: int) -> int:
    """As rknn_custom_op_get_op_attr."""
    name, node = ctypes.string_at(attr_name) if attr_name else b"", _read(rknn_custom_op_context, op_ctx)
    functions.rknn_custom_op_get_op_attr(node, name, _read(rknn_custom_op_attr, op_attr))
    return 0


def _rknn_destroy_mem(context: int, mem: int) -> int:
    """As rknn_destroy_mem; the structure goes with the memory."""
    code = functions.rknn_destroy_mem(context, _read(rknn_tensor_mem, mem))
    if not code:
        del _made[mem]
    return code


_BY_HAND: dict[str, Callable[..., int]] = {
    "rknn_init": _rknn_init,
    "rknn_query": _rknn_query,
    "rknn_custom_op_get_op_attr": _rknn_custom_op_get_op_attr,
    "rknn_destroy_mem": _rknn_destroy_mem,
    "hbrt_rga_do": hbrt_rga_do,
    "hbrt_rga_import": hbrt_rga_import,
    "hbrt_rga_release": hbrt_rga_release,
}
"""What the prototype of a function does not say all of."""
STRUCTURES: dict[str, type[ctypes.Structure]] = {}


def prototype(name: str) -> tuple[Any, list[Any]] | None:
    """As ``Guest.prototype`` of arm_client/c_library/host.py."""
    if name not in FUNCTIONS:
        return None
    result, kinds = FUNCTIONS[name]
    numbers = [kind if kind in {ctypes.c_int32, ctypes.c_uint32} else ctypes.c_uint64 for kind in kinds]
    return (ctypes.c_int32 if result in {None, ctypes.c_int32} else ctypes.c_uint64), numbers


def function(name: str, host: Any) -> Callable[..., int]:
    """As ``Guest.function`` of arm_client/c_library/host.py."""
    del host
    if name in _BY_HAND:
        return _BY_HAND[name]
    call = getattr(rknn_api, name, None)
    return _not_supported(name) if call is None else _by_address(call, FUNCTIONS[name][1])


def refusal(name: str, status: int) -> None:
    """As ``Guest.refusal`` of arm_client/c_library/host.py: the run time's own log has said it."""
    del name, status


def _not_supported(name: str) -> Callable[..., int]:
    def refused(*given: int) -> int:
        del given
        Log().error(name, f"{name} is declared, but not supported: hbrt has no body for it.")
        return int(RknnStatus.RKNN_ERR_FAIL) if FUNCTIONS[name][0] is ctypes.c_int32 else 0

    return refused


def _by_address(call: Callable[..., Any], kinds: tuple[Any, ...]) -> Callable[..., int]:
    """A call whose arguments of these kinds come as numbers; a structure that it returns is kept for C."""

    def called(*given: int) -> int:
        made = call(*(_argument(kind, value, given) for kind, value in zip(kinds, given, strict=True)))
        if not isinstance(made, ctypes.Structure):
            return made or 0
        address = ctypes.addressof(made)
        _made[address] = made
        return address

    return called


def _argument(kind: Any, value: int, given: tuple[int, ...]) -> Any:
    if isinstance(kind, Several):
        count = max(0, min(given[kind.count_at], _MAX_STRUCTURES))
        return (kind.kind * count).from_address(value) if value else None
    return _read(kind, value) if issubclass(kind, (ctypes.Structure, rknn_context)) else value


def _read(kind: Any, address: int) -> Any:
    """The structure at an address: that which Python made, or what the program has there; None for NULL."""
    made = _made.get(address)
    return made if isinstance(made, kind) else kind.from_address(address) if address else None
