"""Types of C functions from their signatures, and calls that receive pointers from C as numbers.

A signature has the result type followed by the parameter types, as in native/arm/entry.h: a name from ctypes or the
API, with a star for each pointer, or the index of the parameter with the element count, ``rknn_input[1]``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_MAX_STRUCTURES = 4096
_NUMBERS = {ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64}
made: dict[int, ctypes.Structure] = {}
"""Structures returned by calls, by address: C holds the pointers."""


class Several(NamedTuple):
    """A parameter that points to structures; the parameter at ``count_at`` is their number."""

    kind: type[ctypes.Structure]
    count_at: int


class Prototype(NamedTuple):
    """Types of a function's result (None for void) and parameters."""

    result: Any
    kinds: tuple[Any, ...]


def prototype(signature: str, names: Mapping[str, Any]) -> Prototype:
    """Parse the types in a signature, from ctypes or ``names``."""
    result, *kinds = (None if one == "None" else _kind(one, names) for one in signature.split())
    return Prototype(result, tuple(kinds))


def by_numbers(given: Prototype) -> Prototype:
    """Return the types with which C passes a function's result and parameters, with addresses as numbers."""
    plain = [kind if kind in _NUMBERS else ctypes.c_uint64 for kind in (given.result or ctypes.c_int32, *given.kinds)]
    return Prototype(plain[0], tuple(plain[1:]))


def by_address(call: Callable[..., Any], kinds: tuple[Any, ...]) -> Callable[..., int]:
    """Wrap a call to take arguments of these kinds as numbers; a structure that it returns is kept for C."""

    def called(*given: int) -> int:
        answer = call(*(_argument(kind, value, given) for kind, value in zip(kinds, given, strict=True)))
        if not isinstance(answer, ctypes.Structure):
            return answer or 0
        address = ctypes.addressof(answer)
        made[address] = answer
        return address

    return called


def without_body(name: str, refuse: Callable[[str], int]) -> Callable[..., int]:
    """Return a function for a declared name without a body; it returns ``refuse``'s result for a message."""
    return lambda *_: refuse(f"{name} is declared, but not supported: hbrt has no body for it.")


def read(kind: Any, address: int) -> Any:
    """Return the value at an address: Python's own object, or the program's data; None for NULL."""
    found = made.get(address)
    return found if isinstance(found, kind) else kind.from_address(address) if address else None


def _kind(text: str, names: Mapping[str, Any]) -> Any:
    base, _, count = text.partition("[")
    name = base.rstrip("*")
    kind = getattr(ctypes, name, None) or names[name]
    for _ in base[len(name) :]:
        kind = ctypes.POINTER(kind)
    return Several(kind, int(count.rstrip("]"))) if count else kind


def _argument(kind: Any, value: int, given: tuple[int, ...]) -> Any:
    if isinstance(kind, Several):
        count = max(0, min(given[kind.count_at], _MAX_STRUCTURES))
        return (kind.kind * count).from_address(value) if value else None
    if kind is ctypes.c_char_p:
        return ctypes.string_at(value) if value else None
    return read(kind._type_, value) if issubclass(kind, ctypes._Pointer) else value  # noqa: SLF001
