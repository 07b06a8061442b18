"""quantize and dequantize as ops: parameter block in, both paths, per tensor and per axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from dsp_server.builtin_ops import NN_OPS
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.nn import tiles
from dsp_server.ops.nn.pointcloud import hb_dsp_centerpoint, hb_dsp_pointpillars
from dsp_server.ops.nn.quanti import DTYPES
from dsp_server.ops.nn.quantize import hb_dsp_dequantize, hb_dsp_quantize
from dsp_server.ops.nn.softmax import hb_dsp_softmax
from dsp_server.ops.nn.softmax_rows import hb_dsp_softmax_rows
from dsp_server.registry import Registry
from hbrt.nn_types import (
    HB_DSP_QUANTI_DDR_PATH,
    HB_DSP_QUANTI_ROUND_HALF_AWAY,
    HB_DSP_QUANTI_ZERO_POINT_LAST,
    hbDSPDequantizeParam,
    hbDSPQuantizeParam,
)
from hbrt.status import Status
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.nn.conftest import FakeDdr

FLOAT32 = np.dtype(np.float32)
S8, U8, S16, U16, S32 = 8, 9, 11, 12, 14
SHIFT, SCALE = 1, 2
PER_TENSOR = {"axis": -1, "quanti_type": SCALE, "scale": 0.05}


def real(count: int) -> NDArray[np.float32]:
    values = (np.random.default_rng(count).standard_normal(count) * 4).astype(np.float32)
    values[::101] = [math.nan, math.inf, -math.inf, 0.125][count % 4]
    return values


def quantize_both_ways(ddr: FakeDdr, values: NDArray[np.float32], **fields: Any) -> NDArray[Any]:
    dtype = DTYPES[fields["tensor_type"]]
    by_ping_pong = ddr.run_on(hb_dsp_quantize, hbDSPQuantizeParam(**fields), values, dtype)
    fields["flags"] = fields.get("flags", 0) | HB_DSP_QUANTI_DDR_PATH
    from_ddr = ddr.run_on(hb_dsp_quantize, hbDSPQuantizeParam(**fields), values, dtype)
    np.testing.assert_array_equal(by_ping_pong, from_ddr)
    return by_ping_pong


def dequantize_both_ways(ddr: FakeDdr, values: NDArray[Any], **fields: Any) -> NDArray[Any]:
    by_ping_pong = ddr.run_on(hb_dsp_dequantize, hbDSPDequantizeParam(**fields), values, FLOAT32)
    fields["flags"] = HB_DSP_QUANTI_DDR_PATH
    from_ddr = ddr.run_on(hb_dsp_dequantize, hbDSPDequantizeParam(**fields), values, FLOAT32)
    assert by_ping_pong.tobytes() == from_ddr.tobytes()
    return by_ping_pong


def around_a_tile(item_bytes: int) -> int:
    return 103 * 1024 // item_bytes // tiles.BLOCK_ELEMENTS * tiles.BLOCK_ELEMENTS


# quantize takes 4 bytes of TCM an element, results in place; dequantize those of both types.
@each("tensor_type, item_bytes", [(S8, 4), (S8, 5), (U8, 5), (S16, 6), (U16, 6), (S32, 4)])
@each("off", [-1, 0, 1])
def test_around_a_tile(ddr: FakeDdr, tensor_type: int, item_bytes: int, off: int) -> None:
    dtype = DTYPES[tensor_type]
    zero_point = int(np.iinfo(dtype).max) // 4
    values = real(around_a_tile(item_bytes) + off)
    got = quantize_both_ways(ddr, values, **PER_TENSOR, tensor_type=tensor_type, zero_point=zero_point)
    limits = np.iinfo(dtype)
    steps = np.rint(values / np.float32(0.05) + np.float32(zero_point)).astype(np.float64)
    expected = np.where(np.isnan(values), zero_point, np.clip(steps, limits.min, limits.max)).astype(dtype)
    np.testing.assert_array_equal(got, expected, strict=True)
    back = dequantize_both_ways(ddr, got, **PER_TENSOR, tensor_type=tensor_type, zero_point=zero_point)
    differences = (got.astype(np.int64) - zero_point).astype(np.float32)
    np.testing.assert_array_equal(back, differences * np.float32(0.05), strict=True)


@each("count", [0, 1, 2])
def test_few_elements(ddr: FakeDdr, count: int) -> None:
    values = np.full(count, 1.0, np.float32)
    got = quantize_both_ways(ddr, values, axis=-1, quanti_type=SHIFT, shift=4, tensor_type=S8)
    assert got.tolist() == [16] * count
    back = dequantize_both_ways(ddr, got, axis=-1, quanti_type=SHIFT, shift=4, tensor_type=S8)
    assert back.tolist() == [1.0] * count


@pytest.mark.long
def test_sixteen_million_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1 << 24
    block = memoryview(np.resize(real(1 << 16), count).data).cast("B")
    monkeypatch.setattr(tiles, "map_range", lambda phy_addr, size_bytes: block[phy_addr : phy_addr + size_bytes])
    results = []
    for flags in (0, HB_DSP_QUANTI_DDR_PATH):
        param = hbDSPQuantizeParam(**PER_TENSOR, tensor_type=S8, flags=flags, zero_point=3)
        param.set_shape((count,))
        results.append(bytearray(count))
        assert hb_dsp_quantize(memoryview(bytearray(param)), memoryview(results[-1]), TileManager()) == 0
    assert results[0] == results[1]
    values = np.frombuffer(block, np.float32, 1 << 16)
    expected = np.rint(values / np.float32(0.05) + np.float32(3))
    expected = np.where(np.isnan(values), 3, np.clip(expected, -128, 127)).astype(np.int8)
    assert results[0] == np.resize(expected, count).tobytes()


def test_half_away_flag(ddr: FakeDdr) -> None:
    values = np.array([0.5, 1.5, -2.5], np.float32)
    fields: dict[str, Any] = {"axis": -1, "quanti_type": SCALE, "scale": 1.0, "tensor_type": S16}
    assert quantize_both_ways(ddr, values, **fields).tolist() == [0, 2, -2]
    fields["flags"] = HB_DSP_QUANTI_ROUND_HALF_AWAY
    assert quantize_both_ways(ddr, values, **fields).tolist() == [1, 2, -3]


def test_zero_point_last_flag(ddr: FakeDdr) -> None:
    values = np.array([0.5, 1.5, -0.5, 300.0, -300.0, np.nan], np.float32)
    fields: dict[str, Any] = {"axis": -1, "quanti_type": SCALE, "scale": 1.0, "zero_point": 1, "tensor_type": U8}
    assert quantize_both_ways(ddr, values, **fields).tolist() == [2, 2, 0, 255, 0, 1]
    fields["flags"] = HB_DSP_QUANTI_ZERO_POINT_LAST
    assert quantize_both_ways(ddr, values, **fields).tolist() == [1, 3, 1, 255, 0, 1]
    fields |= {"tensor_type": S32, "zero_point": 7, "flags": HB_DSP_QUANTI_ZERO_POINT_LAST}
    assert quantize_both_ways(ddr, np.array([2.0**31, -8.5], np.float32), **fields).tolist() == [2**31 - 1, -1]


SHAPES = hnp.array_shapes(min_dims=1, max_dims=5, max_side=5)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=SHAPES, tensor_type=st.sampled_from([S8, U8, S16]), data=st.data())
def test_per_axis_agrees_with_broadcasting(
    ddr: FakeDdr, shape: tuple[int, ...], tensor_type: int, data: st.DataObject
) -> None:
    ddr.used_bytes = 0
    axis = data.draw(st.integers(0, len(shape) - 1))
    channels, dtype = shape[axis], DTYPES[tensor_type]
    limits = np.iinfo(dtype)
    values = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(-1e3, 1e3, width=32)))
    scales = data.draw(hnp.arrays(np.float32, channels, elements=st.floats(0.015625, 1024, width=32)))
    zero_points = data.draw(hnp.arrays(np.int32, channels, elements=st.integers(limits.min, limits.max)))
    fields = {
        "axis": axis,
        "quanti_type": SCALE,
        "tensor_type": tensor_type,
        "scale_data": ddr.put(scales),
        "zero_point_data": ddr.put(zero_points),
    }
    along = [1] * len(shape)
    along[axis] = channels
    scale, zero_point = scales.reshape(along), zero_points.reshape(along)
    expected = np.clip(np.rint(values / scale + zero_point.astype(np.float32)), limits.min, limits.max).astype(dtype)
    got = quantize_both_ways(ddr, values, **fields)
    np.testing.assert_array_equal(got, expected, strict=True)
    back = dequantize_both_ways(ddr, got, **fields)
    np.testing.assert_array_equal(back, (got - zero_point).astype(np.float32) * scale, strict=True)


@each("shape", [(3, 30_000), (30_000, 3), (7, 11, 1300)])
def test_channels_across_tiles(ddr: FakeDdr, shape: tuple[int, ...]) -> None:
    values = real(math.prod(shape)).reshape(shape)
    shifts = np.arange(shape[1], dtype=np.int32) % 7
    fields = {"axis": 1, "quanti_type": SHIFT, "tensor_type": S8, "shift_data": ddr.put(shifts)}
    factor = np.exp2(shifts).astype(np.float32).reshape((1, -1) + (1,) * (len(shape) - 2))
    expected = np.where(np.isnan(values), 0, np.clip(np.rint(values * factor), -128, 127)).astype(np.int8)
    got = quantize_both_ways(ddr, values, **fields)
    np.testing.assert_array_equal(got, expected, strict=True)
    back = dequantize_both_ways(ddr, got, **fields)
    np.testing.assert_array_equal(back, got / factor, strict=True)


def test_in_place_when_the_results_are_not_larger(ddr: FakeDdr) -> None:
    values = real(60_000)
    expected = quantize_both_ways(ddr, values, **PER_TENSOR, tensor_type=S8)
    phy_addr, block = ddr.take(values.nbytes)
    for flags in (0, HB_DSP_QUANTI_DDR_PATH):
        block[:] = values.tobytes()
        param = hbDSPQuantizeParam(**PER_TENSOR, tensor_type=S8, input=phy_addr, flags=flags)
        param.set_shape(values.shape)
        assert hb_dsp_quantize(memoryview(bytearray(param)), block, ddr.tile_manager) == 0
        assert bytes(block[: values.size]) == expected.tobytes()


def test_larger_results_over_their_input_are_refused(ddr: FakeDdr) -> None:
    phy_addr, block = ddr.take(4000)
    param = hbDSPDequantizeParam(**PER_TENSOR, tensor_type=S8, input=phy_addr)
    param.set_shape((1000,))
    with pytest.raises(ValueError, match=r"^The output block overlaps the input data"):
        hb_dsp_dequantize(memoryview(bytearray(param)), block, ddr.tile_manager)


@each("op, structure", [(hb_dsp_quantize, hbDSPQuantizeParam), (hb_dsp_dequantize, hbDSPDequantizeParam)])
@each("fields", [{}, {"axis": 0}])
def test_an_address_outside_every_block(ddr: FakeDdr, op: Any, structure: Any, fields: dict[str, int]) -> None:
    param = structure(**{**PER_TENSOR, "tensor_type": S32, "input": 0x1000, "scale_data": 0x2000, **fields})
    param.set_shape((4,))
    block = memoryview(bytearray(64))
    assert op(memoryview(bytearray(param)), block, ddr.tile_manager) == Status.HB_ERR_MMAP_FAILED
    assert not any(block)


def test_the_table_names_ops_that_exist() -> None:
    registry = Registry(pytest.fail)
    for cmd, (name, source) in NN_OPS.items():
        registry.register_lazy(cmd, name, source)
    assert [(entry.cmd, entry.name, entry.resolve()) for entry in registry.listing()] == [
        (0x400, "softmax", hb_dsp_softmax),
        (0x401, "quantize", hb_dsp_quantize),
        (0x402, "dequantize", hb_dsp_dequantize),
        (0x403, "centerpoint", hb_dsp_centerpoint),
        (0x404, "pointpillars", hb_dsp_pointpillars),
        (0x405, "softmax_rows", hb_dsp_softmax_rows),
    ]
