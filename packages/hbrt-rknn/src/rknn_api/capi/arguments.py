"""Arguments of the runtime's C names: a context's number, integers, structures by value, pointer or array."""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

from arm_client.cabi.arguments import deref, integer
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.types import rknn_context

_S = TypeVar("_S", bound="ctypes.Structure | ctypes.c_uint64")


def handle_of(context: Any) -> int:
    """The number of a context; raises RKNN_ERR_CTX_INVALID for 0."""
    if not (handle := handle_or_none(context)):
        raise RknnError(RknnStatus.RKNN_ERR_CTX_INVALID, "The context is 0: rknn_init has not filled it.")
    return handle


def handle_or_none(context: Any) -> int | None:
    """The number of a context, including 0; None for an invalid one."""
    found = deref(context, rknn_context)  # type: ignore[type-var] # a number, where other handles are pointers
    return integer(context if found is None else found.value)


def structure_of(name: str, given: Any, kind: type[_S]) -> _S:
    """The structure behind an argument; raises RKNN_ERR_PARAM_INVALID."""
    found: _S | None = deref(given, kind)  # type: ignore[type-var]  # the handle is a number, not a pointer
    if found is None:
        raise invalid_parameter(
            f"{name} is {type(given).__name__ if given is not None else 'NULL'}; pass a {kind.__name__}."
        )
    return found


def number_of(name: str, given: Any) -> int:
    """The integer behind an argument; raises RKNN_ERR_PARAM_INVALID."""
    if (found := integer(given)) is None:
        raise invalid_parameter(f"{name} is {given!r}; pass an integer.")
    return found


def array_of(name: str, given: Any, count: Any, kind: type[_S]) -> list[_S]:
    """The structures of an array argument; raises RKNN_ERR_PARAM_INVALID."""
    number = number_of(f"the number of {name}", count)
    try:
        elements = [given] if isinstance(given, kind) else list(given)[: max(0, number)]
    except TypeError:
        first = structure_of(name, given, kind)
        pointer = ctypes.cast(ctypes.byref(first), ctypes.POINTER(kind))
        elements = [pointer[at] for at in range(max(0, number))]
    if number < 1 or len(elements) < number:
        raise invalid_parameter(f"{name} has {len(elements)} elements, but their number is given as {number}.")
    return [structure_of(name, one, kind) for one in elements]
