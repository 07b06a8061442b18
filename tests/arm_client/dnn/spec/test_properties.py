"""Alignment, strides and sizes of tensors, and the C structure that tells them."""

from __future__ import annotations

import ctypes
import gc
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from onnx import TensorProto, ValueInfoProto, helper

from arm_client.dnn.errors import ModelError
from arm_client.dnn.spec.properties import (
    aligned_shape_of,
    bayes_row_bytes,
    fill_properties,
    image_spec,
    shape_in,
    spec_of,
)
from arm_client.dnn.spec.spec import ImageSpec
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout, hbDNNTensorProperties
from hbrt.models.spec.quantization import as_shift
from hbrt.models.spec.spec import DYNAMIC, Quantization, QuantizationKind
from hbrt.status import Status
from tests.each import each

NHWC, NCHW, NONE = hbDNNTensorLayout
T = hbDNNDataType
SCALE = Quantization(QuantizationKind.SCALE, np.array([0.5], np.float32), np.array([3], np.int32))
IMAGE = ImageSpec("rgb", NCHW, np.zeros(1, np.float32), np.ones(1, np.float32))


def value(element: int, shape: list[int | str] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info("x", element, shape)


@given(st.integers(0, 5000))
def test_rows_of_the_bpu(size: int) -> None:
    allowed = [256 * k + step for k in range(21) for step in (0, 16, 32, 64, 128)]
    assert bayes_row_bytes(size) == min(row for row in allowed if row >= size)


@each(
    "shape, layout, item_bytes, is_input, expected",
    [
        ((1, 3, 5, 7), NCHW, 1, True, (1, 3, 5, 16)),
        ((1, 3, 5, 17), NCHW, 1, False, (1, 3, 5, 32)),
        ((1, 3, 5, 33), NCHW, 2, False, (1, 3, 5, 64)),
        ((1, 3, 5, 65), NCHW, 4, False, (1, 3, 5, 68)),
        ((2, 5, 33, 3), NHWC, 1, True, (2, 6, 64, 3)),
        ((2, 5, 33, 3), NHWC, 1, False, (2, 5, 33, 16)),
        ((2, 5, 33, 5), NHWC, 1, True, (2, 5, 33, 16)),
        ((1, 1, 1, 1000), NHWC, 1, False, (1, 1, 1, 1024)),
        ((1, 1, 1, 1000), NONE, 1, False, (1, 1, 1, 1000)),
        ((1, 1000), NONE, 1, False, (1, 1000)),
        ((1, 3, 0, 7), NCHW, 1, True, (1, 3, 0, 7)),
        ((DYNAMIC, 3, 5, 7), NCHW, 1, True, (DYNAMIC, 3, 5, 7)),
    ],
)
def test_padding_of_quantized_tensors(
    shape: tuple[int, ...], layout: hbDNNTensorLayout, item_bytes: int, *, is_input: bool, expected: tuple[int, ...]
) -> None:
    assert aligned_shape_of(shape, layout, item_bytes, is_input=is_input) == expected


@given(
    sizes=st.lists(st.integers(1, 40), min_size=4, max_size=4),
    is_input=st.booleans(),
    is_planes=st.booleans(),
    item_bytes=st.sampled_from([1, 2, 4]),
)
def test_padding_only_adds_and_adds_nothing_twice(
    *, sizes: list[int], is_input: bool, is_planes: bool, item_bytes: int
) -> None:
    shape, layout = tuple(sizes), NCHW if is_planes else NHWC
    padded = aligned_shape_of(shape, layout, item_bytes, is_input=is_input)
    assert all(wide >= size for wide, size in zip(padded, shape, strict=True))
    assert aligned_shape_of(padded, layout, item_bytes, is_input=is_input) == padded


def test_a_quantized_tensor_in_memory() -> None:
    spec = spec_of(value(TensorProto.INT8, [1, 3, 5, 7]), is_input=True, quantization=SCALE)
    assert (spec.valid_shape, spec.aligned_shape) == ((1, 3, 5, 7), (1, 3, 5, 16))
    assert (spec.stride, spec.aligned_bytes) == ((240, 80, 16, 1), 240)


def test_real_numbers_are_not_padded() -> None:
    spec = spec_of(value(TensorProto.FLOAT16, [1, 3, 5, 7]), is_input=True)
    assert (spec.tensor_type, spec.layout) == (T.HB_DNN_TENSOR_TYPE_F16, NCHW)
    assert (spec.aligned_shape, spec.stride, spec.aligned_bytes) == ((1, 3, 5, 7), (210, 70, 14, 2), 210)


def test_sizes_that_the_data_decides() -> None:
    spec = spec_of(value(TensorProto.INT8, ["n", 3, 5, 7]), quantization=SCALE)
    assert spec.valid_shape == spec.aligned_shape == (DYNAMIC, 3, 5, 7)
    assert (spec.stride, spec.aligned_bytes, spec.is_dynamic) == ((0, 0, 0, 0), DYNAMIC, True)


def test_four_bits() -> None:
    spec = spec_of(value(TensorProto.INT4, [1, 1, 3, 3]), quantization=SCALE)
    assert (spec.tensor_type, spec.aligned_bytes) == (T.HB_DNN_TENSOR_TYPE_S4, 5)
    assert (spec.aligned_shape, spec.stride) == ((1, 1, 3, 3), (0, 0, 0, 0))


def test_scalars_bools_and_empty_tensors() -> None:
    scalar = spec_of(value(TensorProto.BOOL, []))
    assert (scalar.tensor_type, scalar.valid_shape, scalar.aligned_bytes) == (T.HB_DNN_TENSOR_TYPE_U8, (), 1)
    empty = spec_of(value(TensorProto.FLOAT, [0, 4]))
    assert (empty.valid_shape, empty.aligned_bytes) == ((0, 4), 0)


@each(
    "given_value, says",
    [
        (value(TensorProto.FLOAT, [1] * 9), "9 dimensions"),
        (value(TensorProto.FLOAT, None), "does not specify the number of dimensions"),
        (value(TensorProto.BFLOAT16, [1]), "BFLOAT16"),
        (value(TensorProto.FLOAT, [1 << 20, 1 << 10]), "4294967296 bytes"),
        (helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [1]), "sequence"),
    ],
)
def test_what_the_structure_has_no_field_for(given_value: ValueInfoProto, says: str) -> None:
    with pytest.raises(ModelError, match=says) as error:
        spec_of(given_value)
    assert error.value.status == Status.HB_DNN_INCOMPATIBLE_MODEL


@each(
    "tensor_type, sides, aligned, stride, size",
    [
        # Sides from a log of the vendor's in its manual.
        (T.HB_DNN_IMG_TYPE_Y, (721, 1836), (1, 1, 721, 1840), (1326640, 1326640, 1840, 1), 721 * 1840),
        (T.HB_DNN_IMG_TYPE_NV12, (774, 330), (1, 3, 774, 336), (0, 0, 0, 0), 774 * 336 * 3 // 2),
        (T.HB_DNN_IMG_TYPE_NV12_SEPARATE, (108, 1298), (1, 3, 108, 1312), (0, 0, 0, 0), 108 * 1312 * 3 // 2),
        (T.HB_DNN_IMG_TYPE_BGR, (5, 7), (1, 5, 7, 3), (105, 21, 3, 1), 105),
        (T.HB_DNN_IMG_TYPE_YUV444, (5, 7), (1, 5, 7, 3), (105, 21, 3, 1), 105),
    ],
)
def test_images(
    tensor_type: hbDNNDataType,
    sides: tuple[int, int],
    aligned: tuple[int, ...],
    stride: tuple[int, ...],
    size: int,
) -> None:
    channels = 1 if tensor_type == T.HB_DNN_IMG_TYPE_Y else 3
    spec = image_spec(value(TensorProto.FLOAT, [1, channels, *sides]), tensor_type, NHWC, IMAGE)
    assert (spec.aligned_shape, spec.stride, spec.aligned_bytes) == (aligned, stride, size)
    assert spec.layout == (NCHW if stride[-1] == 0 or channels == 1 else NHWC)
    assert spec.graph_shape == (1, channels, *sides)


def test_the_c_structure_keeps_its_arrays_also_in_a_copy() -> None:
    rule = Quantization(
        QuantizationKind.SCALE, np.array([0.5, 0.25, 2], np.float32), np.array([200, -128, 3], np.int32), axis=1
    )
    first, copy = hbDNNTensorProperties(), hbDNNTensorProperties()
    fill_properties(spec_of(value(TensorProto.UINT8, [1, 3, 5, 7]), quantization=rule), first)
    holder = (hbDNNTensorProperties * 2)()
    holder[1] = first
    ctypes.memset(ctypes.byref(copy), 0xFF, ctypes.sizeof(copy))
    del first
    gc.collect()
    told = holder[1]
    assert (told.quantiType, told.quantizeAxis, told.scale.scaleLen, told.scale.zeroPointLen) == (2, 1, 3, 3)
    assert told.scale.scaleData[:3] == [0.5, 0.25, 2.0]
    assert told.scale.zeroPointData[:3] == [-56, -128, 3]
    assert told.shift.shiftLen == 0
    assert not told.shift.shiftData
    assert shape_in(told.validShape) == (1, 3, 5, 7)
    assert shape_in(told.alignedShape) == (1, 3, 5, 16)
    assert told.alignedByteSize == math.prod((1, 3, 5, 16))


def test_every_field_is_written() -> None:
    target = hbDNNTensorProperties()
    ctypes.memset(ctypes.byref(target), 0xFF, ctypes.sizeof(target))
    fill_properties(spec_of(value(TensorProto.FLOAT, [2, 3])), target)
    assert (target.validShape.numDimensions, target.validShape.dimensionSize[:]) == (2, [2, 3, 0, 0, 0, 0, 0, 0])
    assert (target.quantiType, target.quantizeAxis, target.scale.scaleLen, target.scale.zeroPointLen) == (0, 0, 0, 0)
    assert not target.scale.scaleData
    assert target.stride[:] == [12, 4, 0, 0, 0, 0, 0, 0]


def test_shift_in_the_c_structure() -> None:
    target = hbDNNTensorProperties()
    rule = as_shift(Quantization(QuantizationKind.SCALE, np.array([0.125], np.float32), np.zeros(1, np.int32)))
    fill_properties(spec_of(value(TensorProto.INT8, [2, 3]), quantization=rule), target)
    assert (target.quantiType, target.shift.shiftLen, target.shift.shiftData[0]) == (1, 1, 3)
    assert not target.scale.scaleData
