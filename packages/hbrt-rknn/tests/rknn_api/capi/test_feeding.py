"""Bytes of a program as arrays of the graph: which are one as they lie, and which are converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rknn_api.capi.attributes import Side
from rknn_api.capi.feeding import Form, from_graph, in_place, size_of, to_graph
from rknn_api.container import TensorInfo


def side(*shape: int, layout: str = "NCHW", dtype: str = "float32", stored: str = "float16") -> Side:
    info = TensorInfo("x", shape, dtype, stored, layout=layout if len(shape) == 4 else "UNDEFINED")
    return Side(info, shape, is_input=True)


def raw(size: int, offset: int = 0) -> memoryview:
    return memoryview(bytearray(np.arange(size + offset, dtype=np.uint8)))[offset:]


@pytest.mark.parametrize(
    ("given", "form", "is_own"),
    [
        (side(2, 5), Form("float32", "UNDEFINED"), True),
        (side(), Form("float32", "UNDEFINED"), True),
        (side(0, 4), Form("float32", "UNDEFINED"), True),
        (side(2, 5), Form("float16", "UNDEFINED"), False),
        (side(2, 3, 4, 5), Form("float32", "NCHW"), True),
        (side(2, 3, 4, 5), Form("float32", "NHWC"), False),
        (side(2, 1, 4, 5), Form("float32", "NHWC"), True),
        (side(2, 3, 1, 1), Form("float32", "NHWC"), True),
        (side(2, 3, 4, 5, layout="NHWC"), Form("float32", "NHWC"), True),
        (side(2, 3, 4, 5, layout="NHWC"), Form("float32", "NHWC", 4, 3), True),
        (side(2, 1, 4, 5), Form("float32", "NHWC", 16), False),
        (side(2, 1, 4, 5), Form("float32", "NHWC", 5, 8), False),
        (side(1, 1, 4, 5), Form("float32", "NHWC", 5, 8), False),
        (side(2, 8, 1, 1, dtype="int8"), Form("int8", "NC1HWC2", c2=8), True),
        (side(2, 8, 2, 1, dtype="int8"), Form("int8", "NC1HWC2", c2=8), False),
        (side(2, 7, 1, 1, dtype="int8"), Form("int8", "NC1HWC2", c2=8), False),
    ],
)
def test_bytes_that_are_the_graphs_own_are_not_copied(given: Side, form: Form, *, is_own: bool) -> None:
    data = raw(size_of(given, form))
    array = in_place(data, given, form)
    assert (array is not None) == is_own
    converted = to_graph(data, given, form)
    if array is not None:
        assert array.tobytes() == converted.tobytes()
        assert array.size == 0 or np.may_share_memory(array, np.frombuffer(data, np.uint8))
        np.testing.assert_array_equal(from_graph(array, given, form).reshape(-1), array.reshape(-1))


def test_an_array_that_lies_at_an_odd_address_is_none_of_the_graphs() -> None:
    given, form = side(2, 5), Form("float32", "UNDEFINED")
    assert in_place(raw(40, offset=1), given, form) is None
    assert to_graph(raw(40, offset=1), given, form).flags.aligned


def test_a_conversion_may_be_written_in_place() -> None:
    given, form = side(2, 3, 4, 5), Form("uint8", "NHWC", 8)
    data, made = raw(size_of(given, form)), np.full((2, 3, 4, 5), -1, np.float32)
    into: Any = to_graph(data, given, form, made)
    assert into is made
    np.testing.assert_array_equal(made, to_graph(data, given, form))
