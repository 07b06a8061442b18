"""The runtime's calls as librknnrt.so passes them on: addresses are numbers, as in the headers' prototypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import rknn_api
from arm_client.c_library.prototypes import Prototype, by_address, made, read, without_body
from rknn_api import types
from rknn_api.capi import functions, queries
from rknn_api.errors import RknnStatus
from rknn_api.log import Log
from rknn_api.rga.calls import hbrt_rga_do, hbrt_rga_import, hbrt_rga_release
from rknn_api.types import rknn_context, rknn_init_extend, rknn_tensor_mem


def _rknn_init(context: int, model: int, size: int, flag: int, extend: int) -> int:
    """Like rknn_init; with size 0, ``model`` is the address of a path."""
    given = ctypes.string_at(model) if model and not size else model or None
    return functions.rknn_init(read(rknn_context, context), given, size, flag, read(rknn_init_extend, extend))


def _rknn_query(context: int, cmd: int, info: int, size: int) -> int:
    """Like rknn_query."""
    return functions.rknn_query(context, cmd, read(queries.info_of(cmd), info), size)


def _rknn_destroy_mem(context: int, mem: int) -> int:
    """Like rknn_destroy_mem; the structure is freed with the memory."""
    code = functions.rknn_destroy_mem(context, read(rknn_tensor_mem, mem))
    if not code:
        del made[mem]
    return code


_BY_HAND: dict[str, Callable[..., int]] = {
    "rknn_init": _rknn_init,
    "rknn_query": _rknn_query,
    "rknn_destroy_mem": _rknn_destroy_mem,
    "hbrt_rga_do": hbrt_rga_do,
    "hbrt_rga_import": hbrt_rga_import,
    "hbrt_rga_release": hbrt_rga_release,
}
"""What a function's prototype does not fully express."""
TYPES = vars(types)


def function(name: str, given: Prototype, host: Any) -> Callable[..., int]:
    """Like ``Guest.function`` of arm_client/c_library/host.py."""
    del host
    if name in _BY_HAND:
        return _BY_HAND[name]
    call = getattr(rknn_api, name, None)
    if call is not None:
        return by_address(call, given.kinds)

    def refuse(sentence: str) -> int:
        Log().error(name, sentence)
        return int(RknnStatus.RKNN_ERR_FAIL) if given.result is ctypes.c_int32 else 0

    return without_body(name, refuse)


def refusal(name: str, status: int) -> None:
    """Like ``Guest.refusal`` of arm_client/c_library/host.py: the runtime has already logged it."""
    del name, status
