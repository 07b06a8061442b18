"""What an IDL file declares: constants, types, and interfaces with their methods."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from hbrt.fastrpc.marshal import SEQUENCE, STRING, Block, Method, Param


class IdlError(ValueError):
    """An IDL file cannot be read; the message begins with its name, the line and the column."""


class Scalar(NamedTuple):
    """A type of one number.

    Attributes:
        c: Its name in C.
        kind: Its type of ctypes.
    """

    c: str
    kind: type[Any]


class Enum(NamedTuple):
    """Names of 32-bit numbers."""

    name: str
    values: tuple[tuple[str, int], ...]
    kind: type[Any] = ctypes.c_int32

    @property
    def c(self) -> str:
        """Its name in C."""
        return self.name


class Field(NamedTuple):
    """A field of a structure; ``length`` is 0 for one that is no array."""

    name: str
    type: Scalar | Enum | Struct
    length: int


class Struct(NamedTuple):
    """A structure, laid out as C lays it out."""

    name: str
    fields: tuple[Field, ...]
    kind: type[Any]

    @property
    def c(self) -> str:
        """Its name in C."""
        return self.name


Value = Scalar | Enum | Struct


class Sequence(NamedTuple):
    """Any number of elements."""

    element: Value


class String(NamedTuple):
    """A text that a NUL ends."""


class Constant(NamedTuple):
    """A constant, as both C and Python write it."""

    name: str
    text: str


class Parameter(NamedTuple):
    """A parameter of a method: how it travels, and the type of its value or elements."""

    param: Param
    type: Value | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.param.name

    @property
    def is_buffer(self) -> bool:
        """Whether it is a sequence or a string."""
        return self.param.form in {SEQUENCE, STRING}


class Operation(NamedTuple):
    """A method: what both sides marshal, and its parameters with their types."""

    method: Method
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.method.name

    @property
    def input(self) -> Block:
        """The block of what comes in."""
        return self.method.input

    @property
    def output(self) -> Block:
        """The block of what goes back."""
        return self.method.output


class Interface(NamedTuple):
    """An interface.

    Attributes:
        name: Its name.
        has_handle: Whether programs open it, and objects of it; else its functions stand alone.
        operations: Its methods.
        constants: Of the file, as far as they stand before its end.
        types: Likewise: enumerations and structures.
    """

    name: str
    has_handle: bool
    operations: tuple[Operation, ...]
    constants: tuple[Constant, ...]
    types: tuple[Enum | Struct, ...]
