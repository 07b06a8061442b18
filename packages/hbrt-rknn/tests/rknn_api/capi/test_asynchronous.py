"""Runs that continue in the background: rknn_run returns before the outputs are ready, and whoever needs them waits."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rknn_api as rk
from tests.limits import PATIENCE_S
from tests.rknn_api.capi.test_functions import attr_of, contexts, memory  # noqa: F401 - a fixture, and what makes use of it

pytestmark = pytest.mark.dsp_board(profile="rk3588")


class Op:
    """cstScale, whose callback waits until it may continue, and gives twice its input."""

    def __init__(self, context: rk.rknn_context) -> None:
        self._context, self.goes_on, self.answer = context, threading.Event(), 0
        self._compute = rk.rknn_custom_op_callback(self._run)
        op = rk.rknn_custom_op(op_type=b"cstScale", version=1, target=rk.RKNN_TARGET_TYPE_CPU)
        op.compute = ctypes.cast(self._compute, ctypes.c_void_p).value
        assert rk.rknn_register_custom_ops(context, op, 1) == 0, rk.last_error()

    def _run(self, _context: Any, inputs: Any, _n_inputs: int, outputs: Any, _n_outputs: int) -> int:
        number = rk.rknn_input_output_num()
        is_told = rk.rknn_query(self._context, rk.RKNN_QUERY_IN_OUT_NUM, number, ctypes.sizeof(number)) == 0
        if not is_told or not self.goes_on.wait(PATIENCE_S):
            return -9
        given, made = (
            np.ctypeslib.as_array(
                ctypes.cast(one[0].mem.virt_addr + one[0].mem.offset, ctypes.POINTER(ctypes.c_float)),
                (one[0].attr.n_elems,),
            )
            for one in (inputs, outputs)
        )
        made[:] = 2 * given
        return self.answer


def set_input(context: rk.rknn_context, value: float) -> None:
    x = np.full((1, 2, 3, 3), value, np.float32)
    given = rk.rknn_input(buf=x.ctypes.data, size=x.nbytes, type=rk.RKNN_TENSOR_FLOAT32, fmt=rk.RKNN_TENSOR_NHWC)
    assert rk.rknn_inputs_set(context, 1, [given]) == 0, rk.last_error()


def output(context: rk.rknn_context, extend: Any = None) -> float:
    y = np.zeros((1, 4, 2, 3), np.float32)
    got = rk.rknn_output(want_float=1, is_prealloc=1, buf=y.ctypes.data, size=y.nbytes)
    assert rk.rknn_outputs_get(context, 1, got, extend) == 0, rk.last_error()
    return float(y.mean())


def test_a_run_goes_on_by_itself(contexts: Callable[..., Any]) -> None:  # noqa: F811
    context = contexts("op")
    op, extend, told = Op(context), rk.rknn_run_extend(non_block=1), rk.rknn_output_extend()
    set_input(context, 1)
    assert rk.rknn_run(context, extend) == 0
    set_input(context, 5)  # the run has its own
    assert not op.goes_on.is_set()
    op.goes_on.set()
    assert output(context, told) == 3 * 2 * 2
    assert rk.rknn_run(context, extend) == 0
    assert (told.frame_id, extend.frame_id) == (1, 2)
    run = rk.rknn_perf_run()
    assert rk.rknn_query(context, rk.RKNN_QUERY_PERF_RUN, run, ctypes.sizeof(run)) == 0
    assert run.run_duration > 0
    assert output(context) == 15 * 2 * 2
    op.answer = 4
    assert rk.rknn_run(context, extend) == 0
    got = rk.rknn_output(want_float=1)
    assert rk.rknn_outputs_get(context, 1, got, None) == rk.RKNN_ERR_FAIL
    assert "compute of the op 'cstScale' (node 'scale_0') returned 4." in rk.last_error()
    assert rk.rknn_outputs_get(context, 1, got, None) == rk.RKNN_ERR_FAIL
    assert "No output yet" in rk.last_error()
    assert rk.rknn_run(context, extend) == 0
    assert rk.rknn_run(context, extend) == rk.RKNN_ERR_FAIL  # of the run before
    op.goes_on.clear()
    op.answer = 0
    assert rk.rknn_run(context, extend) == 0
    threading.Timer(0.05, op.goes_on.set).start()
    assert rk.rknn_destroy(context) == 0  # waits


def test_the_flag_gives_the_outputs_of_the_frame_before(contexts: Callable[..., Any]) -> None:  # noqa: F811
    context = contexts("op", rk.RKNN_FLAG_ASYNC_MASK)
    op, extend, told = Op(context), rk.rknn_run_extend(), rk.rknn_output_extend()
    op.goes_on.set()
    found = []
    for value in (1, 2, 3, 4):
        set_input(context, value)
        assert rk.rknn_run(context, extend) == 0, rk.last_error()
        if value > 1:
            op.goes_on.clear()  # the frame before is there at once
        found.append((int(output(context, told)), extend.frame_id, told.frame_id))
        op.goes_on.set()
    assert found == [(12, 1, 1), (12, 2, 1), (24, 3, 2), (36, 4, 3)]
    assert rk.rknn_destroy(context) == 0  # waits for the last run, which calls into `op`


def test_a_run_without_copies_is_waited_for(contexts: Callable[..., Any]) -> None:  # noqa: F811
    context = contexts("op", rk.RKNN_FLAG_ASYNC_MASK)
    op, mems = Op(context), []
    op.goes_on.set()
    for side in ("INPUT", "OUTPUT"):
        attr = attr_of(context, side)
        attr.type, attr.size = rk.RKNN_TENSOR_FLOAT32, attr.n_elems * 4
        mems.append(memory(context, max(attr.size, 4 * attr.size_with_stride)))
        mems[-1].array(np.float32)[:] = 1
        assert rk.rknn_set_io_mem(context, mems[-1], attr) == 0, rk.last_error()
    assert rk.rknn_run(context, None) == 0, rk.last_error()
    assert mems[1].array(np.float32)[:24].tolist() == [12] * 24
    assert rk.rknn_destroy(context) == 0
    assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0]
