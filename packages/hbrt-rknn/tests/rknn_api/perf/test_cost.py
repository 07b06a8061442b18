"""Modeled cost against the rows of published logs."""

from dataclasses import replace

import pytest

from rknn_api.perf.cost import Chip, cost_of, native_bytes, shares_of
from rknn_api.perf.layers import Layer
from rknn_api.perf.table import layer_table
from rknn_api.platforms import platform_of

LOG = Chip(800, 1024, 512, 64, 23650, (16, 8))
CONV = Layer(
    "ConvRelu", "c", "INT8", "NPU", ((1, 128, 80, 80),), (1, 64, 80, 80), ((64, 128, 3, 3), (64,)), 64 * 128 * 9 * 6400
)


def test_a_convolution_of_a_published_log() -> None:
    cost = cost_of(CONV, LOG)
    assert cost.npu_cycles == cost.total_cycles == 460800
    assert cost.ddr_cycles == pytest.approx(44071, rel=5e-4)
    assert cost.rw_bytes // 1024 == 872
    # The log's layer took 758 us: here is the bound from below.
    assert cost.time_us == 576
    assert 100 * CONV.macs / 1024 / (758 * 800) == pytest.approx(75.99, abs=0.01)
    assert cost.mac_usage == 99  # where the column ends


def test_the_rules_for_other_layers() -> None:
    half = replace(CONV, dtype="FLOAT16")
    assert cost_of(half, LOG).npu_cycles == 2 * 460800
    assert cost_of(half, LOG).rw_bytes == 2 * (128 * 6400 + 64 * 128 * 9) + 4 * 64
    depthwise = replace(CONV, weights=((128, 1, 3, 3),), macs=128 * 9 * 6400, is_depthwise=True)
    assert cost_of(depthwise, LOG).npu_cycles == 128 * 9 * 100
    by_point = replace(CONV, weights=((64, 64, 1, 1),), macs=64 * 64 * 6400)
    assert cost_of(by_point, LOG).npu_cycles == 2 * 64 * 64 * 6400 // 1024
    pool = replace(CONV, op_type="MaxPool", weights=(), macs=0)
    assert cost_of(pool, LOG)[1:2] + cost_of(pool, LOG)[3:4] == (0, 0)
    assert native_bytes((1, 13, 4, 4), CONV, LOG) == 16 * 16
    assert native_bytes((1, 13), CONV, LOG) == 13


@pytest.mark.parametrize(
    ("layer", "cores", "shares", "improvement"),
    [
        (CONV, (0, 1), (0.5, 0.5, 0), 0.5),
        (CONV, (0,), (1, 0, 0), 0),
        (CONV, (0, 1, 2), (26 / 80, 27 / 80, 27 / 80), 53 / 80),
        (CONV, (2,), (0, 0, 1), 0),
        (replace(CONV, op_type="MaxPool"), (0, 1), (1, 0, 0), 0),
        (replace(CONV, macs=5000), (0, 1), (1, 0, 0), 0),
        (replace(CONV, output=(1, 500, 1, 1)), (0, 1), (0.5, 0.5, 0), 0.5),
        (replace(CONV, op_type="Softmax", target="CPU"), (0, 1), (0, 0, 0), 0),
        (replace(CONV, op_type="InputOperator", target="CPU"), (0, 1), (1, 0, 0), 0),
    ],
)
def test_how_cores_share_a_layer(
    layer: Layer, cores: tuple[int, ...], shares: tuple[float, ...], improvement: float
) -> None:
    cost = cost_of(layer, LOG, cores, 3)
    assert cost.shares == shares
    assert cost.improvement == pytest.approx(improvement)
    if layer.target == "NPU":
        assert shares_of(layer, LOG, cores, 3, cost.npu_cycles) == shares


def test_times_are_those_of_the_fitted_model() -> None:
    fast = Chip.of(platform_of("rk3588").profile)
    # At 1000 MHz; the log's 758 us are at 800.
    assert cost_of(CONV, fast).time_us == pytest.approx(758 * 0.8, rel=0.3)
    swish = replace(CONV, op_type="ConvExSwish")
    half = replace(CONV, dtype="FLOAT16")
    depthwise = replace(CONV, weights=((128, 1, 3, 3),), macs=128 * 9 * 6400, is_depthwise=True)
    moved = replace(CONV, op_type="MaxPool", weights=(), macs=0)
    times = [cost_of(one, fast).time_us for one in (moved, CONV, swish)]
    assert times == sorted(times)
    assert cost_of(half, fast).time_us > 1.8 * cost_of(CONV, fast).time_us
    assert 0 < cost_of(depthwise, fast).time_us < cost_of(CONV, fast).time_us
    shared = cost_of(CONV, fast, (0, 1), 3).time_us
    assert cost_of(CONV, fast).time_us / 2 < shared < cost_of(CONV, fast).time_us
    product = replace(CONV, op_type="MatMul", inputs=((1, 64, 32), (1, 32, 64)), output=(1, 64, 64), weights=())
    assert cost_of(replace(product, macs=64 * 64 * 32), fast).time_us > 0


def test_the_table_has_the_guides_columns() -> None:
    text = layer_table([CONV], [cost_of(CONV, LOG, (0, 1), 3)])
    assert "WorkLoad(0/1/2)-Improve" in text
    assert "50.0%/50.0%/0.0% - Up:50.0%" in text
    assert "Modeled, not measured" in text
    assert "WorkLoad" not in layer_table([CONV], [cost_of(CONV, Chip.of(platform_of("rk3566").profile))])
