"""Types of ctypes from the C prototypes of native/arm/calls.h, which is their one home."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import hbrt.dnn_types
import hbrt.types
from arm_client.c_library.structures import hbrtLayer

_NUMBERS = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "remote_handle": ctypes.c_uint32,
    "remote_handle64": ctypes.c_uint64,
}
_STRUCTURES = {**vars(hbrt.types), **vars(hbrt.dnn_types), "hbrtLayer": hbrtLayer}
_PARAMETER = re.compile(r"(?P<const>const )?(?P<base>\w+)(?P<stars>[ *]*) ?\b(?P<name>\w+)")


def parameters_of(text: str, others: Mapping[str, type] = MappingProxyType({})) -> list[Any]:
    """The types of a list of parameters, such as ``(hbSysMem * mem, uint32_t size)``.

    Args:
        text: The list.
        others: Structures beside the client's, by name.

    Raises:
        ValueError: one is not written as base type, stars and name, or has a type that is not known.
    """
    inner = text.strip().removeprefix("(").removesuffix(")").strip()
    if inner == "void":
        return []
    return [_parameter(one.strip(), others) for one in inner.split(",")]


def result_of(text: str) -> Any:
    """The type of a result: int32_t, or text, which a callback gives as an address."""
    return ctypes.c_void_p if text == "const char *" else _NUMBERS[text]


def _parameter(text: str, others: Mapping[str, type]) -> Any:
    found = _PARAMETER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a base type with stars and a name.")
    return _pointed(found["base"], found["stars"].count("*"), others, is_const=found["const"] is not None)


def _pointed(base: str, stars: int, others: Mapping[str, type], *, is_const: bool) -> Any:
    if base == "char" and stars == 1 and not is_const:
        return ctypes.c_void_p  # bytes of a buffer
    if base in {"char", "void"} and stars:
        kind: Any = ctypes.c_char_p if base == "char" else ctypes.c_void_p
        stars -= 1
    else:
        kind = _NUMBERS.get(base) or _STRUCTURES.get(base) or others.get(base)
    if kind is None:
        raise ValueError(f"No type {base!r} is known.")
    for _ in range(stars):
        kind = ctypes.POINTER(kind)
    return kind
