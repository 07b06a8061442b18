"""Random structures: what a C compiler prints of them, what ctypes has, and what is read of both, are one."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from hbrt.layout.c_declaration import Reader, parse
from hbrt.layout.ctypes_class import of_class
from hbrt.layout.rules import differences
from hbrt.layout.structure import Structure
from tests.limits import PATIENCE_S

COMPILER = shutil.which("cc")

SCALARS: dict[str, Any] = {
    "int8_t": ctypes.c_int8,
    "uint8_t": ctypes.c_uint8,
    "int16_t": ctypes.c_int16,
    "uint16_t": ctypes.c_uint16,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
}


class Declared(NamedTuple):
    """A type, declared on both sides: in C without a name, and in ctypes."""

    c: str
    kind: Any


def record(base: Any, pack: int | None, fields: list[tuple[Declared, list[int]]]) -> Declared:
    """A struct or union of fields, each a type with its dimensions."""
    lines, members = [], []
    for at, (declared, shape) in enumerate(fields):
        kind = declared.kind
        for side in reversed(shape):
            kind = kind * side
        members.append((f"f{at}", kind))
        lines.append(f"{declared.c} f{at}{''.join(f'[{side}]' for side in shape)};")
    packed = "__attribute__((packed)) " if pack else ""
    rules = {"_pack_": pack, "_layout_": "ms"} if pack else {}
    made = type("Made", (base,), {**rules, "_fields_": members})
    return Declared(f"{'union' if base is ctypes.Union else 'struct'} {packed}{{ {' '.join(lines)} }}", made)


SCALAR = st.sampled_from([Declared(word, kind) for word, kind in SCALARS.items()])


def records(of: st.SearchStrategy[Declared]) -> st.SearchStrategy[Declared]:
    shape = st.lists(st.integers(1, 3), max_size=2)
    fields = st.lists(st.tuples(of, shape), min_size=1, max_size=5)
    bases = st.sampled_from([ctypes.Structure] * 4 + [ctypes.Union])
    return st.builds(record, bases, st.sampled_from([None, None, None, 1]), fields)


RECORD = records(SCALAR | records(SCALAR | records(SCALAR)))
INCLUDES = "#include <stdint.h>\n#include <stdbool.h>\n"


def printed_by_c(declarations: str, structures: dict[str, Structure], directory: Path) -> dict[str, list[int]]:
    """Of each structure: size, alignment, and offset and size of every leaf, as a compiled program prints them."""
    lines = []
    for name, structure in structures.items():
        values = [f"sizeof({name})", f"_Alignof({name})"]
        for leaf in structure.leaves():
            values += [f"offsetof({name}, {leaf.name})", f"sizeof((({name} *)0)->{leaf.name})"]
        lines += [f'printf("{name}");'] + [f'printf(" %zu", (size_t)({value}));' for value in values] + ['puts("");']
    source = directory / "print.c"
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n{declarations}int main(void) {{ {' '.join(lines)} return 0; }}"
    )
    assert COMPILER
    subprocess.run([COMPILER, "-o", directory / "print", source], check=True, timeout=PATIENCE_S)
    text = subprocess.run([directory / "print"], check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout
    return {name: [int(value) for value in values] for name, *values in map(str.split, text.splitlines())}


def numbers_of(structure: Structure) -> list[int]:
    leaves = [number for leaf in structure.leaves() for number in (leaf.offset, leaf.size_bytes)]
    return [structure.size_bytes, structure.alignment, *leaves]


def bytes_of_fields(kind: Any, base: int = 0) -> set[int]:
    """Every byte that belongs to a field, all elements of arrays looked at."""
    if issubclass(kind, ctypes.Array):
        step = ctypes.sizeof(kind._type_)
        return set().union(*(bytes_of_fields(kind._type_, base + at * step) for at in range(kind._length_)))
    if issubclass(kind, ctypes.Structure | ctypes.Union):
        return set().union(
            *(bytes_of_fields(type_, base + getattr(kind, name).offset) for name, type_ in kind._fields_)
        )
    return set(range(base, base + ctypes.sizeof(kind)))


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@settings(max_examples=2, deadline=None)
@given(st.lists(RECORD, min_size=30, max_size=40))
def test_a_compiler_ctypes_and_libclang_agree(declared: list[Declared]) -> None:
    names = {f"s{at}": one for at, one in enumerate(declared)}
    declarations = INCLUDES + "".join(f"typedef {one.c} {name};\n" for name, one in names.items())
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        header = directory / "declared.h"
        header.write_text(declarations)
        reader = Reader(parse(header))  # as of_declaration, of which each would parse the header
        in_c = {name: reader.structure(header, name) for name in names}
        printed = printed_by_c(declarations, in_c, directory)
    in_python = {name: of_class(one.kind) for name, one in names.items()}
    assert {name: numbers_of(structure) for name, structure in in_c.items()} == printed
    assert {name: numbers_of(structure) for name, structure in in_python.items()} == printed
    assert [one for name in names for one in differences(in_python[name], in_c[name])] == []


@settings(max_examples=60, deadline=None)
@given(RECORD)
def test_holes_are_the_bytes_that_no_field_has(declared: Declared) -> None:
    structure = of_class(declared.kind)
    used = bytes_of_fields(declared.kind)
    free = set(range(max(used) + 1)) - used
    holes = structure.holes()
    found = {at for hole in holes for at in range(hole.offset, hole.offset + hole.size_bytes)}
    assert found <= free
    assert sum(hole.size_bytes * hole.times for hole in holes) == len(free)
    assert all(hole.after.offset == hole.offset + hole.size_bytes for hole in holes)
    assert all(hole.before is None or hole.before.end == hole.offset for hole in holes)


@settings(max_examples=40, deadline=None)
@given(st.lists(SCALAR, min_size=2, max_size=6), st.data())
def test_another_type_of_a_field_is_always_found(types: list[Declared], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(types) - 1))
    here = types[at].kind
    others = [
        one
        for one in SCALARS.values()
        if ctypes.sizeof(one) != ctypes.sizeof(here) or ({"f", "d"} & {one._type_, here._type_} and one is not here)
    ]
    changed = [*types]
    changed[at] = Declared("", data.draw(st.sampled_from(others)))
    one, other = (of_class(record(ctypes.Structure, 1, [(of, []) for of in side]).kind) for side in (types, changed))
    assert f"f{at}" in {remark.field for remark in differences(one, other)}
