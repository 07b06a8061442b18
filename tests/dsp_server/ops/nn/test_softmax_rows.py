"""softmax of many rows: the bits that a call for each row gives, and the softmax of an image's own."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.nn import tiles
from dsp_server.ops.nn.softmax import make_softmax
from dsp_server.ops.nn.softmax_rows import hb_dsp_softmax_rows, softmax_rows
from dsp_server.registry import Registry
from dsp_server.runtime import context
from hbrt.nn_types import hbDSPSoftmaxParam, hbDSPSoftmaxRowsParam
from hbrt.status import Status
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.nn.conftest import FakeDdr

FLOAT32 = np.dtype(np.float32)
PATHS: list[Literal["ping_pong", "ddr"]] = ["ping_pong", "ddr"]


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Of an image that has registered nothing."""
    made = Registry(pytest.fail)
    monkeypatch.setattr(context, "registry", made)
    return made


def matrix(rows: int, length: int) -> NDArray[np.float32]:
    return (np.random.default_rng(rows * length).standard_normal((rows, length)) * 4).astype(np.float32)


def run(ddr: FakeDdr, values: NDArray[np.float32]) -> NDArray[Any]:
    param = hbDSPSoftmaxRowsParam(values.shape[1] * 4, len(values), ddr.put(values))
    return ddr.run(hb_dsp_softmax_rows, param, values.size, FLOAT32).reshape(values.shape)


def each_row(ddr: FakeDdr, values: NDArray[np.float32]) -> NDArray[Any]:
    """What 0x400 makes of it, a call a row."""
    return np.array(
        [ddr.run(make_softmax(), hbDSPSoftmaxParam(row.nbytes, ddr.put(row)), len(row), FLOAT32) for row in values]
    )


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("rows", "length"),
    [(1, 5), (3, 1), (700, 7), (64, 1000), (9, 1023), (5, 1024), (5, 1025), (4, 3000), (3, 20_000), (2, 40_001)],
)
def test_the_same_bits_as_a_call_for_each_row(ddr: FakeDdr, path: tiles.Path, rows: int, length: int) -> None:
    tiles.set_path(path)
    values = matrix(rows, length)
    try:
        assert run(ddr, values).tobytes() == each_row(ddr, values).tobytes()
    finally:
        tiles.set_path(None)


def test_special_values_stay_in_their_row(ddr: FakeDdr) -> None:
    inf, nan = math.inf, math.nan
    values = np.array([[1, 2, 3], [nan, 0, 0], [inf, 0, 0], [-inf, 0, 0], [-inf] * 3, [3.4e38, -3.4e38, 0]], np.float32)
    result = run(ddr, values)
    assert result.tobytes() == each_row(ddr, values).tobytes()
    assert np.isnan(result).any(axis=1).tolist() == [False, True, True, False, True, False]


def test_the_result_does_not_depend_on_the_size_of_tcm() -> None:
    values = matrix(50, 1500)
    results = []
    for pool_bytes in (7 * 1024, 20 * 1024, 103 * 1024):
        results.append(np.empty_like(values))
        softmax_rows(TileManager(pool_bytes, pool_bytes), "ping_pong", values, results[-1])
    assert len({result.tobytes() for result in results}) == 1


def test_in_place(ddr: FakeDdr) -> None:
    values = matrix(40, 50)
    phy_addr, block = ddr.take(values.nbytes)
    block[:] = values.tobytes()
    param = hbDSPSoftmaxRowsParam(200, 40, phy_addr)
    assert hb_dsp_softmax_rows(memoryview(bytearray(param)), block, ddr.tile_manager) == 0
    assert bytes(block) == each_row(ddr, values).tobytes()


@each("size, rows", [(0, 5), (8, 0), (0, 0)])
def test_no_elements(ddr: FakeDdr, size: int, rows: int) -> None:
    block = memoryview(bytearray(hbDSPSoftmaxRowsParam(size, rows, 0)))
    assert hb_dsp_softmax_rows(block, memoryview(b""), ddr.tile_manager) == 0


@each(
    "size, rows, offset, room, said",
    [
        (-4, 2, 0, 32, "Invalid data_size -4"),
        (6, 2, 0, 32, "Invalid data_size 6"),
        (8, -1, 0, 32, "Invalid rows -1"),
        (8, 2, 2, 32, "is not aligned"),
        (8, 2, 0, 12, "The output block has 12 bytes, but 4 float32 results take 16"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_written(
    ddr: FakeDdr, size: int, rows: int, offset: int, room: int, said: str
) -> None:
    phy_addr = ddr.put(np.ones(8, np.float32))
    output = memoryview(bytearray(b"\xa5" * room))
    block = memoryview(bytearray(hbDSPSoftmaxRowsParam(size, rows, phy_addr + offset)))
    with pytest.raises(ValueError, match=said):
        hb_dsp_softmax_rows(block, output, ddr.tile_manager)
    assert bytes(output) == b"\xa5" * room


def test_a_matrix_that_leaves_its_block(ddr: FakeDdr) -> None:
    phy_addr = ddr.put(np.ones(8, np.float32))
    for rows in (5, 0x7FFFFFFF):
        block = memoryview(bytearray(hbDSPSoftmaxRowsParam(8, rows, phy_addr)))
        assert hb_dsp_softmax_rows(block, memoryview(bytearray(64)), ddr.tile_manager) == Status.HB_ERR_MMAP_FAILED


def test_the_softmax_of_an_image_of_its_own_runs_each_row(ddr: FakeDdr, registry: Registry) -> None:
    given = []

    def own(input: memoryview, output: memoryview, tm: TileManager) -> int:
        given.append(struct.unpack("<iiQ", input))
        output[:] = struct.pack("<3f", *[len(given)] * 3)
        return 0 if len(given) < 3 else -7

    registry.register(0x400, own)
    phy_addr = ddr.put(matrix(4, 3))
    output = memoryview(bytearray(48))
    block = memoryview(bytearray(hbDSPSoftmaxRowsParam(12, 4, phy_addr)))
    assert hb_dsp_softmax_rows(block, output, ddr.tile_manager) == -7
    assert given == [(12, 0, phy_addr + 12 * row) for row in range(3)]
    assert np.frombuffer(output, np.float32).tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0, 0]
