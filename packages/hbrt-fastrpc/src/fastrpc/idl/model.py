"""The declarations of an IDL file: constants, types, and interfaces with their methods."""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple, cast

from fastrpc.wire.marshal import (
    HANDLE,
    PARTS,
    SEQUENCE,
    STRING,
    VALUE,
    Kind,
    Method,
    Param,
    SequenceOf,
    is_in_parts,
)


class IdlError(ValueError):
    """An IDL file cannot be read; the message begins with its name, the line and the column."""


class Scalar(NamedTuple):
    """A numeric type.

    Attributes:
        c: Its name in C.
        kind: Its type of ctypes.
    """

    c: str
    kind: type[Any]


class Enum(NamedTuple):
    """Names of 32-bit numbers; ``c`` is its name in C."""

    c: str
    values: tuple[tuple[str, int], ...]
    kind: type[Any] = ctypes.c_int32


class Field(NamedTuple):
    """A field of a structure; ``lengths`` are the dimensions of an array."""

    name: str
    type: Type
    lengths: tuple[int, ...] = ()


class Struct(NamedTuple):
    """A structure, with the same layout as in C.

    Attributes:
        c: Its name in C.
        fields: Its fields.
        kind: Its type of ctypes; a subclass of Record for a structure with sequences or strings, which is passed in
            parts.
    """

    c: str
    fields: tuple[Field, ...]
    kind: type[Any]


class Array(NamedTuple):
    """A typedef of an array of a fixed size; ``c`` is its name in C."""

    c: str
    element: Value
    lengths: tuple[int, ...]
    kind: type[Any]


Value = Scalar | Enum | Struct | Array


class Sequence(NamedTuple):
    """Any number of elements; ``c`` is its name in C if a typedef names it."""

    element: Type
    c: str = ""


class String(NamedTuple):
    """A NUL-terminated string of bytes or of 16-bit characters."""

    is_wide: bool = False

    @property
    def character(self) -> Scalar:
        """Its elements' type."""
        return WIDE_CHARACTER if self.is_wide else CHARACTER


class Handle(NamedTuple):
    """A parameter passed as a handle: shared memory by its descriptor, or an open interface."""

    is_memory: bool


CHARACTER = Scalar("char", ctypes.c_int8)
WIDE_CHARACTER = Scalar("uint16_t", ctypes.c_uint16)
Type = Value | Sequence | String | Handle


def is_flat(kind: Type) -> bool:
    """Whether a value is in one piece, so that it can be copied unchanged."""
    if isinstance(kind, Struct):
        return not is_in_parts(kind.kind)
    return isinstance(kind, Scalar | Enum | Array)


def kind_of(one: Type) -> Kind:
    """How the type of a parameter in parts, or of one of its fields, is passed."""
    if isinstance(one, Sequence):
        return SequenceOf(kind_of(one.element))
    if isinstance(one, String):
        return SequenceOf(WIDE_CHARACTER.kind if one.is_wide else ctypes.c_char)
    return cast("Value", one).kind


def is_simple(kind: Type) -> bool:
    """Whether a parameter is a value, a string or a sequence of values in one piece."""
    return is_flat(kind) or isinstance(kind, String | Handle) or (isinstance(kind, Sequence) and is_flat(kind.element))


class Constant(NamedTuple):
    """A constant, as both C and Python write it."""

    name: str
    text: str


class Parameter(NamedTuple):
    """A parameter of a method: its name in C, its mode and its type."""

    name: str
    mode: str
    type: Type

    @property
    def is_out(self) -> bool:
        """Whether it has bytes on the way back."""
        return self.mode != "in"

    @property
    def is_in(self) -> bool:
        """Whether it has bytes on the way to the DSP, besides a length."""
        return self.mode != "rout"

    @property
    def is_buffer(self) -> bool:
        """Whether it is a sequence or a string."""
        return isinstance(self.type, Sequence | String)

    @property
    def value(self) -> Value | None:
        """The type of its value or elements; None for a string of bytes."""
        if isinstance(self.type, Sequence):
            return self.type.element  # type: ignore[return-value] # of a simple parameter
        if isinstance(self.type, String):
            return WIDE_CHARACTER if self.type.is_wide else None
        return self.type  # type: ignore[return-value] # likewise

    def param(self, name: str) -> Param:
        """How a parameter is passed, under a given name."""
        if not is_simple(self.type):
            return Param(name, self.mode, PARTS, kind_of(self.type))
        if isinstance(self.type, Handle):
            return Param(name, self.mode, HANDLE, ctypes.c_uint64)
        if isinstance(self.type, String) and not self.type.is_wide:
            return Param(name, self.mode, STRING)
        return Param(name, self.mode, SEQUENCE if self.is_buffer else VALUE, cast("Value", self.value).kind)


class Operation(NamedTuple):
    """A method.

    Attributes:
        name: Its name in C, without the interface's name.
        number: 0 for the first of a plain interface.
        returns: The type that its C function returns; None for void.
        parameters: Its parameters.
        method: The parameters that both sides marshal, with their Python names.
        is_async: Whether the stub in C only queues it, with a descriptor that reports its end.
    """

    name: str
    number: int
    returns: Scalar | Enum | None
    parameters: tuple[Parameter, ...]
    method: Method
    is_async: bool = False


class Interface(NamedTuple):
    """An interface.

    Attributes:
        c: Its name in C, prefixed with the names of its modules.
        has_handle: Whether programs open it and its objects; otherwise its functions need no handle.
        operations: Its methods, inherited ones first.
        static_handle: A handle that is open from the start, from a constant _const_NAME_handle; usually None.
    """

    c: str
    has_handle: bool
    operations: tuple[Operation, ...]
    static_handle: str | None


class File(NamedTuple):
    """An IDL file.

    Attributes:
        name: Its name without folder and suffix, the prefix of the generated files' names.
        includes: Names of the files that it includes, likewise without suffix; AEEStdDef and remote are left out.
        constants: Its constants.
        types: Its enumerations, structures and typedefs, in the order of their declaration.
        interfaces: Its interfaces.
        notes: Of each directive without effect, a sentence with its place.
    """

    name: str
    includes: tuple[str, ...]
    constants: tuple[Constant, ...]
    types: tuple[Enum | Struct | Array | Sequence | Alias, ...]
    interfaces: tuple[Interface, ...]
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Its constant IDL_VERSION if that has the form 1.2.3; otherwise empty."""
        written = next((one.text for one in self.constants if one.name == "IDL_VERSION"), "")
        return written[1:-1] if re.fullmatch(r'"[0-9]{1,3}(\.[0-9]{1,3}){0,2}"', written) else ""


class Alias(NamedTuple):
    """A typedef of a number; ``c`` is its name in C."""

    c: str
    of: Scalar | Enum | Struct
