"""The C names on a board: both APIs against onnxruntime, every layout and type, and each misuse with its code."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

import rknn_api as rk
from arm_client.client import Board
from arm_client.session.session import Session
from hbrt.models.run import accelerator
from hbrt.profiles.profile import find
from rknn_api.capi import functions, runtime as runtime_module
from rknn_api.container import Container
from rknn_api.errors import RknnStatus
from rknn_api.layouts import from_native, to_native, with_strides
from rknn_api.toolkit.build import without_weights
from tests.rknn_api import nets
from tests.rknn_api.capi.models import exported, model
from tests.waiting import until

Factory = Callable[..., AbstractContextManager[Board]]
pytestmark = pytest.mark.dsp_board(profile="rk3588")


def init(kind: str, flag: int = 0, extend: Any = None, platform: str = "rk3588") -> rk.rknn_context:
    context, data = rk.rknn_context(), model(kind, platform)
    assert rk.rknn_init(context, data, len(data), flag, extend) == 0, rk.last_error()
    return context


@pytest.fixture
def contexts(dsp_board: Board) -> Iterator[Callable[..., rk.rknn_context]]:
    """``contexts(kind, flag)``: one that is destroyed at the end."""
    made: list[rk.rknn_context] = []

    def make(*args: Any, **kwargs: Any) -> rk.rknn_context:
        made.append(init(*args, **kwargs))
        return made[-1]

    yield make
    for context in made:
        rk.rknn_destroy(context)
    del dsp_board


def attr_of(context: rk.rknn_context, query: str, index: int = 0) -> rk.rknn_tensor_attr:
    attr = rk.rknn_tensor_attr(index=index)
    command = getattr(rk, f"RKNN_QUERY_{query}_ATTR")
    assert rk.rknn_query(context, command, attr, ctypes.sizeof(attr)) == 0, rk.last_error()
    return attr


def reference(kind: str, x: Any) -> list[Any]:
    """Onnxruntime on the same graph; x in NHWC."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(bytes(Container.from_bytes(model(kind)).graph), options)
    return list(session.run(None, {"x": np.ascontiguousarray(x.transpose(0, 3, 1, 2), np.float32)}))


def memory(context: rk.rknn_context, size: int) -> rk.rknn_tensor_mem:
    made = rk.rknn_create_mem(context, size)
    assert made is not None, rk.last_error()
    return made


def picture(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape or (1, 6, 10, 3)).astype(np.uint8)


def given(array: Any, dtype: int, fmt: int, *, pass_through: int = 0, index: int = 0) -> rk.rknn_input:
    return rk.rknn_input(
        index=index, buf=array.ctypes.data, size=array.nbytes, type=dtype, fmt=fmt, pass_through=pass_through
    )


def outputs(context: rk.rknn_context, dtype: Any, *, want_float: bool) -> list[Any]:
    got = (rk.rknn_output * 2)(
        rk.rknn_output(index=0, want_float=want_float), rk.rknn_output(index=1, want_float=want_float)
    )
    assert rk.rknn_outputs_get(context, 2, got, None) == 0, rk.last_error()
    found: list[Any] = [np.frombuffer(ctypes.string_at(one.buf or 0, one.size), dtype).copy() for one in got]
    assert rk.rknn_outputs_release(context, 2, got) == 0
    return found


class TestGeneral:
    def test_what_is_queried_set_run_and_got_is_onnxruntimes_bit_for_bit(self, contexts: Callable[..., Any]) -> None:
        context, x = contexts("int8"), picture()
        number = rk.rknn_input_output_num()
        assert rk.rknn_query(context, rk.RKNN_QUERY_IN_OUT_NUM, number, 8) == 0
        assert (number.n_input, number.n_output) == (1, 2)
        attr = attr_of(context, "INPUT")
        assert (attr.shape, attr.fmt, attr.type) == ((1, 6, 10, 3), rk.RKNN_TENSOR_NHWC, rk.RKNN_TENSOR_INT8)
        assert (attr.size, attr.w_stride, attr.size_with_stride, attr.name) == (180, 16, 288, b"x")
        wanted, real = reference("int8", x), x.astype(np.float32)
        nchw = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        zero, scale = attr.zp, attr.scale
        mean, std = np.array([10, 20, 30]), np.array([2, 4, 8])
        stored = np.clip(np.rint((x - mean) / std / scale + zero), -128, 127).astype(np.int8)
        for one in (
            given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC),
            given(nchw, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NCHW),
            given(real, rk.RKNN_TENSOR_FLOAT32, rk.RKNN_TENSOR_NHWC),
            given(stored, rk.RKNN_TENSOR_INT8, rk.RKNN_TENSOR_NHWC, pass_through=1),
        ):
            assert rk.rknn_inputs_set(context, 1, [one]) == 0, rk.last_error()
            assert rk.rknn_run(context, None) == 0, rk.last_error()
            for found, expected in zip(outputs(context, np.float32, want_float=True), wanted, strict=True):
                np.testing.assert_array_equal(found, expected.reshape(-1))
        for index, (found, expected) in enumerate(
            zip(outputs(context, np.int8, want_float=False), wanted, strict=True)
        ):
            attr = attr_of(context, "OUTPUT", index)
            np.testing.assert_array_equal((found.astype(np.float32) - attr.zp) * attr.scale, expected.reshape(-1))
        run = rk.rknn_perf_run()
        assert rk.rknn_query(context, rk.RKNN_QUERY_PERF_RUN, run, ctypes.sizeof(run)) == 0
        assert run.run_duration > 0

    def test_outputs_whose_index_was_left_out_count_by_their_place(self, contexts: Callable[..., Any]) -> None:
        context, x = contexts("int8"), picture()
        assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
        assert rk.rknn_run(context, None) == 0
        got = [rk.rknn_output(want_float=1), rk.rknn_output(want_float=1)]
        assert rk.rknn_outputs_get(context, 2, got, None) == 0, rk.last_error()
        for one, wanted in zip(got, reference("int8", x), strict=True):
            found = np.frombuffer(ctypes.string_at(one.buf or 0, one.size), np.float32)
            np.testing.assert_array_equal(found, wanted.reshape(-1))
        assert rk.rknn_outputs_release(context, 2, got) == 0
        three = [rk.rknn_output() for _ in range(3)]
        assert rk.rknn_outputs_get(context, 3, three, None) == rk.RKNN_ERR_OUTPUT_INVALID

    def test_a_buffer_of_the_programs_own(self, contexts: Callable[..., Any]) -> None:
        context, x, y = contexts("float16"), picture(), np.zeros((1, 20, 6, 10), np.float16)
        assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
        assert rk.rknn_run(context, None) == 0
        wanted = rk.rknn_output(index=0, is_prealloc=1, buf=y.ctypes.data, size=y.nbytes)
        assert rk.rknn_outputs_get(context, 1, [wanted], None) == 0
        np.testing.assert_array_equal(y, reference("float16", x)[0].astype(np.float16))
        assert rk.rknn_outputs_release(context, 1, wanted) == 0
        twice = [rk.rknn_output(index=1, want_float=1), rk.rknn_output(index=1, want_float=1)]
        for one in twice:
            assert rk.rknn_outputs_get(context, 1, one, None) == 0
            ctypes.memset(one.buf or 0, twice.index(one), one.size)
        assert ctypes.string_at(twice[0].buf or 0, twice[0].size) == bytes(twice[0].size)
        assert rk.rknn_outputs_release(context, 2, twice) == 0

    def test_a_model_of_several_shapes(self, contexts: Callable[..., Any]) -> None:
        context = contexts("shapes")
        attr = attr_of(context, "INPUT")
        assert attr.shape == (1, 6, 10, 3)
        assert rk.rknn_run(context, None) == rk.RKNN_ERR_FAIL
        assert "call rknn_set_input_shapes before" in rk.last_error()
        code = rk.rknn_query(context, rk.RKNN_QUERY_CURRENT_INPUT_ATTR, attr, ctypes.sizeof(attr))
        assert code == rk.RKNN_ERR_FAIL
        ranges = rk.rknn_input_range(index=0)
        assert rk.rknn_query(context, rk.RKNN_QUERY_INPUT_DYNAMIC_RANGE, ranges, ctypes.sizeof(ranges)) == 0
        listed = [tuple(row[: ranges.n_dims]) for row in ranges.dyn_range[: ranges.shape_number]]
        assert listed == [(1, 6, 10, 3), (1, 4, 8, 3)]
        assert ranges.fmt == rk.RKNN_TENSOR_NHWC
        for shape in listed:
            attr.dims[:4] = shape
            assert rk.rknn_set_input_shapes(context, 1, [attr]) == 0, rk.last_error()
            assert attr_of(context, "CURRENT_INPUT").shape == shape
            assert attr_of(context, "CURRENT_NATIVE_OUTPUT").shape == (1, 2, *shape[1:3], 16)
            x = picture(*shape)
            assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
            assert rk.rknn_run(context, None) == 0
            for found, expected in zip(
                outputs(context, np.float32, want_float=True), reference("shapes", x), strict=True
            ):
                np.testing.assert_array_equal(found, expected.reshape(-1))
        attr.dims[2] = 9
        assert rk.rknn_set_input_shapes(context, 1, [attr]) == rk.RKNN_ERR_PARAM_INVALID
        assert rk.rknn_dup_context(context, rk.rknn_context()) == rk.RKNN_ERR_PARAM_INVALID

    @pytest.mark.parametrize("wants", [np.int32, np.int64])
    def test_integers_of_another_width_are_converted_if_they_fit(
        self, dsp_board: Board, tmp_path: Path, wants: Any
    ) -> None:
        del dsp_board
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(wants))
        nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
        path = nets.saved(tmp_path, nodes, {"x": [1, 3]}, ["y", "z"], kind=kind)
        context, data = rk.rknn_context(), exported(path, tmp_path)
        assert rk.rknn_init(context, data, len(data), 0, None) == 0, rk.last_error()
        for dtype, told in ((np.int32, rk.RKNN_TENSOR_INT32), (np.int64, rk.RKNN_TENSOR_INT64)):
            x = np.array([-3, 4, 1 << 29], dtype)
            assert rk.rknn_inputs_set(context, 1, [given(x, told, rk.RKNN_TENSOR_UNDEFINED)]) == 0, rk.last_error()
            assert rk.rknn_run(context, None) == 0, rk.last_error()
            np.testing.assert_array_equal(outputs(context, wants, want_float=False)[0], 2 * x)
        x = np.array([-3, 4, 1 << 40])
        status = rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_INT64, rk.RKNN_TENSOR_UNDEFINED)])
        assert status == (0 if wants is np.int64 else rk.RKNN_ERR_INPUT_INVALID)
        assert status == 0 or "has the values -3 to 1099511627776; the model takes int32." in rk.last_error()
        real = given(x.astype(np.float32), rk.RKNN_TENSOR_FLOAT32, rk.RKNN_TENSOR_UNDEFINED)
        assert rk.rknn_inputs_set(context, 1, [real]) == rk.RKNN_ERR_INPUT_INVALID
        assert rk.rknn_destroy(context) == 0

    def test_what_has_no_effect_is_said_once(
        self, contexts: Callable[..., Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        functions.warn_once.cache_clear()
        flags = rk.RKNN_FLAG_FENCE_OUT_OUTSIDE | rk.RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU
        x = picture()
        for _ in range(2):
            context = contexts("int8", flags)
            assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
            assert rk.rknn_run(context, rk.rknn_run_extend(timeout_ms=5)) == 0
            product, info = rk.rknn_context(), rk.rknn_matmul_info(M=1, K=32, N=32, type=1, iommu_domain_id=1)
            assert rk.rknn_matmul_create(product, info, rk.rknn_matmul_io_attr()) == 0, rk.last_error()
            assert rk.rknn_matmul_destroy(product) == 0
        assert [line.split(" has no effect")[0] for line in capsys.readouterr().err.splitlines()] == [
            "W rknn_init: RKNN_FLAG_FENCE_OUT_OUTSIDE",
            "W rknn_init: RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU",
            "W rknn_run: timeout_ms",
            "W rknn_matmul_create: iommu_domain_id",
        ]

    def test_cores_for_a_batch_that_a_model_has_not(
        self, contexts: Callable[..., Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        for kind, warning in (("batch", ""), ("int8", "W rknn_set_batch_core_num: core_num 2 has no effect: ")):
            assert rk.rknn_set_batch_core_num(contexts(kind), 2) == 0
            told = capsys.readouterr().err
            assert warning in told if warning else "no effect" not in told

    def test_a_batch_on_several_cores(self, contexts: Callable[..., Any]) -> None:
        context, x = contexts("batch"), picture(3, 6, 10, 3)
        assert attr_of(context, "INPUT").shape == (3, 6, 10, 3)
        assert rk.rknn_set_core_mask(context, rk.RKNN_NPU_CORE_ALL) == 0
        for cores in (1, 2, 3):
            assert rk.rknn_set_batch_core_num(context, cores) == 0
            assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
            assert rk.rknn_run(context, None) == 0
            found = outputs(context, np.float32, want_float=True)[0].reshape(3, -1)
            for image, one in zip(x, found, strict=True):
                np.testing.assert_array_equal(one, reference("batch", image[None])[0].reshape(-1))


class TestZeroCopy:
    @pytest.mark.parametrize("kind", ["int8", "float16"])
    @pytest.mark.parametrize(
        ("dtype", "query", "fmt"),
        [
            ("uint8", "NATIVE_OUTPUT", "NC1HWC2"),
            ("float32", "NATIVE_NHWC_OUTPUT", "NHWC"),
            ("uint8", "OUTPUT", "NCHW"),
        ],
    )
    def test_tensors_lie_in_memory_of_the_board(
        self, contexts: Callable[..., Any], kind: str, dtype: str, query: str, fmt: str
    ) -> None:
        context, x = contexts(kind), picture().astype(dtype)
        into = attr_of(context, "NATIVE_INPUT")
        into.type = rk.RKNN_TENSOR_UINT8 if dtype == "uint8" else rk.RKNN_TENSOR_FLOAT32
        into.size = into.n_elems * x.itemsize
        out = [attr_of(context, query, index) for index in (0, 1)]
        assert out[0].fmt == getattr(rk, f"RKNN_TENSOR_{fmt}")
        out[1].type, out[1].size = rk.RKNN_TENSOR_FLOAT32, out[1].n_elems * 4
        sizes = (6 * into.w_stride * 3 * x.itemsize, out[0].size_with_stride, out[1].size)
        mems = [memory(context, size) for size in sizes]
        for mem, attr in zip(mems, (into, *out), strict=True):
            assert rk.rknn_set_io_mem(context, mem, attr) == 0, rk.last_error()
        wanted = reference(kind, x)
        for _ in range(2):
            mems[0].array(dtype)[:] = with_strides(x, into.w_stride)
            assert rk.rknn_run(context, None) == 0, rk.last_error()
            np.testing.assert_array_equal(mems[2].array(np.float32), wanted[1].reshape(-1))
        stored = mems[1].array(np.int8 if kind == "int8" else np.float16, out[0].shape)
        nchw = (
            from_native(stored, 20) if fmt == "NC1HWC2" else stored if fmt == "NCHW" else stored.transpose(0, 3, 1, 2)
        )
        if kind == "int8":
            np.testing.assert_array_equal((nchw.astype(np.float32) - out[0].zp) * np.float32(out[0].scale), wanted[0])
        else:
            np.testing.assert_array_equal(nchw, wanted[0].astype(np.float16))
        for mem in mems:
            assert rk.rknn_destroy_mem(context, mem) == 0, rk.last_error()
            assert rk.rknn_destroy_mem(context, mem) == rk.RKNN_ERR_PARAM_INVALID
        assert rk.rknn_run(context, None) == rk.RKNN_ERR_FAIL
        assert "has no memory anymore" in rk.last_error()

    def test_the_size_of_an_edited_attribute_may_be_what_the_query_told(self, contexts: Callable[..., Any]) -> None:
        context, x = contexts("float16"), picture()
        into, out = attr_of(context, "NATIVE_INPUT"), [attr_of(context, "NATIVE_OUTPUT", index) for index in (0, 1)]
        into.type = rk.RKNN_TENSOR_UINT8
        out[0].type, out[0].fmt = rk.RKNN_TENSOR_FLOAT32, rk.RKNN_TENSOR_NCHW
        out[1].type = rk.RKNN_TENSOR_FLOAT32
        wanted = reference("float16", x)
        sizes = (6 * into.w_stride * 3, *(one.nbytes for one in wanted))
        mems = [memory(context, size) for size in sizes]
        for mem, attr in zip(mems, (into, *out), strict=True):
            attr.size += 1
            assert rk.rknn_set_io_mem(context, mem, attr) == rk.RKNN_ERR_PARAM_INVALID
            attr.size -= 1
            assert rk.rknn_set_io_mem(context, mem, attr) == 0, rk.last_error()
        mems[0].array(np.uint8)[:] = with_strides(x, into.w_stride)
        assert rk.rknn_run(context, None) == 0, rk.last_error()
        for mem, expected in zip(mems[1:], wanted, strict=True):
            np.testing.assert_array_equal(mem.array(np.float32), expected.reshape(-1))
        assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0, 0]

    @pytest.mark.parametrize(("dtype", "passes"), [("uint8", 0), ("int8", 0), ("int8", 1)])
    def test_an_input_of_many_channels_lies_in_nhwc_unless_it_passes_through(
        self, contexts: Callable[..., Any], dtype: str, passes: int
    ) -> None:
        context, x = contexts("channels"), picture(1, 6, 10, 20)
        into, out = attr_of(context, "NATIVE_INPUT"), [attr_of(context, "OUTPUT", index) for index in (0, 1)]
        assert (into.fmt, into.shape) == (rk.RKNN_TENSOR_NC1HWC2, (1, 2, 6, 10, 16))
        into.type, into.pass_through = getattr(rk, f"RKNN_TENSOR_{dtype.upper()}"), passes
        out[1].type = rk.RKNN_TENSOR_FLOAT32
        mems = [memory(context, size) for size in (into.size_with_stride, out[0].size, 80)]
        for mem, attr in zip(mems, (into, *out), strict=True):
            assert rk.rknn_set_io_mem(context, mem, attr) == 0, rk.last_error()
        stored = np.clip(np.rint((x.astype(np.float32) - 7) / 3 / into.scale) + into.zp, -128, 127).astype(np.int8)
        data = x if dtype == "uint8" else stored
        if passes:
            data = to_native(stored.transpose(0, 3, 1, 2), into.shape)
        mems[0].array(dtype)[: data.size] = data.reshape(-1)
        assert rk.rknn_run(context, None) == 0, rk.last_error()
        np.testing.assert_array_equal(mems[2].array(np.float32), reference("channels", x)[1].reshape(-1))
        assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0, 0]

    @pytest.mark.parametrize("batch", [1, 3])
    def test_what_has_the_graphs_own_form_is_read_and_written_where_it_lies(
        self, contexts: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
    ) -> None:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        weights = np.arange(12, dtype=np.float32).reshape(3, 4)
        path = nets.saved(tmp_path, nodes, {"x": [1, 3]}, ["y"], {"w": weights})
        context, told = rk.rknn_context(), list[accelerator.Request]()
        data = exported(path, tmp_path, rknn_batch_size=batch)
        assert rk.rknn_init(context, data, len(data), 0, None) == 0, rk.last_error()
        pack = accelerator.pack

        def packed(asked: accelerator.Request) -> bytes:
            told.append(asked)
            return pack(asked)

        monkeypatch.setattr(accelerator, "pack", packed)
        into, out = attr_of(context, "INPUT"), attr_of(context, "OUTPUT")
        for attr in (into, out):
            attr.type, attr.size = rk.RKNN_TENSOR_FLOAT32, attr.n_elems * 4
        x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
        mems = [memory(context, x.nbytes), memory(context, batch * 16)]
        both = memory(context, batch * 16)  # input and output of a run at once: the result is copied
        for ends in (mems, [both, both]):
            for mem, attr in zip(ends, (into, out), strict=True):
                assert rk.rknn_set_io_mem(context, mem, attr) == 0, rk.last_error()
            ends[0].array(np.float32)[: x.size] = x.reshape(-1)
            told.clear()
            assert rk.rknn_run(context, None) == 0, rk.last_error()
            np.testing.assert_array_equal(ends[1].array(np.float32, (batch, 4)), x @ weights)
            read = [one.inputs[0].phy_addr for one in told if one.inputs]
            written = [one.outputs[0].phy_addr for one in told if one.inputs]
            assert sorted(read) == [ends[0].phys_addr + 12 * at for at in range(batch)]
            if ends is mems:
                assert sorted(written) == [mems[1].phys_addr + 16 * at for at in range(batch)]
            else:
                assert not set(written) & {both.phys_addr + 16 * at for at in range(batch)}
        assert rk.rknn_destroy(context) == 0
        assert [rk.rknn_destroy_mem(0, mem) for mem in (*mems, both)] == [0, 0, 0]

    def test_memory_of_the_programs_is_wanted_before_a_run(self, contexts: Callable[..., Any]) -> None:
        context, x = contexts("int8", rk.RKNN_FLAG_MEM_ALLOC_OUTSIDE), picture()
        needs = rk.rknn_mem_size()
        assert rk.rknn_query(context, rk.RKNN_QUERY_MEM_SIZE, needs, ctypes.sizeof(needs)) == 0
        assert needs.total_weight_size > 500
        assert needs.total_internal_size % 1024 == 0
        assert (needs.total_sram_size, needs.free_sram_size) == (978944, 978944)
        assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
        small = memory(context, 16)
        mems = [memory(context, max(1, size)) for size in (needs.total_internal_size, needs.total_weight_size)]
        for mem, setter, what in zip(
            mems, (rk.rknn_set_internal_mem, rk.rknn_set_weight_mem), ("internal", "weight"), strict=True
        ):
            assert rk.rknn_run(context, None) == rk.RKNN_ERR_FAIL
            assert f"call rknn_set_{what}_mem" in rk.last_error()
            assert setter(context, small) == rk.RKNN_ERR_PARAM_INVALID
            assert setter(context, mem) == 0
        assert rk.rknn_run(context, None) == 0, rk.last_error()
        assert rk.rknn_set_weight_mem(context, mems[1]) == rk.RKNN_ERR_FAIL
        assert rk.rknn_destroy(context) == 0
        assert [rk.rknn_destroy_mem(0, mem) for mem in (small, *mems)] == [0, 0, 0]

    def test_memory_by_descriptor_and_by_physical_address_is_the_same_memory(
        self, contexts: Callable[..., Any]
    ) -> None:
        context, fd = contexts("int8"), os.memfd_create("camera")
        os.ftruncate(fd, 8192)
        os.pwrite(fd, b"frame", 4096)
        try:
            mem = rk.rknn_create_mem_from_fd(context, fd, None, 4096, 4096)
            assert mem is not None
            assert bytes(mem.array(np.uint8)[:5]) == b"frame"
            same = rk.rknn_create_mem_from_phys(context, mem.phys_addr + 2, None, 3)
            assert same is not None
            assert bytes(same.array(np.uint8)) == b"ame"
            tail = rk.rknn_create_mem_from_fd(context, fd, None, 4089, 4103)
            assert tail is not None
            tail.array(np.uint8)[:] = 7
            assert os.pread(fd, 4096, 4096) == b"frame\0\0" + bytes([7]) * 4089
            assert rk.rknn_create_mem_from_fd(context, fd, None, 4096, 4103) is None
            assert rk.rknn_create_mem_from_fd(context, fd, None, 4096, -1) is None
            assert "must be 0 or more" in rk.last_error()
            assert rk.rknn_create_mem_from_fd(context, 9999, None, 4096, 0) is None
            assert rk.rknn_create_mem_from_fd(context, 1 << 40, None, 4096, 0) is None
            assert rk.rknn_create_mem_from_phys(context, 0x10, None, 4) is None
            assert [rk.rknn_destroy_mem(context, one) for one in (same, tail, mem)] == [0, 0, 0]
            assert os.pread(fd, 5, 4096) == b"frame"
        finally:
            os.close(fd)

    def test_memory_of_the_board_is_wrapped_by_its_descriptor(self, contexts: Callable[..., Any]) -> None:
        context = contexts("int8")
        first, whole = rk.rknn_create_mem(context, 4096), rk.rknn_create_mem(context, 3 * 4096)
        assert first is not None
        assert whole is not None
        at = os.lseek(whole.fd, 0, os.SEEK_CUR)
        assert (first.offset, whole.offset) == (0, 0)
        assert os.pwrite(whole.fd, b"middle", at + 4096) == 6  # it is a file, of which this is the place
        assert rk.rknn_mem_sync(context, whole, rk.RKNN_MEMORY_SYNC_FROM_DEVICE) == 0
        assert bytes(whole.array(np.uint8)[4096:4102]) == b"middle"
        for virt_addr, offset, phys_addr in (
            (whole.virt_addr, 0, whole.phys_addr),
            (whole.virt_addr, 4096, whole.phys_addr + 4096),
            (ctypes.c_void_p((whole.virt_addr or 0) + 4096), 0, whole.phys_addr + 4096),
            (whole.virt_addr, 1000, whole.phys_addr + 1000),
            (None, 4096, whole.phys_addr + 4096),
            (None, 0, whole.phys_addr),
        ):
            part = rk.rknn_create_mem_from_fd(context, whole.fd, virt_addr, 4096, offset)
            assert part is not None, rk.last_error()
            assert (part.phys_addr, part.offset) == (phys_addr, 0)
            assert rk.rknn_destroy_mem(context, part) == 0
        for virt_addr, size, offset, sentence in (
            (whole.virt_addr, 4097, 8192, "4097 bytes from offset 8192 exceed the 12288 bytes of memory from"),
            (whole.virt_addr, 4096, 8193, "4096 bytes from offset 8193 exceed the 12288 bytes of memory from"),
            (None, 4096, 1 << 40, "Invalid physical address"),
            (None, 4096, 1 << 50, "Invalid physical address"),
        ):
            assert rk.rknn_create_mem_from_fd(context, whole.fd, virt_addr, size, offset) is None
            assert sentence in rk.last_error()
        assert [rk.rknn_destroy_mem(context, one) for one in (first, whole)] == [0, 0]


def misuses(context: rk.rknn_context) -> list[tuple[Callable[[], Any], int | None, str]]:
    """What a program does wrong, the code, and part of the message, for a context with nothing set."""
    x, attr, mem = picture(), attr_of(context, "NATIVE_INPUT"), rk.rknn_tensor_mem()
    good = given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)
    data, size = model("int8"), ctypes.sizeof(attr)
    other, p, i = rk.rknn_context(), rk.RKNN_ERR_PARAM_INVALID, rk.RKNN_ERR_INPUT_INVALID

    def cut(start: int, count: int) -> rk.rknn_init_extend:
        return rk.rknn_init_extend(real_model_offset=start, real_model_size=count)

    return [
        (lambda: rk.rknn_init(other, None, 0, 0, None), p, "model is NULL"),
        (lambda: rk.rknn_init(other, data, len(data), 0x10000, cut(-1, 5)), p, "real_model_offset -1 and"),
        (lambda: rk.rknn_init(other, data, len(data), 0x10000, cut(1, len(data))), p, "real_model_offset 1 and"),
        (lambda: rk.rknn_init(other, data, len(data) + 1, 0, None), p, "but model has"),
        (lambda: rk.rknn_init(other, data, -1, 0, None), p, "Invalid size -1"),
        (lambda: rk.rknn_init(other, data, len(data), 1 << 30, None), p, "is not a flag of rknn_init"),
        (lambda: rk.rknn_init(other, data[:-200], len(data) - 200, 0, None), rk.RKNN_ERR_MODEL_INVALID, "truncated"),
        (lambda: rk.rknn_init(other, b"RKNN" * 9, 36, 0, None), rk.RKNN_ERR_MODEL_INVALID, "is for a board"),
        (lambda: rk.rknn_init(other, "none.rknn", 0, 0, None), rk.RKNN_ERR_MODEL_INVALID, "none.rknn cannot be read"),
        (lambda: rk.rknn_init(other, b"\xff.rknn", 0, 0, None), rk.RKNN_ERR_MODEL_INVALID, "cannot be read"),
        (lambda: rk.rknn_init(other, "a\0b", 0, 0, None), p, "has no NUL"),
        (lambda: rk.rknn_init(other, 3, 0, 0, None), p, "model is int; give the path"),
        (lambda: rk.rknn_init(other, b"", 0, 0, None), p, "model is ''; give the path"),
        (lambda: rk.rknn_init(3, data, len(data), 0, None), p, "context is int"),
        (lambda: rk.rknn_init(other, data, len(data), 0x20, None), rk.RKNN_ERR_CTX_INVALID, "The context 0x0"),
        (lambda: rk.rknn_destroy(rk.rknn_context()), rk.RKNN_ERR_CTX_INVALID, "rknn_init has not filled it"),
        (lambda: rk.rknn_run(rk.rknn_context(77), None), rk.RKNN_ERR_CTX_INVALID, "is not from rknn_init"),
        (lambda: rk.rknn_query(context, 99, attr, size), p, "Invalid cmd 99"),
        (lambda: rk.rknn_query(context, 1, attr, size - 4), p, "which has 376 bytes"),
        (lambda: rk.rknn_query(context, 1, None, size), p, "info is NULL"),
        (lambda: rk.rknn_query(context, 1, rk.rknn_tensor_attr(index=7), size), p, "inputs 0 to 0"),
        (lambda: rk.rknn_query(context, 4, rk.rknn_perf_run(), 8), rk.RKNN_ERR_FAIL, "has not run yet"),
        (lambda: rk.rknn_query(context, 3, rk.rknn_perf_detail(), 16), rk.RKNN_ERR_FAIL, "COLLECT_PERF_MASK"),
        (lambda: rk.rknn_query(context, 13, rk.rknn_input_range(), 33040), p, "without dynamic_input"),
        (lambda: rk.rknn_wait(context, None), rk.RKNN_ERR_TARGET_PLATFORM_UNMATCH, "rk3588 has no rknn_wait"),
        (lambda: rk.rknn_set_input_shape(context, attr), rk.RKNN_ERR_FAIL, "call rknn_set_input_shapes"),
        (lambda: rk.rknn_set_core_mask(context, 5), p, "core_mask is 0x5"),
        (lambda: rk.rknn_set_batch_core_num(context, 4), p, "1 to 3 cores"),
        (lambda: rk.rknn_create_mem(context, 0), None, "must be 1 to"),
        (lambda: rk.rknn_create_mem2(context, 8, 3), None, "Invalid allocation flags 0x3"),
        (lambda: rk.rknn_destroy_mem(context, mem), p, "has no memory"),
        (lambda: rk.rknn_mem_sync(context, mem, 1), p, "has no memory"),
        (lambda: rk.rknn_set_io_mem(context, mem, attr), p, "has no memory"),
        (lambda: rk.rknn_set_internal_mem(context, mem), p, "has no memory"),
        (lambda: rk.rknn_inputs_set(context, 1, [good, good][:0]), p, "has 0"),
        (lambda: rk.rknn_inputs_set(context, 2, [good, good]), i, "n_inputs is 2; the model has the inputs 0 to 0"),
        (lambda: rk.rknn_inputs_set(context, 1, [rk.rknn_input(index=4)]), i, "index 4 is out of range"),
        (lambda: rk.rknn_inputs_set(context, 1, [given(x, 11, 1)]), i, "type 11"),
        (lambda: rk.rknn_inputs_set(context, 1, [given(x, 3, 2)]), i, "fmt 2"),
        (lambda: rk.rknn_inputs_set(context, 1, [given(x[:, :5], 3, 1)]), i, "has 150 bytes; uint8 NHWC of [1, 6, "),
        (lambda: rk.rknn_inputs_set(context, 1, [rk.rknn_input(size=180, type=3, fmt=1)]), i, "is NULL"),
        (lambda: rk.rknn_run(context, None), rk.RKNN_ERR_FAIL, "The input 'x' was not set"),
        (lambda: rk.rknn_outputs_get(context, 1, [rk.rknn_output()], None), rk.RKNN_ERR_FAIL, "call rknn_run after"),
        (lambda: rk.rknn_outputs_release(context, 1, [rk.rknn_output(buf=64)]), rk.RKNN_ERR_OUTPUT_INVALID, "0x40"),
    ]  # fmt: skip


def test_each_misuse_has_its_code_and_a_sentence(
    contexts: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    context = contexts("int8")
    for call, code, sentence in misuses(context):
        capsys.readouterr()
        assert call() == code, sentence
        assert sentence in rk.last_error()
        said = capsys.readouterr().err
        assert said.startswith("E rknn_")
        assert sentence in said


def test_wrong_attributes_and_the_two_apis_mixed(contexts: Callable[..., Any]) -> None:
    context, x = contexts("int8"), picture()
    mem = memory(context, 288)

    def bound(**edits: Any) -> str:
        attr = attr_of(context, "NATIVE_INPUT")
        attr.type = rk.RKNN_TENSOR_UINT8
        for name, value in edits.items():
            setattr(attr, name, value)
        code = rk.rknn_set_io_mem(context, mem, attr)
        assert code in {0, rk.RKNN_ERR_PARAM_INVALID}
        return rk.last_error() if code else ""

    assert "it may be int8 or uint8 or float32" in bound(type=rk.RKNN_TENSOR_INT64)
    assert "must be NHWC on this chip" in bound(fmt=rk.RKNN_TENSOR_NC1HWC2)
    assert "size of 'x' is 4; [1, 6, 10, 3] of float32 has 720" in bound(type=rk.RKNN_TENSOR_FLOAT32, size=4)
    assert "less than its 10 columns" in bound(w_stride=9)
    assert "has 288 bytes, but 'x' needs 336" in bound(h_stride=7)
    assert "which is not a tensor of the model" in bound(name=b"q")
    flat = attr_of(context, "OUTPUT", 1)
    assert flat.shape == (1, 20)
    flat.fmt, flat.type, flat.size = rk.RKNN_TENSOR_NCHW, rk.RKNN_TENSOR_FLOAT32, 80  # as the guide's 5.4.4.2
    assert rk.rknn_set_io_mem(context, mem, flat) == 0, rk.last_error()
    flat.fmt = rk.RKNN_TENSOR_NHWC
    assert rk.rknn_set_io_mem(context, mem, flat) == rk.RKNN_ERR_PARAM_INVALID
    assert bound() == ""
    assert rk.rknn_run(context, None) == rk.RKNN_ERR_FAIL
    assert "'y' has no memory: call rknn_set_io_mem" in rk.last_error()
    one = given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)
    assert rk.rknn_inputs_set(context, 1, [one]) == rk.RKNN_ERR_FAIL
    assert "cannot be mixed with" in rk.last_error()
    twin = rk.rknn_context()
    assert rk.rknn_dup_context(context, twin) == 0
    assert rk.rknn_destroy(context) == 0  # the model stays for the other
    assert rk.rknn_inputs_set(twin, 1, [one]) == 0
    assert rk.rknn_set_io_mem(twin, mem, attr_of(twin, "NATIVE_INPUT")) == rk.RKNN_ERR_FAIL
    assert rk.rknn_run(twin, None) == 0
    assert rk.rknn_destroy(twin) == 0
    assert rk.rknn_destroy_mem(None, mem) == 0


def test_a_model_is_asked_about_alone_or_borrows_weights(contexts: Callable[..., Any]) -> None:
    asked = contexts("int8", rk.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY)
    text = rk.rknn_custom_string()
    assert rk.rknn_query(asked, rk.RKNN_QUERY_CUSTOM_STRING, text, ctypes.sizeof(text)) == 0
    assert text.string == b"of a test"
    assert rk.rknn_run(asked, None) == rk.RKNN_ERR_FAIL
    assert "it cannot run the model" in rk.last_error()
    owner, x = contexts("int8"), picture()
    whole = Container.from_bytes(model("int8"))
    light = without_weights(Container(replace(whole.metadata, remove_weight=True), whole.sections))
    data = light.to_bytes()
    borrower = rk.rknn_context()
    assert rk.rknn_init(borrower, data, len(data), 0, None) == rk.RKNN_ERR_MODEL_INVALID
    assert "pass RKNN_FLAG_SHARE_WEIGHT_MEM" in rk.last_error()
    extend = rk.rknn_init_extend(ctx=owner.value)
    assert rk.rknn_init(borrower, data, len(data), rk.RKNN_FLAG_SHARE_WEIGHT_MEM, extend) == 0, rk.last_error()
    assert rk.rknn_inputs_set(borrower, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
    assert rk.rknn_run(borrower, None) == 0
    np.testing.assert_array_equal(
        outputs(borrower, np.float32, want_float=True)[0], reference("int8", x)[0].reshape(-1)
    )
    assert rk.rknn_destroy(borrower) == 0


def test_functions_of_other_chips_are_refused(dsp_board_factory: Factory) -> None:
    with dsp_board_factory(profile="rv1106"):
        data = model("int8")
        context = rk.rknn_context()
        assert rk.rknn_init(context, data, len(data), 0, None) == rk.RKNN_ERR_TARGET_PLATFORM_UNMATCH
        assert "convert it with target_platform='rv1106'" in rk.last_error()
        context, attr, x = init("int8", platform="rv1106"), rk.rknn_tensor_attr(), picture()
        calls: list[Callable[[], int]] = [
            lambda: rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]),
            lambda: rk.rknn_set_core_mask(context, rk.RKNN_NPU_CORE_0),
            lambda: rk.rknn_dup_context(context, rk.rknn_context()),
            lambda: rk.rknn_query(context, rk.RKNN_QUERY_PERF_RUN, rk.rknn_perf_run(), 8),
        ]
        for call in calls:
            assert call() == rk.RKNN_ERR_TARGET_PLATFORM_UNMATCH
            assert "rv1106 has no " in rk.last_error()
        assert rk.rknn_query(context, rk.RKNN_QUERY_NATIVE_INPUT_ATTR, attr, ctypes.sizeof(attr)) == 0
        out = attr_of(context, "OUTPUT")
        out.type = rk.RKNN_TENSOR_FLOAT32
        mem = memory(context, 4 * out.size_with_stride)
        assert rk.rknn_set_io_mem(context, mem, out) == rk.RKNN_ERR_PARAM_INVALID
        assert "it may be int8 or float16 here" in rk.last_error()
        assert rk.rknn_destroy_mem(context, mem) == 0
        assert rk.rknn_destroy(context) == 0
    with dsp_board_factory(profile="j5", cores=1):
        data = model("int8")
        assert rk.rknn_init(rk.rknn_context(), data, len(data), 0, None) == rk.RKNN_ERR_DEVICE_UNAVAILABLE
        assert "has the profile j5 without an NPU" in rk.last_error()


@pytest.mark.parametrize("is_left_to_the_program", [False, True])
def test_what_the_cache_hides_without_a_sync(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch, *, is_left_to_the_program: bool
) -> None:
    del dsp_board
    flags = rk.RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE | rk.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE
    context = init("int8", flags if is_left_to_the_program else 0)
    here = runtime_module.existing(context.value)
    monkeypatch.setattr(here.session.blocks, "is_strict", True)
    into, out = attr_of(context, "NATIVE_INPUT"), [attr_of(context, "OUTPUT", index) for index in (0, 1)]
    into.type = rk.RKNN_TENSOR_UINT8
    mems = [memory(context, attr.size_with_stride) for attr in (into, *out)]
    for mem, attr in zip(mems, (into, *out), strict=True):
        assert rk.rknn_set_io_mem(context, mem, attr) == 0, rk.last_error()
    source, target = mems[0], mems[1]
    x = picture()
    target.array(np.int8)[:] = 77
    source.array(np.uint8)[:] = with_strides(x, into.w_stride)
    assert rk.rknn_run(context, None) == 0
    wanted = np.rint(reference("int8", x)[0] / out[0].scale + out[0].zp).astype(np.int8).reshape(-1)
    if is_left_to_the_program:
        assert set(target.array(np.int8)) == {77}
        assert rk.rknn_mem_sync(context, source, rk.RKNN_MEMORY_SYNC_TO_DEVICE) == 0
        assert rk.rknn_run(context, None) == 0
        assert rk.rknn_mem_sync(context, target, rk.RKNN_MEMORY_SYNC_FROM_DEVICE) == 0
        assert rk.rknn_mem_sync(context, target, 4) == rk.RKNN_ERR_PARAM_INVALID
    np.testing.assert_array_equal(target.array(np.int8), wanted)
    assert rk.rknn_destroy(context) == 0
    assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0, 0]


def test_a_context_has_pages_of_sram_until_it_ends(
    contexts: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RKNN_LOG_LEVEL", "3")
    plain, needs = contexts("int8"), rk.rknn_mem_size()
    size = ctypes.sizeof(needs)
    assert "SRAM Size: 0, Addr: [0xff001000, 0xff001000)" in capsys.readouterr().err
    context = contexts("int8", rk.RKNN_FLAG_ENABLE_SRAM)
    said = capsys.readouterr().err
    assert rk.rknn_query(plain, rk.RKNN_QUERY_MEM_SIZE, needs, size) == 0
    pages = -(-needs.total_internal_size // 4096)
    assert pages
    assert (needs.total_sram_size, needs.free_sram_size) == (978944, 978944 - pages * 4096)
    assert f"Total Internal Memory Size: {needs.total_internal_size}" in said
    assert rk.hbrt_rknn_sram().count("*") == pages + 1  # one is of its head
    assert rk.rknn_destroy(context) == 0
    assert rk.hbrt_rknn_sram().endswith("used: 0, free: 978944")


def test_programs_of_a_board_share_its_sram(contexts: Callable[..., Any], dsp_board: Board) -> None:
    context, needs = contexts("int8", rk.RKNN_FLAG_ENABLE_SRAM), rk.rknn_mem_size()
    here = runtime_module.existing(context.value)
    other = Session(dsp_board.session.link.paths)
    try:
        mine = here.sram()
        assert other.link.request("sram", do="take", start=mine[0].start, size=4096) == [[*mine[0]]]
        assert here.sram() == mine  # it is taken
        other.link.request("sram", do="take", start=mine[0].end, size=4096)
        other.link.request("sram", do="take", start=978944, size=4096)  # there is no such page
        assert rk.rknn_query(context, rk.RKNN_QUERY_MEM_SIZE, needs, ctypes.sizeof(needs)) == 0
        assert needs.free_sram_size == 978944 - mine[0].size_bytes - 4096
    finally:
        other.link.close()
    until(lambda: here.sram() == mine, "the pages of a program that has ended")


def test_layers_are_modeled_and_the_run_is_measured(
    contexts: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RKNN_LOG_LEVEL", "4")
    context, x, detail = contexts("int8", rk.RKNN_FLAG_COLLECT_PERF_MASK), picture(), rk.rknn_perf_detail()
    table = capsys.readouterr().err
    table = table[table.index("Network Layer Information Table") :]
    assert "Modeled, not measured" in table
    assert [line.split()[1] for line in table.splitlines()[3:5]] == ["InputOperator", "ConvRelu"]
    assert "100.0%/0.0%/0.0%" in table
    assert rk.rknn_query(context, rk.RKNN_QUERY_PERF_DETAIL, detail, 16) == rk.RKNN_ERR_FAIL
    assert rk.rknn_set_core_mask(context, rk.RKNN_NPU_CORE_0_1) == 0
    assert rk.rknn_inputs_set(context, 1, [given(x, rk.RKNN_TENSOR_UINT8, rk.RKNN_TENSOR_NHWC)]) == 0
    assert rk.rknn_run(context, None) == 0
    assert rk.rknn_query(context, rk.RKNN_QUERY_PERF_DETAIL, detail, 16) == 0
    text = ctypes.string_at(detail.perf_data or 0, detail.data_len).decode()
    assert text.startswith(table.rstrip())  # the mask leaves so small a layer on one core
    modeled, _, measured = text.partition("\n\nMeasured on this machine")
    assert "Total Operator Elapsed Time(us), modeled: " in modeled
    assert measured.endswith(" µs per run.\n")


def test_a_board_that_dies_and_a_fork_take_their_contexts_with_them(dsp_board_factory: Factory) -> None:
    with dsp_board_factory(profile="rk3588", fresh=True) as board:
        context, gone = init("int8"), rk.RKNN_ERR_CTX_INVALID
        child = os.fork()
        if not child:
            os._exit(rk.rknn_run(context, None) != gone)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        daemon = board.session.link.daemon_pid
        os.kill(daemon, signal.SIGKILL)
        while board.session.is_usable:
            time.sleep(0.01)
        assert (rk.rknn_run(context, None), rk.rknn_create_mem(context, 64)) == (gone, None)
        assert "its board is gone" in rk.last_error()


def test_codes_are_those_of_the_profiles() -> None:
    assert find("rk3588").codes == {name: int(one) for name, one in RknnStatus.__members__.items()}
