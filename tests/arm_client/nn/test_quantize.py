"""`quantize`, `dequantize` and their SHIFT twins on a board, against numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from arm_client import nn
from arm_client.arrays import BoardArray
from arm_client.client import Board
from arm_client.errors import CallerError
from tests.each import each

DTYPES = ["int8", "uint8", "int16", "uint16", "int32"]


def normal(*shape: int) -> NDArray[np.float32]:
    return (np.random.default_rng(math.prod(shape)).standard_normal(shape) * 5).astype(np.float32)


def oracle(values: NDArray[np.float32], scale: Any, zero_point: Any, dtype: str) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    steps = np.rint(values / np.float32(scale) + np.asarray(zero_point, np.float32)).astype(np.float64)
    result: NDArray[Any] = np.clip(steps, limits.min, limits.max).astype(dtype)
    return result


@each("dtype", DTYPES)
@each("from_ddr", [False, True])
@each("shape", [(), (1,), (3, 5), (2, 1, 2, 1, 2, 1, 2, 1, 2), (30_011,)])
def test_per_tensor(dsp_board: Board, dtype: str, shape: tuple[int, ...], from_ddr: bool) -> None:  # noqa: FBT001 - a pytest parameter
    values = normal(*shape)
    got = nn.quantize(dsp_board, values, 0.05, 5, dtype, from_ddr=from_ddr)
    assert isinstance(got, BoardArray)
    np.testing.assert_array_equal(got, oracle(values, 0.05, 5, dtype), strict=True)
    back = nn.dequantize(dsp_board, got, 0.05, 5, from_ddr=from_ddr)
    expected = (np.asarray(got, np.int64) - 5).astype(np.float32) * np.float32(0.05)
    np.testing.assert_array_equal(back, expected, strict=True)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), shape=hnp.array_shapes(min_dims=1, max_dims=10, max_side=3), dtype=st.sampled_from(DTYPES))
def test_per_axis(dsp_board: Board, data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    values = normal(*shape)
    scales = data.draw(hnp.arrays(np.float32, shape[axis], elements=st.floats(0.015625, 1024, width=32)))
    zero_points = data.draw(hnp.arrays(np.int32, shape[axis], elements=st.integers(0, 127)))
    along = [1] * len(shape)
    along[axis] = -1
    scale, zero_point = scales.reshape(along), zero_points.reshape(along)
    got = nn.quantize(dsp_board, values, scales, zero_points, dtype, axis)
    np.testing.assert_array_equal(got, oracle(values, scale, zero_point, dtype), strict=True)
    back = nn.dequantize(dsp_board, got, scales, zero_points, axis)
    expected = (np.asarray(got, np.int64) - zero_point).astype(np.float32) * scale
    np.testing.assert_array_equal(back, expected, strict=True)


def test_shift_per_tensor_and_per_axis(dsp_board: Board) -> None:
    values = normal(4, 3, 5)
    np.testing.assert_array_equal(nn.quantize_shift(dsp_board, values, 3), oracle(values * 8, 1, 0, "int8"))
    shifts = np.array([0, 4, 9])
    factors = np.exp2(shifts).astype(np.float32).reshape(1, 3, 1)
    got = nn.quantize_shift(dsp_board, values, shifts, np.int16, 1)
    np.testing.assert_array_equal(got, oracle(values * factors, 1, 0, "int16"), strict=True)
    np.testing.assert_array_equal(nn.dequantize_shift(dsp_board, got, shifts, 1), got / factors, strict=True)
    np.testing.assert_array_equal(nn.dequantize_shift(dsp_board, got, 2), np.asarray(got, np.float32) / 4)


def test_ties_nan_and_infinities(dsp_board: Board) -> None:
    values = [0.5, 1.5, -0.5, math.nan, math.inf, -math.inf]
    assert nn.quantize(dsp_board, values, 1.0, 10).tolist() == [10, 12, 10, 10, 127, -128]
    assert nn.quantize(dsp_board, values, 1.0, 10, half_away=True).tolist() == [11, 12, 10, 10, 127, -128]
    assert nn.quantize_shift(dsp_board, values, 0, half_away=True).tolist() == [1, 2, -1, 0, 127, -128]


def test_one_scale_for_every_channel(dsp_board: Board) -> None:
    values = normal(3, 4)
    zero_points = np.array([1, 2, 3])
    got = nn.quantize(dsp_board, values, 0.5, zero_points, axis=0)
    np.testing.assert_array_equal(got, oracle(values, 0.5, zero_points[:, None], "int8"))


def test_nothing_to_do(dsp_board: Board) -> None:
    empty = np.empty((3, 0, 2), np.float32)
    for axis in (None, 0, 1):
        got = nn.quantize(dsp_board, empty, 1.0, axis=axis)
        assert (got.shape, got.dtype.name) == ((3, 0, 2), "int8")
        assert nn.dequantize(dsp_board, got, 1.0, axis=axis).shape == (3, 0, 2)


def test_board_arrays_are_used_where_they_are(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    values = dsp_board.from_array(normal(6, 4))
    out = dsp_board.empty((6, 4), np.int8)
    monkeypatch.setattr(Board, "from_array", lambda *_: pytest.fail("A board array that fits must not be copied."))
    assert nn.quantize(dsp_board, values, 0.1, out=out) is out
    np.testing.assert_array_equal(out, oracle(normal(6, 4), 0.1, 0, "int8"))
    back = dsp_board.empty((6, 4))
    assert nn.dequantize(dsp_board, out, 0.1, out=back) is back


@each(
    "arguments, message",
    [
        ({"dtype": "float16"}, "float16 is not a quantized type: use int8, uint8, int16, uint16, int32."),
        ({"dtype": "int7"}, "Unknown numpy type 'int7'"),
        ({"axis": 2}, r"axis 2 is out of range for shape \(2, 3\)."),
        ({"axis": 1.0}, r"axis is 1\.0, but must be an integer"),
        ({"scale": [1, 2]}, "scale has 2 values for 1 channels: give 1 or 1."),
        ({"scale": [1, 2], "axis": 1}, "scale has 2 values for 3 channels: give 1 or 3."),
        ({"scale": "a"}, "scale is 'a': use real numbers"),
        ({"scale": None}, "scale is None: use real numbers"),
        ({"scale": [1, [2, 3]]}, r"scale is \[1, \[2, 3\]\]: give one number, or a flat list of them"),
        ({"zero_point": 0.5}, "zero_point is 0.5: must be integers that fit int32."),
        ({"zero_point": 1 << 31}, "zero_point is 2147483648: must be integers that fit int32."),
        ({"prority": 9}, "Unknown option prority; known: out, "),
        ({"zero_point": math.nan}, "zero_point is nan: must be integers that fit int32."),
    ],
)
def test_arguments_that_do_not_fit(dsp_board: Board, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(CallerError, match=f"^{message}"):
        nn.quantize(dsp_board, normal(2, 3), **{"scale": 1.0, **arguments})
