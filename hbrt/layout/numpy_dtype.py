"""The description of a structured numpy dtype, with which a Python op reads its input block. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hbrt.layout.structure import Field, FieldKind, LayoutError, Structure

if TYPE_CHECKING:
    import numpy as np

_FLOATS = {2: "_Float16", 4: "float", 8: "double"}


def of_dtype(dtype: np.dtype[Any], name: str, site: str | None = None) -> Structure:
    """Describe a dtype.

    Args:
        dtype: A structured dtype.
        name: Its name.
        site: ``file:line`` of its declaration.

    Raises:
        LayoutError: it has no fields, is big-endian, or a field's type has no equivalent in C.
    """
    if not dtype.names or dtype.fields is None:
        raise LayoutError(f"{name} is the dtype {dtype}, which has no fields: it does not describe a structure.")
    fields = []
    for field_name in dtype.names:
        type_, offset = dtype.fields[field_name][:2]
        fields.append(_field(f"{name}.{field_name}", type_, offset)._replace(name=field_name))
    return Structure(name, dtype.itemsize, dtype.alignment, tuple(fields), site=site)


def _field(name: str, dtype: np.dtype[Any], offset: int) -> Field:
    element, shape = dtype.subdtype or (dtype, ())
    if element.byteorder == ">":
        raise LayoutError(
            f"{name} is big-endian ({element}): the ARM and the DSP are little-endian. Use '<' in its type."
        )
    size, nested, is_signed = element.itemsize, None, None
    if element.names:
        nested = of_dtype(element, name)
        word, kind = "struct", FieldKind.NESTED
    elif element.kind in "iu":
        is_signed = element.kind == "i"
        word, kind = f"{'' if is_signed else 'u'}int{8 * size}_t", FieldKind.INTEGER
    elif element.kind == "f" and size in _FLOATS:
        word, kind = _FLOATS[size], FieldKind.FLOAT
    elif element.kind == "b":
        word, kind = "bool", FieldKind.BOOL
    elif element.kind in "SV" and size:
        word, kind, shape, size = "char", FieldKind.CHARACTER, (*shape, size), 1
    else:
        raise LayoutError(
            f"{name} has type {element}, which parameter structures cannot hold: use an integer or a float."
        )
    return Field(name, word, kind, offset, size, is_signed, tuple(shape), nested=nested)
