"""`arm_client.nn.softmax` on a board: axes, copies and none, many rows in flight, what goes wrong."""

from __future__ import annotations

import concurrent.futures
import gc
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arm_client import nn
from arm_client.arrays import BoardArray
from arm_client.client import Board
from arm_client.errors import CallerError, OpFailedError, OutOfMemoryError
from arm_client.future import Task
from arm_client.nn import rows
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX
from tests.limits import PATIENCE_S


def oracle(values: NDArray[np.float32], axis: int = -1) -> NDArray[np.float64]:
    shifted = values.astype(np.float64) - values.max(axis=axis, keepdims=True)
    exponentials = np.exp(shifted)
    result: NDArray[np.float64] = exponentials / exponentials.sum(axis=axis, keepdims=True)
    return result


def normal(*shape: int) -> NDArray[np.float32]:
    return (np.random.default_rng(math.prod(shape)).standard_normal(shape) * 5).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1,), 0),
        ((1000,), -1),
        ((7,), 0),
        ((5, 8), -1),
        ((5, 7), 1),  # an odd length: rows of the result do not start at multiples of 8 bytes
        ((1, 7), -1),
        ((6, 4), 0),
        ((2, 3, 4), 1),
        ((3, 1, 5, 2), -3),
        ((rows.IN_FLIGHT * 3 + 1, 10), -1),
    ],
)
def test_along_any_axis(dsp_board: Board, shape: tuple[int, ...], axis: int) -> None:
    values = normal(*shape)
    got = nn.softmax(dsp_board, values, axis)
    assert isinstance(got, BoardArray)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, oracle(values, axis), rtol=2e-7, atol=0)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0)])
def test_nothing_to_do(dsp_board: Board, shape: tuple[int, ...]) -> None:
    assert nn.softmax(dsp_board, np.empty(shape, np.float32)).shape == shape


def test_lists_and_other_types_are_copied_to_float32(dsp_board: Board) -> None:
    expected = oracle(np.array([1, 2, 3], np.float32))
    for values in ([1, 2, 3], np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3], np.int16)):
        np.testing.assert_allclose(nn.softmax(dsp_board, values), expected, rtol=2e-7)


def test_a_board_array_is_used_where_it_is(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    values = dsp_board.from_array(normal(4, 6))
    copy, strided = normal(4, 6), dsp_board.from_array(normal(8, 6))[::2]
    monkeypatch.setattr(
        Board, "from_array", lambda *_: pytest.fail("A float32 board array in C order must not be copied.")
    )
    np.testing.assert_allclose(nn.softmax(dsp_board, values), oracle(copy), rtol=2e-7)
    np.testing.assert_allclose(nn.softmax(dsp_board, values[1:3]), oracle(copy[1:3]), rtol=2e-7)
    monkeypatch.undo()
    np.testing.assert_allclose(nn.softmax(dsp_board, strided), oracle(normal(8, 6)[::2]), rtol=2e-7)
    np.testing.assert_allclose(nn.softmax(dsp_board, values.copy()), oracle(copy), rtol=2e-7)


@pytest.mark.parametrize("shape", [(3, 8), (3, 7)])
def test_into_an_array_of_the_callers(dsp_board: Board, shape: tuple[int, ...]) -> None:
    values = dsp_board.from_array(normal(*shape))
    out = dsp_board.empty_like(values)
    assert nn.softmax(dsp_board, values, out=out) is out
    np.testing.assert_allclose(out, oracle(normal(*shape)), rtol=2e-7)
    assert nn.softmax(dsp_board, values, out=values) is values
    np.testing.assert_array_equal(values, out)


def test_an_out_that_does_not_fit(dsp_board: Board) -> None:
    values = normal(2, 4)
    with pytest.raises(CallerError, match=r"out has shape \(4, 2\), type float32"):
        nn.softmax(dsp_board, values, out=dsp_board.empty((4, 2)))
    with pytest.raises(CallerError, match=r"out is not in device memory: create it with board\.empty"):
        nn.softmax(dsp_board, values, out=dsp_board.empty((2, 4)).copy())


@pytest.mark.parametrize(("shape", "axis"), [((), 0), ((3,), 1), ((3, 4), -3)])
def test_an_axis_that_is_none(dsp_board: Board, shape: tuple[int, ...], axis: int) -> None:
    with pytest.raises(CallerError, match="is out of range for shape"):
        nn.softmax(dsp_board, np.zeros(shape, np.float32), axis)


def test_an_axis_that_is_no_number(dsp_board: Board) -> None:
    untyped: Any = "last"
    with pytest.raises(CallerError, match=r"^axis is 'last', but must be an integer"):
        nn.softmax(dsp_board, np.zeros((2, 3), np.float32), untyped)


@pytest.mark.parametrize("timeout", ["soon", math.nan, 10**400])
def test_a_timeout_that_is_no_number(dsp_board: Board, timeout: Any) -> None:
    with pytest.raises(CallerError, match=r"^Invalid timeout \S+: use seconds, or None for no limit"):
        nn.softmax(dsp_board, np.zeros((2, 3), np.float32), timeout=timeout)


def test_pinned_to_a_core(dsp_board: Board) -> None:
    values = normal(4, 6)
    for core in (1, 2):
        np.testing.assert_allclose(nn.softmax(dsp_board, values, core=core), oracle(values), rtol=2e-7)


def test_a_wrong_size_comes_back_as_the_ops_sentence(dsp_board: Board) -> None:
    values = dsp_board.from_array(normal(4))
    param = hbDSPSoftmaxParam(data_size=16, input=values.phy_addr)
    refused = "refused the call: The output block has 8 bytes, but 4 float32 results take 16"
    with pytest.raises(OpFailedError, match=refused) as caught:
        dsp_board.call(HB_DSP_RPC_CMD_NN_SOFTMAX, param, dsp_board.empty(2))
    assert "Traceback" not in caught.value.text


def test_after_a_row_that_fails_no_task_is_left(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "HB_DSP_RPC_CMD_NN_SOFTMAX", 0x7FF)  # no op there
    with pytest.raises(RuntimeError, match="0x7ff"):
        nn.softmax(dsp_board, normal(50, 6))
    monkeypatch.undo()
    np.testing.assert_allclose(nn.softmax(dsp_board, normal(2, 6)), oracle(normal(2, 6)), rtol=2e-7)


WAITS_FOR_ITS_ROW = """
import time
from dsp_server import hb_dsp_env_init, hb_dsp_mem_map, hb_dsp_mem_unmap, hb_dsp_register_fn, hb_dsp_start
from hbrt.nn_types import hbDSPSoftmaxParam

def op(input, output, tm):
    row = hb_dsp_mem_map(hbDSPSoftmaxParam.from_buffer_copy(input).input, 1)
    while not row[0]:
        time.sleep(0.001)
    hb_dsp_mem_unmap(row)
    output[0] = 42
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x400, op, 0)
    hb_dsp_start()
"""


def test_what_a_core_still_writes_outlives_the_timeout(
    dsp_board_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "waits.py"
    image.write_text(WAITS_FOR_ITS_ROW, encoding="utf-8")
    tasks: list[Task] = []
    submit = Board.submit

    def spy(*args: Any, **kwargs: Any) -> Task:
        tasks.append(submit(*args, **kwargs))
        return tasks[-1]

    monkeypatch.setattr(Board, "submit", spy)
    with dsp_board_factory(image=image, fresh=True) as board:
        rows_in = board.empty((5, 7))
        started = board.submit(0x400, hbDSPSoftmaxParam(4, rows_in.phy_addr), board.empty(2), core=1)
        with pytest.raises(TimeoutError):
            nn.softmax(board, rows_in, timeout=0.05)  # its padded results are nobody's but the call's
        held_bytes = board.live_bytes()
        rows_in.view(np.uint8)[:, 0] = 1
        concurrent.futures.wait(tasks, timeout=PATIENCE_S)
        assert started.result(0)[0] != 0
        cancelled = [task.cancelled() for task in tasks]
        assert cancelled.count(False) in {1, 2}  # one a core: what had not begun was cancelled
        del started
        tasks.clear()
        gc.collect()
        assert board.live_bytes() < held_bytes
        del rows_in


SMALL_TCM = """
from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_init_global_tm, hb_dsp_register_fn, hb_dsp_start
from dsp_server.ops.nn.softmax import make_softmax

def main():
    hb_dsp_env_init()
    hb_dsp_init_global_tm(None, 2048, None, 2048)
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(0x1000, make_softmax("ddr"), 0)
    hb_dsp_start()
"""


def test_an_image_chooses_the_path(dsp_board_factory: Any, tmp_path: Path) -> None:
    image = tmp_path / "small_tcm.py"
    image.write_text(SMALL_TCM, encoding="utf-8")
    with dsp_board_factory(image=image, fresh=True) as board:
        values, output = board.from_array(normal(5000)), board.empty(5000)
        param = hbDSPSoftmaxParam(data_size=values.nbytes, input=values.phy_addr)
        with pytest.raises(OutOfMemoryError, match="TCM") as caught:
            board.call(HB_DSP_RPC_CMD_NN_SOFTMAX, param, output)
        assert caught.value.status == Status.HB_DSP_OUT_OF_TCM
        np.testing.assert_allclose(board.call(0x1000, param, output), oracle(normal(5000)), rtol=2e-7)
        del caught, values, output
