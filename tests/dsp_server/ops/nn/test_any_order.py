"""The packaged NN ops give the same bytes whatever the order in which iDMA moves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dsp_server.hardware import descriptors
from dsp_server.hardware.channels import ChannelIdma
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.nn.pointcloud import hb_dsp_centerpoint
from dsp_server.ops.nn.quantize import hb_dsp_dequantize, hb_dsp_quantize
from dsp_server.ops.nn.softmax import hb_dsp_softmax
from dsp_server.ops.nn.softmax_rows import hb_dsp_softmax_rows
from hbrt.jit import Kernel
from hbrt.nn_types import hbDSPDequantizeParam, hbDSPQuantizeParam, hbDSPSoftmaxParam, hbDSPSoftmaxRowsParam
from tests.dsp_server.ops.nn.test_pointcloud import INT8, INT32, POINTS, TRANSPOSE, param

if TYPE_CHECKING:
    from tests.dsp_server.ops.nn.conftest import FakeDdr

SEEDS = range(20)
FLOAT32 = np.dtype(np.float32)
REAL = np.random.default_rng(1).standard_normal(20_000).astype(np.float32)
WHOLE = np.random.default_rng(2).integers(-128, 128, 20_000).astype(np.int8)
S8, SCALE = 8, 2
QUANTI = {"axis": -1, "quanti_type": SCALE, "scale": 0.05, "tensor_type": S8}


def softmax(ddr: FakeDdr) -> Any:
    asked = hbDSPSoftmaxParam(data_size=REAL.nbytes, input=ddr.put(REAL))
    return ddr.run(hb_dsp_softmax, asked, len(REAL), FLOAT32)


def softmax_rows(ddr: FakeDdr) -> Any:
    asked = hbDSPSoftmaxRowsParam(data_size=4000, rows=20, input=ddr.put(REAL))
    return ddr.run(hb_dsp_softmax_rows, asked, len(REAL), FLOAT32)


def quantize(ddr: FakeDdr) -> Any:
    return ddr.run_on(hb_dsp_quantize, hbDSPQuantizeParam(**QUANTI), REAL, INT8)


def dequantize(ddr: FakeDdr) -> Any:
    return ddr.run_on(hb_dsp_dequantize, hbDSPDequantizeParam(**QUANTI), WHOLE, FLOAT32)


def encode(ddr: FakeDdr) -> Any:
    asked = param(POINTS, count=4000, input=ddr.put(REAL))
    return ddr.run(hb_dsp_centerpoint, asked, 12_000, INT32)


def transpose(ddr: FakeDdr) -> Any:
    asked = param(TRANSPOSE, max_voxels=200, max_points=20, voxel_count=200, input=ddr.put(WHOLE))
    return ddr.run(hb_dsp_centerpoint, asked, len(WHOLE), INT8)


@pytest.mark.parametrize("run", [softmax, softmax_rows, quantize, dequantize, encode, transpose])
def test_the_same_bytes_in_every_order(
    ddr: FakeDdr, run: Callable[[FakeDdr], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kernel, "compiled", lambda _: None)  # a compiled frame moves its bytes itself
    results = []
    for seed in (None, *SEEDS):
        ddr.used_bytes = 0
        ddr.tile_manager = TileManager(20 * 1024, 20 * 1024)  # several tiles each
        idma = ChannelIdma(CycleCounter(), ddr.tile_manager, seed=seed)
        before = descriptors.install(idma)
        try:
            results.append(run(ddr).tobytes())
        finally:
            descriptors.install(before)
        assert idma.last_handle > 4
    assert set(results) == {results[0]}
