"""The bases of every C structure and handle of the public API.

They are ctypes structures, except that a misspelled field is an error and printing shows the values.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

# Field types as in C: the Python type that programs use, and the type in memory.
int8_t: TypeAlias = Annotated[int, ctypes.c_int8]
uint8_t: TypeAlias = Annotated[int, ctypes.c_uint8]
int16_t: TypeAlias = Annotated[int, ctypes.c_int16]
int32_t: TypeAlias = Annotated[int, ctypes.c_int32]
uint32_t: TypeAlias = Annotated[int, ctypes.c_uint32]
int64_t: TypeAlias = Annotated[int, ctypes.c_int64]
uint64_t: TypeAlias = Annotated[int, ctypes.c_uint64]
float32_t: TypeAlias = Annotated[float, ctypes.c_float]
float64_t: TypeAlias = Annotated[float, ctypes.c_double]
void_p: TypeAlias = Annotated[int | None, ctypes.c_void_p]

_Structure = TypeVar("_Structure", bound="ctypes.Structure | ctypes.Union")
_set = object.__setattr__
_CLOSE_ENOUGH = 0.6


class _Checked:
    """Refuses unknown fields, like a C compiler.

    A subclass with other attributes gives them defaults in the class.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field.

        Raises:
            AttributeError: the structure has no such field; names the closest one.
        """
        if not hasattr(self.__class__, name):
            raise AttributeError(_no_field(type(self), name))  # without a name, or Python adds its own hint
        _set(self, name, value)

    def __repr__(self) -> str:
        """Show the fields with their values: addresses in hex, pointers by their targets."""
        values = ", ".join(f"{name}={_shown(kind, getattr(self, name))}" for name, kind in _fields_of(type(self)))
        return f"{type(self).__name__}({values})"


class CStructure(_Checked, ctypes.Structure):
    """A C structure that refuses unknown fields."""


class CUnion(_Checked, ctypes.Union):
    """A C union that refuses unknown fields."""


def structure(cls: type[_Structure]) -> type[_Structure]:
    """Turn a class's annotations, in order, into the fields of its C structure.

    The type of a field is a structure, or an ``Annotated`` name that has a ctypes type as its second part. An
    annotation with a value in the class is not a field.
    """
    names = vars(sys.modules[cls.__module__])
    kinds = {field: names[kind] for field, kind in cls.__annotations__.items() if field not in vars(cls)}
    cls._fields_ = [(field, getattr(kind, "__metadata__", (kind,))[0]) for field, kind in kinds.items()]
    return cls


def initializer(defaults: CStructure) -> Callable[[CStructure], None]:
    """Initialize a structure like a C macro: write all its bytes at once, bypassing the field checks."""
    write, raw = struct.Struct(f"{ctypes.sizeof(defaults)}s").pack_into, bytes(defaults)
    return lambda target: write(target, 0, raw)


class CHandle(ctypes.c_void_p):
    """An opaque handle; ``value`` is None until a call fills it."""

    def __repr__(self) -> str:
        """The handle's number, or NULL."""
        return f"{type(self).__name__}({_shown(ctypes.c_void_p, self.value)})"


class OtherSpelling:
    """An alias for a field that the manual spells in two ways."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __get__(self, structure: Any, _: type | None = None) -> Any:
        """The field's value."""
        return self if structure is None else getattr(structure, self.field)

    def __set__(self, structure: Any, value: Any) -> None:
        """Set the field."""
        setattr(structure, self.field, value)


def _fields_of(kind: type[Any]) -> list[tuple[str, Any]]:
    """Return name and type of every field, base structures first."""
    return [(one[0], one[1]) for base in reversed(kind.__mro__) for one in base.__dict__.get("_fields_", ())]


def _no_field(kind: type[Any], name: str) -> str:
    import difflib  # imported here: correct programs do not need it

    fields = [field for field, _ in _fields_of(kind)]
    by_letters = {field.lower(): field for field in fields}
    nearest = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=_CLOSE_ENOUGH)
    hint = f"did you mean {by_letters[nearest[0]]!r}?" if nearest else f"its fields are {', '.join(fields)}."
    return f"{kind.__name__} has no field {name!r}; {hint}"


def _shown(kind: Any, value: Any) -> str:
    if kind in {ctypes.c_uint64, ctypes.c_void_p}:  # API fields of these types are addresses
        return "NULL" if value is None else f"{value:#x}"
    if hasattr(kind, "contents"):  # a pointer's type
        return repr(value.contents) if value else "NULL"
    if isinstance(value, ctypes.Array):
        return f"[{', '.join(_shown(kind._type_, one) for one in value)}]"
    return repr(value)
