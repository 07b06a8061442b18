"""The description of a ``ctypes.Structure`` or ``ctypes.Union``. Pure.

ctypes keeps the size and signedness of an integer, not its C type: ``c_long`` and ``c_int64`` are the same class on a
64-bit machine. So a ``long`` is visible only in a C declaration.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hbrt.layout.structure import Bits, Field, FieldKind, LayoutError, Structure

DSP_POINTER_BYTES = 4
DSP_LONG_DOUBLE_BYTES = 8

_WORDS = {
    "?": ("bool", FieldKind.BOOL, None),
    "c": ("char", FieldKind.CHARACTER, None),
    "u": ("wchar_t", FieldKind.CHARACTER, None),
    "f": ("float", FieldKind.FLOAT, None),
    "d": ("double", FieldKind.FLOAT, None),
    "g": ("long double", FieldKind.FLOAT, DSP_LONG_DOUBLE_BYTES),
    "P": ("void *", FieldKind.POINTER, DSP_POINTER_BYTES),
    "z": ("char *", FieldKind.POINTER, DSP_POINTER_BYTES),
    "Z": ("wchar_t *", FieldKind.POINTER, DSP_POINTER_BYTES),
    "O": ("PyObject *", FieldKind.POINTER, DSP_POINTER_BYTES),
}
"""ctypes letter of a non-integer type -> C type, kind, and bytes on the DSP if different."""

_AGGREGATES = (ctypes.Structure, ctypes.Union)
_BIG_ENDIAN = (ctypes.BigEndianStructure, ctypes.BigEndianUnion)


def of_class(
    kind: type[ctypes.Structure | ctypes.Union],
    site: str | None = None,
    *,
    is_known: Callable[[type[Any]], bool] = lambda _: False,
) -> Structure:
    """Describe a class.

    Args:
        kind: The class.
        site: ``file:line`` of its declaration.
        is_known: Whether both sides agree on a field's class, so that its fields can be skipped.

    Raises:
        LayoutError: it has no fields, is big-endian, or a field's type has no equivalent in C.
    """
    if issubclass(kind, _BIG_ENDIAN):
        raise LayoutError(
            f"{kind.__name__} is big-endian: the ARM and the DSP are little-endian. Derive it from ctypes.Structure."
        )
    fields = tuple(_fields(kind, is_known))
    if not fields:
        raise LayoutError(f"{kind.__name__} has no fields: define _fields_.")
    is_union = issubclass(kind, ctypes.Union)
    return Structure(kind.__name__, ctypes.sizeof(kind), ctypes.alignment(kind), fields, is_union, site)


def _fields(kind: type[Any], is_known: Callable[[type[Any]], bool]) -> Iterator[Field]:
    """Yield the fields, base classes first."""
    anonymous = {name for base in kind.__mro__ for name in base.__dict__.get("_anonymous_", ())}
    for base in reversed(kind.__mro__):
        for name, type_, *width in base.__dict__.get("_fields_", ()):
            place = base.__dict__[name]
            field = _field(f"{kind.__name__}.{name}", type_, place.offset, is_known)
            if width:
                # Before Python 3.14 the size of a bit field is its width and, in the low half, its first bit.
                shift = place.bit_offset if hasattr(place, "bit_offset") else place.size & 0xFFFF
                bits = Bits(8 * place.offset + shift, width[0])
                first = bits.first // 8
                field = field._replace(
                    offset=first, element_bytes=-(-(bits.first + bits.width) // 8) - first, bits=bits
                )
            yield field._replace(name="" if name in anonymous else name)


def _field(name: str, type_: Any, offset: int, is_known: Callable[[type[Any]], bool]) -> Field:
    shape = []
    while issubclass(type_, ctypes.Array):
        shape.append(type_._length_)
        type_ = type_._type_
    size = ctypes.sizeof(type_)
    if size > 1 and getattr(type_, "__ctype_be__", None) is type_:
        raise LayoutError(f"{name} is big-endian: the ARM and the DSP are little-endian. Use ctypes' own type.")
    nested, is_signed, dsp_bytes = None, None, None
    if issubclass(type_, _AGGREGATES):
        nested = None if is_known(type_) else of_class(type_, is_known=is_known)
        word = f"{'union' if issubclass(type_, ctypes.Union) else 'struct'} {type_.__name__}"
        kind = FieldKind.NESTED
    elif hasattr(type_, "contents"):
        word, kind, dsp_bytes = f"{_pointed_to(type_)} *", FieldKind.POINTER, DSP_POINTER_BYTES
    elif hasattr(type_, "argtypes"):
        word, kind, dsp_bytes = "void (*)()", FieldKind.POINTER, DSP_POINTER_BYTES
    elif (letter := getattr(type_, "_type_", "")) in _WORDS:
        word, kind, dsp_bytes = _WORDS[letter]
    elif letter and letter in "bBhHiIlLqQ":
        is_signed = letter.islower()
        word, kind = f"{'' if is_signed else 'u'}int{8 * size}_t", FieldKind.INTEGER
    else:
        raise LayoutError(f"{name} has type {type_.__name__}, which parameter structures cannot hold: use a C integer.")
    return Field(name, word, kind, offset, size, is_signed, tuple(shape), nested=nested, dsp_bytes=dsp_bytes)


def _pointed_to(pointer: Any) -> str:
    target = getattr(pointer, "_type_", None)
    return getattr(target, "__name__", "void")


def declared_at(kind: type[Any]) -> str | None:
    """Return ``file:line`` of a class; None if its source is unknown."""
    module = sys.modules.get(kind.__module__)
    if "<locals>" not in kind.__qualname__ and getattr(module, kind.__name__, None) is not kind:
        return None  # another module has the same name now
    try:
        return f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
    except (OSError, TypeError):
        return None
