from __future__ import annotations

import ctypes

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from arm_client.dnn.errors import ModelError
from arm_client.dnn.layers.ndarray import NDArray, TShape
from arm_client.dnn.run.device import Device
from tests.each import each


def test_shapes() -> None:
    assert TShape(2, 3) == TShape([2, 3]) == (2, 3)
    assert TShape(np.array([4, 5]))[1] == 5
    assert (TShape(2, 3).Size(), TShape().Size(), TShape([]).Size()) == (6, 1, 1)


def test_the_members_of_the_vendors_sample() -> None:
    """The softmax sample's own steps: rows from the axis on."""
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    data = NDArray(values)
    axis = data.CanonicalAxis(-2)
    rows = 1
    for at in range(axis):
        rows *= data.Shape()[at]
    matrix = data.Reshape(TShape([rows, data.Size() // rows]))
    assert matrix.Shape() == (2, 12)
    row = matrix[1]
    copy = np.empty(12, np.float32)
    ctypes.memmove(copy.ctypes.data, row.RawData(), copy.nbytes)
    np.testing.assert_array_equal(copy, values[1].reshape(-1))
    ctypes.memmove(row.RawData(), np.zeros(12, np.float32).ctypes.data, 48)
    assert values[1].sum() == 0
    np.testing.assert_array_equal(np.asarray(matrix[0]), np.arange(12))


@pytest.mark.parametrize(("axis", "said"), [(3, "3"), (-4, "-4")])
def test_an_axis_that_is_none(axis: int, said: str) -> None:
    with pytest.raises(ModelError, match=rf"axis {said} is out of range for shape \[2, 3, 4\]"):
        NDArray(np.zeros((2, 3, 4))).CanonicalAxis(axis)


@each("shape", [(5,), (-1, 6), (2, 3, 2)])
def test_a_view_has_as_many_elements(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="has 6 elements and cannot be seen as"):
        NDArray(np.zeros((2, 3))).Reshape(TShape(shape))


def test_indices_end() -> None:
    data = NDArray(np.zeros((2, 3)))
    assert len(list(data)) == 2
    assert data[-1].Shape() == (3,)
    assert data[0][1].Shape() == ()
    for view, index in ((data, 2), (data[0][1], 0)):
        with pytest.raises(IndexError, match=f"Index {index} is out of range"):
            view[index]


def test_views_know_where_they_lie(dsp_board: Board) -> None:
    device = Device()
    data = device.view(device.array((4, 6), np.dtype(np.float32)))
    assert data is not None
    data.numpy()[...] = np.arange(24).reshape(4, 6)
    row = data.Reshape(TShape(2, 2, 6))[1][1]
    assert row.phy_addr == data.phy_addr + 3 * 24
    assert row.mem.memSize == 24
    np.testing.assert_array_equal(row.mem.array(np.float32), np.arange(18, 24))
    copy = np.empty(6, np.float32)
    assert hb.hbSysReadMem(copy, row.mem, 24) == 0
    np.testing.assert_array_equal(copy, np.arange(18, 24))
    assert hb.hbSysWriteMem(row.mem, data[0].RawData(), 24) == 0
    np.testing.assert_array_equal(data.numpy()[3], np.arange(6))
    assert hb.hbSysFlushMem(row.mem, hb.HB_SYS_MEM_CACHE_CLEAN) == 0
    device.close()


def test_what_is_not_in_device_memory_has_no_address() -> None:
    with pytest.raises(ModelError, match=r"shape \[3\] is not in device memory"):
        NDArray(np.zeros(3)).mem  # noqa: B018 - a property that raises


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), ()])
def test_empty_and_scalar(dsp_board: Board, shape: tuple[int, ...]) -> None:
    device = Device()
    data = device.view(device.array(shape, np.dtype(np.int64)))
    assert data is not None
    assert (data.Shape(), len(data.RawData())) == (shape, 8 * data.Size())
    assert data.mem.memSize == 8 * data.Size()
    device.close()
