"""Types of an IDL file in C. Pure."""

from __future__ import annotations

from typing import cast

from fastrpc.idl.model import (
    Alias,
    Array,
    Enum,
    Field,
    Handle,
    Parameter,
    Sequence,
    String,
    Struct,
    Type,
    Value,
)
from fastrpc.idl.names import CPP_WORDS


def c_of(kind: Type) -> str:
    """The name of a type of values or elements."""
    if isinstance(kind, String):
        return "_wstring1_t" if kind.is_wide else "_cstring1_t"
    if isinstance(kind, Handle):
        return "remote_handle64"
    return kind.c


def element_of(kind: Type) -> Value:
    """The type of the elements of a sequence of values, or of a string."""
    found = kind.character if isinstance(kind, String) else kind.element if isinstance(kind, Sequence) else kind
    return cast("Value", found)


def is_pointer(one: Parameter) -> bool:
    """Whether the C function takes a value's address."""
    return one.is_out or isinstance(one.type, Struct | Array)


def declarations(one: Parameter, name: str) -> list[str]:
    """How the C function takes a parameter with a given name."""
    constant = "" if one.is_out else "const "
    if isinstance(one.type, Handle):
        if one.type.is_memory:
            return [f"int {name}", f"uint32_t {name}Offset", f"uint32_t {name}Len"]
        return [f"remote_handle64 {'*' if one.is_out else ''}{name}"]
    if isinstance(one.type, String):
        pointer = f"{constant}{one.type.character.c} *{name}"
        return [pointer, f"int {name}Len"] if one.is_out else [pointer]
    if isinstance(one.type, Sequence):
        return [f"{constant}{c_of(one.type.element)} *{name}", f"int {name}Len"]
    if isinstance(one.type, Array):
        return [f"{constant}{one.type.c} {name}"]
    return [f"{constant}{one.type.c} *{name}" if is_pointer(one) else f"{one.type.c} {name}"]


def header_of(one: Enum | Struct | Array | Sequence | Alias) -> list[str]:
    """The definition of a type."""
    if isinstance(one, Alias):
        return [f"typedef {one.of.c} {one.c};"]
    if isinstance(one, Enum):
        rows = [text for name, value in one.values for text in _member("  ", name, f" = {value},")]
        return [f"typedef enum {one.c} {{", *rows, f"  _32BIT_PLACEHOLDER_{one.c} = 0x7fffffff,", f"}} {one.c};"]
    if isinstance(one, Array):
        return [f"typedef {c_of(one.element)} {one.c}{_dimensions(one.lengths)};"]
    if isinstance(one, Sequence):
        return [f"typedef struct {one.c} {{", f"  {c_of(one.element)} *data;", "  int dataLen;", f"}} {one.c};"]
    rows = [text for field in one.fields for text in _field(field)]
    return [f"typedef struct {one.c} {{", *rows, f"}} {one.c};"]


def _field(field: Field) -> list[str]:
    kind = field.type
    length = [f"  int {field.name}Len;"] if isinstance(kind, String | Sequence) else []
    start = f"  {c_of(element_of(kind))} *" if length else f"  {c_of(kind)} "
    return [*_member(start, field.name, f"{_dimensions(field.lengths)};"), *length]


def _member(start: str, name: str, end: str) -> list[str]:
    """The line of a member; a name that is a keyword of C++ ends in _ there."""
    if name in CPP_WORDS:
        return ["#ifdef __cplusplus", f"{start}{name}_{end}", "#else", f"{start}{name}{end}", "#endif"]
    return [f"{start}{name}{end}"]


def _dimensions(lengths: tuple[int, ...]) -> str:
    return "".join(f"[{length}]" for length in lengths)
