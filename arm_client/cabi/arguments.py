"""Interpret an argument as a C compiler would: structures, integers, bytes. Nothing here raises."""

from __future__ import annotations

import ctypes
from _ctypes import CFuncPtr  # the base of all function pointers
from operator import index
from typing import Any, TypeVar, cast

from hbrt.borders.interrupts import let_out

_Structure = TypeVar("_Structure", bound="ctypes.Structure | ctypes.c_void_p")
_MAX_SHOWN = 120

NULL = "None"
"""What messages call a null pointer, in the program's language."""


def deref(given: object, kind: type[_Structure]) -> _Structure | None:
    """Return the structure in a caller's argument: itself, ``byref(x)``, a pointer, or an array's first element.

    None for anything else, including a null pointer. ``byref()`` of a plain c_void_p is a ``void **``, which also
    serves as a pointer to a handle.
    """
    try:
        if isinstance(given, kind):
            return given
        if isinstance(given, ctypes.Array):
            found = given[0]
        else:
            found = getattr(given, "_obj", None)  # byref
            if found is None:
                found = getattr(given, "contents", None)
            if isinstance(found, ctypes.Array):
                found = _element(given, found)
        if isinstance(found, kind):
            return found
        is_handle = type(found) is ctypes.c_void_p and issubclass(kind, ctypes.c_void_p)
        return cast("_Structure", found) if is_handle else None
    except Exception as error:  # noqa: BLE001 - a null pointer, an empty array, or an object that answers with an exception
        let_out(error)
        return None


def referent(given: Any) -> Any:
    """Return the target of ``byref()``: an object, or a pointer for ``byref(array, offset)``; otherwise the argument.

    Raises:
        Any error from the object's own code.
    """
    found = getattr(given, "_obj", given)
    if found is given or not isinstance(found, ctypes.Array) or not _offset(given, found):
        return found
    return ctypes.cast(given, ctypes.POINTER(found._type_))


def _offset(given: Any, array: ctypes.Array[Any]) -> int:
    return (ctypes.cast(given, ctypes.c_void_p).value or 0) - ctypes.addressof(array)


def _element(given: Any, array: ctypes.Array[Any]) -> object:
    """Return the element that ``byref(array, offset)``, or a pointer to the array, points to."""
    at, rest = divmod(_offset(given, array), ctypes.sizeof(array) // len(array))
    return array[at] if at >= 0 and not rest else None


def integer(given: object) -> int | None:
    """Convert a Python, numpy or ctypes integer to int; None for anything else."""
    try:
        if isinstance(given, ctypes._SimpleCData):  # noqa: SLF001 - the base of c_int and its like
            return given.value if type(given.value) is int else None
        return index(cast("Any", given))
    except Exception as error:  # noqa: BLE001 - whatever an object's own code raises
        let_out(error)
        return None


def is_function(given: object) -> bool:
    """Whether it can be called: a Python callable, or a non-null ctypes function pointer."""
    is_null = issubclass(type(given), CFuncPtr) and not cast("Any", given)  # isinstance would run the object's code
    return callable(given) and not is_null


def takes(function: object, userdata: object) -> bool:
    """Whether a callback accepts its user data: a C function pointer takes only the types it declares."""
    kinds = getattr(function, "argtypes", None) if issubclass(type(function), CFuncPtr) else None
    if not kinds:
        return True
    try:
        kinds[-1].from_param(userdata)
    except Exception as error:  # noqa: BLE001 - whatever an object's own code raises
        let_out(error)
        return False
    return True


def bytes_of(buffer: Any, size_bytes: int) -> memoryview:
    """Return the bytes of a CPU buffer: an object with the buffer protocol, an address or a pointer.

    Args:
        buffer: As for hbSysWriteMem and hbSysReadMem.
        size_bytes: Size in bytes; only the caller knows it for an address.

    Raises:
        TypeError, ValueError, BufferError: it has no bytes, or is not contiguous; or any error from its own code.
    """
    if buffer is None:
        raise TypeError("it is a null pointer")
    address = _address(buffer)
    if address is not None:
        if not address:
            raise ValueError("it is a null pointer")
        return memoryview((ctypes.c_ubyte * size_bytes).from_address(address)).cast("B")
    view = memoryview(buffer)
    if not view.nbytes:
        return memoryview(b"")
    if not view.c_contiguous:
        raise TypeError("its bytes are not contiguous")
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def short_repr(value: object) -> str:
    """Return a short text for any value, for messages."""
    if value is None:
        return NULL
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - an object may fail even here
        let_out(error)
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _address(buffer: Any) -> int | None:
    """Return the address in a number or pointer; None for an object with its own bytes, 0 for a null pointer."""
    is_pointer = type(buffer) in {ctypes.c_void_p, ctypes.c_char_p} or isinstance(buffer, ctypes._Pointer)  # noqa: SLF001
    if is_pointer or hasattr(buffer, "_obj"):  # byref
        return ctypes.cast(buffer, ctypes.c_void_p).value or 0
    return buffer if type(buffer) is int else None
