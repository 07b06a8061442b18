"""Reading and refusing the parameter structure of quantize and dequantize, and the structures' layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dsp_server.ops.nn.quanti import plan
from hbrt.nn_types import (
    HB_DSP_QUANTI_DDR_PATH,
    HB_DSP_QUANTI_PER_TENSOR,
    HB_DSP_QUANTI_ROUND_HALF_AWAY,
    hbDSPQuantizeParam,
)
from tests.each import each


def param(*shape: int, **fields: Any) -> hbDSPQuantizeParam:
    values = {"axis": HB_DSP_QUANTI_PER_TENSOR, "quanti_type": 2, "tensor_type": 8, "scale": 0.5, **fields}
    result = hbDSPQuantizeParam(**values)
    result.set_shape(shape)
    return result


ARRAYS: dict[int, list[float]] = {0x100: [0.5, 0.25, 2.0], 0x200: [1, -2, 3], 0x300: [0, 1, 126]}


def load(address: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    return np.array(ARRAYS[address][:count], dtype) if address in ARRAYS else None


def test_per_tensor() -> None:
    got = plan(param(2, 3, zero_point=-7, flags=HB_DSP_QUANTI_ROUND_HALF_AWAY), load)
    assert got is not None
    assert (got.count, got.dtype, got.half_away, got.ddr) == (6, np.dtype(np.int8), True, False)
    assert (got.scales.of(0, 6).tolist(), got.zero_points.of(0, 6).tolist()) == ([0.5], [-7])


@each(
    "shape, axis, channels",
    [
        ((3,), 0, [0, 1, 2]),
        ((3, 2), 0, [0, 0, 1, 1, 2, 2]),
        ((2, 3), 1, [0, 1, 2, 0, 1, 2]),
        ((2, 3, 2), 1, [0, 0, 1, 1, 2, 2] * 2),
        ((1, 1, 3, 1, 1, 1, 1, 2), 2, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_per_axis(shape: tuple[int, ...], axis: int, channels: list[int]) -> None:
    got = plan(param(*shape, axis=axis, scale_data=0x100, zero_point_data=0x200, flags=HB_DSP_QUANTI_DDR_PATH), load)
    assert got is not None
    assert (got.count, got.ddr) == (len(channels), True)
    scales, zero_points = got.scales.of(0, got.count), got.zero_points.of(0, got.count)
    assert scales.tolist() == [ARRAYS[0x100][channel] for channel in channels]
    assert zero_points.tolist() == [ARRAYS[0x200][channel] for channel in channels]
    np.testing.assert_array_equal(got.scales.of(1, got.count - 1), scales[1:])
    np.testing.assert_array_equal(got.zero_points.of(1, got.count - 1), zero_points[1:])


@each("shape, axis", [((3, 0), 0), ((0, 3), 1), ((2, 3, 0, 5), 1), ((2, 0), 1)])
def test_a_tensor_of_no_elements_has_a_plan(shape: tuple[int, ...], axis: int) -> None:
    got = plan(param(*shape, axis=axis, scale_data=0x100, zero_point_data=0x200), load)
    assert got is not None
    assert got.count == 0


def test_without_zero_points_every_channel_uses_the_one_in_the_structure() -> None:
    got = plan(param(3, axis=0, scale_data=0x100, zero_point=5), load)
    assert got is not None
    assert got.zero_points.of(0, 3).tolist() == [5]


def test_a_shift_is_a_scale() -> None:
    got = plan(param(3, axis=0, shift_data=0x300, quanti_type=1, scale=0.0, zero_point=99), load)
    assert got is not None
    assert got.scales.of(0, 3).tolist() == [1.0, 0.5, 2.0**-126]
    assert got.zero_points.of(0, 3).tolist() == [0]


@each(
    "fields",
    [
        {"axis": 0, "scale_data": 0x666},
        {"axis": 0, "scale_data": 0x100, "zero_point_data": 0x666},
        {"axis": 0, "quanti_type": 1, "shift_data": 0},
    ],
)
def test_an_array_that_cannot_be_mapped(fields: dict[str, int]) -> None:
    assert plan(param(3, **fields), load) is None


AXES = "use 0..1, or -1 for one scale for the whole tensor."
TYPES = "use one of 8 int8, 9 uint8, 11 int16, 12 uint16, 14 int32."


@each(
    "fields, message",
    [
        ({"scale": 0.0}, "The scale of channel 0 is 0.0: must be finite numbers above 0."),
        ({"scale": -1.0}, "The scale of channel 0 is -1.0: must be finite numbers above 0."),
        ({"scale": float("nan")}, "The scale of channel 0 is nan: must be finite numbers above 0."),
        ({"scale": float("inf")}, "The scale of channel 0 is inf: must be finite numbers above 0."),
        (
            {"zero_point": 128},
            "The zero point of channel 0 is 128: must be -128..127, the range of int8.",
        ),
        (
            {"axis": 1, "scale_data": 0x100, "zero_point_data": 0x200, "tensor_type": 9},
            "The zero point of channel 1 is -2: must be 0..255, the range of uint8.",
        ),
        ({"quanti_type": 1, "shift": 127}, "The shift of channel 0 is 127: must be 0..126."),
        ({"quanti_type": 1, "shift": -1}, "The shift of channel 0 is -1: must be 0..126."),
        ({"quanti_type": 0}, "Unknown quanti_type 0: use 1 (SHIFT) or 2 (SCALE)."),
        (
            {"axis": 2},
            f"axis 2 is out of range for shape (2, 3): {AXES}",
        ),
        (
            {"axis": -2},
            f"axis -2 is out of range for shape (2, 3): {AXES}",
        ),
        (
            {"tensor_type": 13},
            f"tensor_type 13 is not a quantized type: {TYPES}",
        ),
        ({"flags": 0x10}, "flags 0x10 has unknown bits set: clear the structure before use."),
    ],
)
def test_a_wrong_field_is_named_with_its_value(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared below
        plan(param(2, 3, **fields), load)
    assert str(caught.value) == message


def with_dimensions(count: int) -> hbDSPQuantizeParam:
    result = param(1)
    result.dimension_count = count
    return result


@each("count", [-1, 0, 9])
def test_a_wrong_number_of_dimensions(count: int) -> None:
    with pytest.raises(ValueError, match=f"^Invalid dimension_count {count}: must be 1 to 8.$"):
        plan(with_dimensions(count), load)


def test_a_negative_dimension() -> None:
    with pytest.raises(ValueError, match=r"^shape \(2, -3\) has a negative dimension"):
        plan(param(2, -3), load)


def test_set_shape_takes_one_to_eight_dimensions() -> None:
    for dimensions in ([], [1] * 9):
        with pytest.raises(ValueError, match=f"^A shape with {len(dimensions)} dimensions does not fit"):
            hbDSPQuantizeParam().set_shape(dimensions)


def test_a_dimension_beyond_int32_is_refused_and_not_cut() -> None:
    with pytest.raises(ValueError, match=r"^Dimension 2147483648 is above 2147483647, the largest int32\.$"):
        hbDSPQuantizeParam().set_shape([2, 1 << 31])
