"""The description of a structure in memory: its fields and its padding. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

_INDEX = re.compile(r"\[\d+\]")


class LayoutError(ValueError):
    """A declaration cannot be described as a structure in memory; carries a message."""


class FieldKind(StrEnum):
    """What a field, or an element of an array field, holds."""

    INTEGER = "integer"
    FLOAT = "float"
    CHARACTER = "character"
    BOOL = "bool"
    ENUM = "enum"
    POINTER = "pointer"
    NESTED = "nested"


class Bits(NamedTuple):
    """Position of a bit field: its first bit, from the start of the structure, and its width."""

    first: int
    width: int


class Field(NamedTuple):
    """One field.

    Attributes:
        name: As declared; empty for an anonymous struct or union, whose fields count as the enclosing one's.
        type: C type of an element, such as ``uint32_t``.
        kind: What an element holds.
        offset: First byte, from the start of the structure.
        element_bytes: Size of an element on ARM; for a bit field, the bytes that it touches.
        is_signed: For an integer; None if not applicable.
        shape: Dimensions of an array; empty for one element.
        bits: For a bit field.
        nested: For a struct or union.
        dsp_bytes: Size of an element on the DSP, if different.
        site: ``file:line`` of its declaration, if known.
    """

    name: str
    type: str
    kind: FieldKind
    offset: int
    element_bytes: int
    is_signed: bool | None = None
    shape: tuple[int, ...] = ()
    bits: Bits | None = None
    nested: Structure | None = None
    dsp_bytes: int | None = None
    site: str | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Total bytes of all elements."""
        return self.element_bytes * self.elements

    @property
    def end(self) -> int:
        """Offset just past it."""
        return self.offset + self.size_bytes

    @property
    def c_type(self) -> str:
        """Type with dimensions or bits: ``float[3]``, ``uint32_t:5``."""
        bits = f":{self.bits.width}" if self.bits else ""
        return f"{self.type}{bits}{''.join(f'[{side}]' for side in self.shape)}"

    def moved(self, by: int) -> Field:
        """Return a copy shifted by this many bytes."""
        bits = Bits(self.bits.first + 8 * by, self.bits.width) if self.bits else None
        return self._replace(offset=self.offset + by, bits=bits)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        data = {
            "name": self.name,
            "type": self.c_type,
            "kind": str(self.kind),
            "offset": self.offset,
            "size_bytes": self.size_bytes,
            "is_signed": self.is_signed,
            "shape": list(self.shape) or None,
            "bits": self.bits._asdict() if self.bits else None,
            "fields": [field.as_dict() for field in self.nested.fields] if self.nested else None,
            "dsp_bytes": self.dsp_bytes,
            "site": self.site,
        }
        return {name: value for name, value in data.items() if value is not None}


class Hole(NamedTuple):
    """Padding before a field.

    Attributes:
        offset: First byte.
        size_bytes: Number of bytes.
        before: The preceding field; None at the start of the structure.
        after: The field that follows.
        times: Number of occurrences in arrays of structures, between the same fields; the offset is the first one's.
    """

    offset: int
    size_bytes: int
    before: Field | None
    after: Field
    times: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        before = self.before.name if self.before else None
        return {**self._asdict(), "before": before, "after": self.after.name}


class Structure(NamedTuple):
    """A struct or union as laid out in an ARM program (LP64).

    Attributes:
        name: As declared.
        size_bytes: Its sizeof.
        alignment: Required alignment of its address in bytes.
        fields: In declaration order.
        is_union: Whether the fields overlap.
        site: ``file:line`` of its declaration, if known.
    """

    name: str
    size_bytes: int
    alignment: int
    fields: tuple[Field, ...]
    is_union: bool = False
    site: str | None = None

    def members(self, base: int = 0) -> Iterator[Field]:
        """Yield the named fields, with ``base`` added to offsets, including those of anonymous structures."""
        for field in self.fields:
            if field.nested and not field.name:
                yield from field.nested.members(base + field.offset)
            else:
                yield field.moved(base)

    def leaves(self, base: int = 0, path: str = "") -> Iterator[Field]:
        """Yield the fields that are not structures, with dotted names; for an array of structures, only the first's."""
        for field in self.members(base):
            if field.nested:
                yield from field.nested.leaves(field.offset, _element_path(path, field, 0))
            else:
                yield field._replace(name=path + field.name)

    def holes(self) -> tuple[Hole, ...]:
        """Return the padding before fields, in order; equal ones in an array count as one."""
        found: dict[str, Hole] = {}
        last, reached = None, 0
        for start, end, first, final in sorted(_spans(self, 0, ""), key=lambda span: span[:2]):
            if start > reached:
                hole = Hole(reached, start - reached, last, first)
                like = _INDEX.sub("", f"{hole.size_bytes} {last.name if last else ''} {first.name}")
                known = found.get(like)
                found[like] = known._replace(times=known.times + 1) if known else hole
            if end >= reached:
                last, reached = final, end
        return tuple(found.values())

    @property
    def tail_bytes(self) -> int:
        """Bytes after the last field."""
        return self.size_bytes - max((leaf.end for leaf in self.leaves()), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "size_bytes": self.size_bytes,
            "alignment": self.alignment,
            "is_union": self.is_union,
            "site": self.site,
            "fields": [field.as_dict() for field in self.fields],
            "holes": [hole.as_dict() for hole in self.holes()],
            "tail_bytes": self.tail_bytes,
        }


def _spans(structure: Structure, base: int, path: str) -> Iterator[tuple[int, int, Field, Field]]:
    """Yield ranges without padding: start and end, and the first and last field."""
    for field in structure.members(base):
        if field.nested is None:
            if field.size_bytes:
                leaf = field._replace(name=path + field.name)
                yield field.offset, field.end, leaf, leaf
            continue
        if field.elements > 1 and not field.nested.tail_bytes and not field.nested.holes():
            firsts = field.nested.leaves(field.offset, _element_path(path, field, 0))
            finals = field.nested.leaves(
                field.end - field.element_bytes, _element_path(path, field, field.elements - 1)
            )
            first, final = min(firsts, key=lambda leaf: leaf.offset), max(finals, key=lambda leaf: leaf.end)
            yield field.offset, field.end, first, final
            continue
        for at in range(field.elements):
            yield from _spans(field.nested, field.offset + at * field.element_bytes, _element_path(path, field, at))


def _element_path(path: str, field: Field, number: int) -> str:
    """Yield the name prefixes for the fields of each structure in an array, in C order, or of a single one."""
    indices = ""
    for side in reversed(field.shape):
        number, index = divmod(number, side or 1)
        indices = f"[{index}]{indices}"
    return f"{path}{field.name}{indices}."
