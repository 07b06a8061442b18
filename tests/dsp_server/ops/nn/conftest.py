"""A stretch of DDR without a board: enough to run an op as a core would."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.nn.quanti import QuantiParam
from dsp_server.runtime import MAP_FAILED, Mapped

BASE = 0x8_0000_0000
Op = Callable[[memoryview, memoryview, TileManager], int]


class FakeDdr:
    """Bytes from BASE on, handed out in order; what was not handed out cannot be mapped."""

    def __init__(self, size_bytes: int) -> None:
        self.bytes = memoryview(bytearray(size_bytes))
        self.used_bytes = 0
        self.tile_manager = TileManager()

    def take(self, size_bytes: int) -> tuple[int, memoryview]:
        """Physical address and bytes of a new block."""
        start = -(-self.used_bytes // 64) * 64
        self.used_bytes = start + size_bytes
        return BASE + start, self.bytes[start : self.used_bytes]

    def put(self, values: NDArray[Any]) -> int:
        """Physical address of a copy of an array."""
        phy_addr, block = self.take(values.nbytes)
        block[:] = values.tobytes()
        return phy_addr

    def mem_map(self, phy_addr: int, size_bytes: int) -> Mapped:
        start = phy_addr - BASE
        inside = start >= 0 and start + size_bytes <= self.used_bytes
        return self.bytes[start : start + size_bytes] if inside else MAP_FAILED

    def run(self, op: Op, param: ctypes.Structure, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Runs an op with this structure as its input block; `count` results of `dtype`."""
        _, output = self.take(count * dtype.itemsize)
        assert op(memoryview(bytearray(param)), output, self.tile_manager) == 0
        assert self.tile_manager.live() == []
        return np.frombuffer(output, dtype).copy()

    def run_on(self, op: Op, param: QuantiParam, values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Runs quantize or dequantize over a tensor; the result has its shape."""
        param.input = self.put(values)
        param.set_shape(values.shape)
        return self.run(op, param, values.size, dtype).reshape(values.shape)


@pytest.fixture
def ddr(monkeypatch: pytest.MonkeyPatch) -> FakeDdr:
    fake = FakeDdr(64 << 20)  # zeros that nobody touches cost nothing
    monkeypatch.setattr("dsp_server.ops.nn.tiles.map_range", fake.mem_map)
    return fake
