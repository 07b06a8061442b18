"""Descriptions of ctypes classes and numpy dtypes, what is said of one, and where two differ."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hbrt import nn_types
from hbrt.findings.record import Severity
from hbrt.layout.ctypes_class import declared_at, of_class
from hbrt.layout.numpy_dtype import of_dtype
from hbrt.layout.rules import differences, remarks_on
from hbrt.layout.structure import LayoutError, Structure
from tests.each import each


class TileParam(ctypes.Structure):
    _fields_ = (("width", ctypes.c_int32), ("height", ctypes.c_int16), ("addr", ctypes.c_uint64))


def inner_of(*fields: Any) -> Any:
    return type("Inner", (ctypes.Structure,), {"_fields_": fields})


def made(*fields: Any, base: Any = ctypes.Structure, **more: Any) -> Structure:
    return of_class(type("Made", (base,), {"_fields_": fields, **more}))


def kinds(one: Structure, other: Structure) -> list[tuple[str, str]]:
    return [(remark.kind, remark.field) for remark in differences(one, other)]


INT, LONG, FLOAT, ADDRESS = ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_uint64


def test_the_hole_of_the_vendors_softmax_parameters_is_named() -> None:
    """A 4-byte size, then an 8-byte address: what its sample declares."""
    (remark,) = remarks_on(of_class(nn_types.hbDSPSoftmaxParam))
    assert remark.severity is Severity.WARNING
    assert remark.text == (
        "4 bytes of padding between `data_size` (offset 0) and `input` (offset 8): the other side reads the same only "
        "if it is compiled with the same rules. Put the 8-byte fields first, or add `uint32_t reserved`."
    )


def test_a_structure_without_a_hole_gives_no_remark() -> None:
    assert remarks_on(of_class(nn_types.hbDSPQuantizeParam)) == []
    structure = made(("x", ADDRESS), ("count", INT))
    assert remarks_on(structure) == []
    assert structure.tail_bytes == 4  # sizeof counts them, and no field lies behind them


def test_a_class_has_its_line() -> None:
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert declared_at(TileParam) == f"{__file__}:{text.index('class TileParam(ctypes.Structure):') + 1}"
    assert declared_at(type("TileParam", (ctypes.Structure,), {})) is None


def test_pointers_are_errors_and_what_compilers_decide_are_warnings() -> None:
    structure = made(
        ("p", ctypes.POINTER(TileParam)),
        ("v", ctypes.c_void_p * 2),
        ("f", ctypes.CFUNCTYPE(None)),
        ("b", ctypes.c_bool),
    )
    assert [(str(one.severity), one.kind, one.field) for one in remarks_on(structure)] == [
        ("error", "pointer", "p"),
        ("error", "pointer", "v"),
        ("error", "pointer", "f"),
        ("warning", "bool", "b"),
    ]


def test_holes_of_nested_structures_and_arrays() -> None:
    inner = inner_of(("x", ADDRESS), ("tag", ctypes.c_uint8))
    holes = made(("points", inner * 3), ("last", ADDRESS)).holes()
    assert [(hole.before.name, hole.after.name, hole.size_bytes, hole.times) for hole in holes if hole.before] == [
        ("points[0].tag", "points[1].x", 7, 2),
        ("points[2].tag", "last", 7, 1),
    ]


def test_bytes_that_a_member_of_a_union_has_are_no_hole() -> None:
    inner = inner_of(("a", ctypes.c_uint8), ("b", INT))
    assert made(("inner", inner), ("raw", LONG), base=ctypes.Union).holes() == ()


def test_bit_fields_lie_where_ctypes_puts_them() -> None:
    structure = made(("a", ctypes.c_uint32, 3), ("b", ctypes.c_uint32, 7), ("c", FLOAT))
    assert [field.bits for field in structure.fields] == [(0, 3), (3, 7), None]
    assert [(field.offset, field.end) for field in structure.fields] == [(0, 1), (0, 2), (4, 8)]
    assert [(hole.offset, hole.size_bytes) for hole in structure.holes()] == [(2, 2)]
    assert kinds(structure, made(("a", ctypes.c_uint32, 3), ("b", ctypes.c_uint32, 6), ("c", FLOAT))) == [
        ("bit-field", "b")
    ]


@each(
    "other, expected",
    [
        ([("a", INT), ("b", FLOAT), ("c", INT * 4)], []),
        ([("a", ctypes.c_uint32), ("b", FLOAT), ("c", INT * 4)], [("sign", "a")]),
        ([("a", FLOAT), ("b", FLOAT), ("c", INT * 4)], [("kind", "a")]),
        ([("a", INT), ("b", FLOAT), ("c", INT * 5)], [("count", "c"), ("size", "")]),
        ([("a", INT), ("b", FLOAT), ("c", INT * 2 * 2)], [("count", "c")]),
        ([("a", INT), ("bb", FLOAT), ("c", INT * 4)], [("name", "bb")]),
        ([("b", FLOAT), ("a", INT), ("c", INT * 4)], [("order", ""), ("offset", "b"), ("offset", "a")]),
        ([("a", INT), ("b", FLOAT)], [("missing", "c"), ("size", "")]),
        ([("a", LONG), ("b", FLOAT), ("c", INT * 4)], [("size", "a"), ("offset", "b"), ("offset", "c"), ("size", "")]),
    ],
)
def test_every_difference_is_named(other: list[Any], expected: list[tuple[str, str]]) -> None:
    one = made(("a", INT), ("b", FLOAT), ("c", INT * 4))
    assert kinds(made(*other), one) == expected
    assert len(kinds(one, made(*other))) == len(expected)


def test_the_sentence_of_a_difference_has_both_values() -> None:
    (remark, *_) = differences(made(("a", INT), ("b", LONG)), made(("a", INT), ("b", LONG), _pack_=4, _layout_="ms"))
    assert remark.text == "`b` has offset 8 in A and 4 in B: declare it the same way."


def test_differences_inside_nested_structures_have_their_path_and_offset() -> None:
    one = inner_of(("x", INT), ("y", INT))
    other = inner_of(("x", INT), ("y", ctypes.c_uint32))
    assert kinds(made(("n", INT), ("in_", one * 2)), made(("n", INT), ("in_", other * 2))) == [("sign", "in_[0].y")]
    (remark,) = differences(made(("n", INT), ("in_", one)), made(("n", INT), ("in_", LONG), _pack_=4, _layout_="ms"))
    assert remark.kind == "kind"
    assert kinds(made(("a", INT)), made(("a", INT), base=ctypes.Union)) == [("kind", "")]


def test_anonymous_structures_are_as_their_fields() -> None:
    inner = inner_of(("x", INT), ("y", INT))
    assert kinds(made(("in_", inner), ("z", INT), _anonymous_=("in_",)), made(("x", INT), ("y", INT), ("z", INT))) == []


def test_base_classes_come_first() -> None:
    base = type("Base", (ctypes.Structure,), {"_fields_": [("x", INT)]})
    derived = type("Derived", (base,), {"_fields_": [("y", INT)]})
    assert kinds(of_class(derived), made(("x", INT), ("y", INT))) == []


def test_dtypes_are_read_as_ctypes_are() -> None:
    inner = np.dtype([("x", "<i4"), ("y", "u1", (2, 3))], align=True)
    dtype = np.dtype([("a", "?"), ("b", "<f8"), ("c", inner, 2), ("d", "S5")], align=True)
    like = inner_of(("x", INT), ("y", ctypes.c_uint8 * 3 * 2))
    twin = made(("a", ctypes.c_bool), ("b", ctypes.c_double), ("c", like * 2), ("d", ctypes.c_char * 5))
    assert differences(of_dtype(dtype, "D"), twin) == []
    assert of_dtype(dtype, "D").holes()[0].size_bytes == 7


@each(
    "kind, sentence",
    [
        (type("E", (ctypes.Structure,), {}), "E has no fields: define _fields_."),
        (
            type("B", (ctypes.BigEndianStructure,), {"_fields_": [("a", INT)]}),
            "B is big-endian: the ARM and the DSP are",
        ),
        (inner_of(("a", INT.__ctype_be__)), "Inner.a is big-endian"),
        (np.dtype("<f4"), "D is the dtype float32, which has no fields"),
        (np.dtype([("a", ">i4")]), "D.a is big-endian"),
        (np.dtype([("a", "O")]), "D.a has type object, which parameter structures cannot hold"),
        (np.dtype([("a", "c16")]), "D.a has type complex128"),
    ],
)
def test_what_no_parameter_structure_holds_is_refused(kind: Any, sentence: str) -> None:
    with pytest.raises(LayoutError, match=sentence):
        of_dtype(kind, "D") if isinstance(kind, np.dtype) else of_class(kind)
