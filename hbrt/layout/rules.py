"""Problems of a parameter structure, and differences between two declarations of one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hbrt.findings.record import Severity
from hbrt.findings.text import counted
from hbrt.layout.structure import Field, FieldKind, Hole, Structure


class Remark(NamedTuple):
    """A remark about one structure, or two.

    Attributes:
        severity: An error makes one side read wrong values; a warning may, under different compiler rules.
        kind: One word, such as "hole" or "offset".
        field: Name of the field; empty if it concerns the whole structure.
        text: The message, with values and what to do.
        site: ``file:line``, if known.
    """

    severity: Severity
    kind: str
    field: str
    text: str
    site: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**self._asdict(), "severity": str(self.severity)}


def hole_sentence(hole: Hole) -> str:
    """Return the message about a hole: where it is, and how to close it."""
    size, after = hole.size_bytes, hole.after
    where = f"before `{after.name}` (offset {after.offset})"
    if hole.before:
        where = f"between `{hole.before.name}` (offset {hole.before.offset}) and `{after.name}` (offset {after.offset})"
    each = f", and {hole.times - 1} more like it in the array" if hole.times > 1 else ""
    reserved = f"uint{8 * size}_t reserved" if size in {1, 2, 4, 8} else f"uint8_t reserved[{size}]"
    return (
        f"{counted(size, 'byte')} of padding {where}{each}: the other side reads the same only if it "
        f"is compiled with the same rules. Put the {after.element_bytes}-byte fields first, or add `{reserved}`."
    )


def remarks_on(structure: Structure) -> list[Remark]:
    """Yield remarks on one structure: what the DSP reads differently from ARM, and what compilers may change."""
    remarks = [remark for leaf in structure.leaves() for remark in _type_remarks(leaf, leaf.site or structure.site)]
    for hole in structure.holes():
        site = hole.after.site or structure.site
        remarks.append(Remark(Severity.WARNING, "hole", hole.after.name, hole_sentence(hole), site))
    return remarks


def _type_remarks(field: Field, site: str | None) -> Iterator[Remark]:
    def remark(severity: Severity, kind: str, text: str) -> Remark:
        return Remark(severity, kind, field.name, f"`{field.name}` ({field.c_type}) {text}", site)

    bits = 8 * field.element_bytes
    if field.kind == FieldKind.POINTER:
        text = (
            "is a pointer: it has 8 bytes on the ARM and 4 on the DSP, which cannot follow a virtual address. Use "
            "uint64_t and a physical address."
        )
        yield remark(Severity.ERROR, "pointer", text)
    elif field.dsp_bytes is not None:
        sign = "" if field.is_signed else "u"
        use = "double" if field.kind == FieldKind.FLOAT else f"{sign}int64_t or {sign}int32_t"
        text = f"has {field.element_bytes} bytes on the ARM and {field.dsp_bytes} on the DSP. Use {use}."
        yield remark(Severity.ERROR, "size", text)
    if field.kind == FieldKind.ENUM:
        text = f"is an enum: its size depends on compiler options (-fshort-enums). Use int{bits}_t."
        yield remark(Severity.WARNING, "enum", text)
    if field.kind == FieldKind.BOOL:
        text = f"is a bool: values other than 0 and 1 have no meaning. Use uint{bits}_t."
        yield remark(Severity.WARNING, "bool", text)
    if field.bits:
        text = "is a bit field: the compiler decides the position of its bits. Use a whole integer and masks."
        yield remark(Severity.WARNING, "bit-field", text)


def differences(one: Structure, other: Structure, names: tuple[str, str] = ("A", "B")) -> list[Remark]:
    """Compare two declarations of one structure.

    Args:
        one: The first.
        other: The second.
        names: Their names in messages.
    """
    comparison = _Comparison(names, one.site or other.site)
    comparison.structures(one, other, 0, "")
    return comparison.remarks


class _Comparison:
    """Two structures, field by field."""

    def __init__(self, names: tuple[str, str], site: str | None) -> None:
        self.names = names
        self.site = site
        self.remarks: list[Remark] = []

    def structures(self, one: Structure, other: Structure, base: int, path: str) -> None:
        """Compare two structures at ``base`` bytes from the start."""
        what = f"`{path[:-1]}`" if path else "The structure"
        if one.is_union != other.is_union:
            words = ["a union" if structure.is_union else "a struct" for structure in (one, other)]
            self._say("kind", path[:-1], what, *words)
            return
        pairs = self._pairs(list(one.members()), list(other.members()), base, path)
        if not one.is_union:
            self._order(pairs, path)
        for left, right in pairs:
            self._fields(left, right, base, path)
        if one.size_bytes != other.size_bytes:
            self._say("size", path[:-1], what, f"{one.size_bytes} bytes", f"{other.size_bytes}")

    def _pairs(self, left: list[Field], right: list[Field], base: int, path: str) -> list[tuple[Field, Field]]:
        """Pair fields by name, then the remaining ones by offset; the others are missing."""
        by_name = {field.name: field for field in right}
        pairs = [(field, by_name[field.name]) for field in left if field.name in by_name]
        names = {field.name for field, _ in pairs}
        free = [field for field in right if field.name not in names]
        for field in (one for one in left if one.name not in names):
            twin = next((one for one in free if _place(one) == _place(field)), None)
            if twin is None:
                self._missing(field, base, path, *self.names)
                continue
            free.remove(twin)
            pairs.append((field, twin))
            self.remarks.append(
                Remark(
                    Severity.WARNING,
                    "name",
                    path + field.name,
                    f"At offset {base + field.offset} {self.names[0]} has `{path}{field.name}` and {self.names[1]} has "
                    f"`{path}{twin.name}`: make sure that both mean the same, and give them the same name.",
                    field.site or twin.site or self.site,
                )
            )
        for field in free:
            self._missing(field, base, path, *reversed(self.names))
        return pairs

    def _missing(self, field: Field, base: int, path: str, has: str, has_not: str) -> None:
        text = (
            f"{has} has `{path}{field.name}` ({field.c_type}, offset {base + field.offset}), but {has_not} has no such "
            f"field: add it to {has_not}, or remove it from {has}."
        )
        self.remarks.append(Remark(Severity.ERROR, "missing", path + field.name, text, field.site or self.site))

    def _order(self, pairs: Sequence[tuple[Field, Field]], path: str) -> None:
        in_one = [left.name for left, _ in sorted(pairs, key=lambda pair: _place(pair[0]))]
        in_other = [left.name for left, _ in sorted(pairs, key=lambda pair: _place(pair[1]))]
        if in_one != in_other:
            orders = [", ".join(f"`{path}{name}`" for name in names) for names in (in_one, in_other)]
            text = (
                f"The order of the fields differs: {self.names[0]} has {orders[0]}; {self.names[1]} has {orders[1]}. "
                "Declare them in the same order."
            )
            self.remarks.append(Remark(Severity.ERROR, "order", path[:-1], text, self.site))

    def _fields(self, left: Field, right: Field, base: int, path: str) -> None:
        name = path + left.name
        what = f"`{name}`"
        site = left.site or right.site
        if left.bits != right.bits and (left.bits or right.bits):
            bits = [
                f"bits {8 * base + field.bits.first} to {8 * base + field.bits.first + field.bits.width - 1}"
                if field.bits
                else f"whole bytes from {base + field.offset} on"
                for field in (left, right)
            ]
            self._say("bit-field", name, what, *bits, site=site)
        elif left.offset != right.offset:
            self._say("offset", name, what, f"offset {base + left.offset}", str(base + right.offset), site=site)
        if left.shape != right.shape:
            shapes = [
                "x".join(map(str, field.shape)) + " elements" if field.shape else "one element"
                for field in (left, right)
            ]
            self._say("count", name, what, *shapes, site=site)
        if left.nested and right.nested:
            self.structures(left.nested, right.nested, base + left.offset, f"{name}{'[0]' * len(left.shape)}.")
        elif _family(left) != _family(right):
            self._say("kind", name, what, _as_type(left), _as_type(right), site=site)
        elif left.element_bytes != right.element_bytes and not left.bits:
            self._say("size", name, what, _as_type(left), _as_type(right), site=site)
        elif None not in {left.is_signed, right.is_signed} and left.is_signed != right.is_signed:
            signs = [f"{'a signed' if field.is_signed else 'an unsigned'} {field.type}" for field in (left, right)]
            self._say("sign", name, what, *signs, site=site)

    def _say(self, kind: str, field: str, what: str, left: str, right: str, *, site: str | None = None) -> None:
        text = f"{what} has {left} in {self.names[0]} and {right} in {self.names[1]}: declare it the same way."
        self.remarks.append(Remark(Severity.ERROR, kind, field, text, site or self.site))


def _place(field: Field) -> tuple[int, int]:
    return field.offset, field.bits.first if field.bits else 0


def _family(field: Field) -> str:
    """Kinds that one side may declare for the other's: a pointer for an address, an integer for an enum."""
    return str(field.kind) if field.kind in {FieldKind.FLOAT, FieldKind.NESTED} else str(FieldKind.INTEGER)


def _as_type(field: Field) -> str:
    return f"{field.type} of {field.element_bytes} bytes"
