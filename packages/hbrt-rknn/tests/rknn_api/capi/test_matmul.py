"""Products of matrices: every type and layout against numpy, and misuse."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rknn_api as rk
from arm_client.client import Board
from rknn_api.capi.matrices import (
    KINDS,
    MAX_K,
    Sizes,
    from_native,
    native_dims,
    packed,
    to_native,
    unpacked,
    wrong_size,
)
from tests.each import each
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import Compile, compiled  # noqa: F401 - a fixture
from tests.rknn_api.capi.test_custom_ops import SANITIZE
from tests.waiting import until

pytestmark = pytest.mark.dsp_board(profile="rk3588")
M, K, N = 5, 64, 128


def drawn(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(shape[0])
    if dtype == "float16":
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(*((-8, 8) if dtype == "int4" else (-128, 128)), shape).astype(np.int8)


@each("number", KINDS)
@each("b_layout, ac_layout", [(0, 0), (1, 1), (2, 0)])
def test_every_type_and_layout_is_numpys_product(dsp_board: Board, number: int, b_layout: int, ac_layout: int) -> None:
    del dsp_board
    kind = KINDS[number]
    context, attrs = rk.rknn_context(), rk.rknn_matmul_io_attr()
    info = rk.rknn_matmul_info(M=M, K=K, N=N, type=number, B_layout=b_layout, AC_layout=ac_layout)
    assert rk.rknn_matmul_create(context, info, attrs) == 0, rk.last_error()
    a, b = drawn(kind.a, M, K), drawn(kind.b, K, N)
    mems = [rk.rknn_create_mem2(0, one.size, 0x20000) for one in (attrs.A, attrs.B, attrs.C)]
    for which, matrix, mem, attr in zip("AB", (a, b), mems, (attrs.A, attrs.B), strict=False):
        dims, there = tuple(attr.dims[: attr.n_dims]), matrix
        if (ac_layout if which == "A" else b_layout) == 1:
            there = to_native(which, matrix, dims)
        elif which == "B" and b_layout == 2:
            there = matrix.T
        raw = packed(np.ascontiguousarray(there), kind.a if which == "A" else kind.b)
        assert mem is not None
        assert len(raw) == attr.size
        mem.array(np.uint8)[:] = raw
    for mem, attr in zip(mems, (attrs.A, attrs.B, attrs.C), strict=True):
        assert rk.rknn_matmul_set_io_mem(context, mem, attr) == 0, rk.last_error()
    scale = np.linspace(0.5, 1.5, N).astype(np.float32)
    if kind.c == "int8" or kind.a != kind.b:
        params = rk.rknn_quant_params(name=b"B", scale=scale.ctypes.data, scale_len=N)
        assert rk.rknn_matmul_set_quant_params(context, params) == 0
    assert rk.rknn_matmul_run(context) == 0, rk.last_error()
    assert mems[2] is not None
    dims = tuple(attrs.C.dims[: attrs.C.n_dims])
    found = unpacked(mems[2].array(np.uint8).data, dims, kind.c)
    if ac_layout == 1:
        assert dims == native_dims("C", kind, (M, K, N), "rk3588")  # type: ignore[arg-type]
        found = from_native("C", found, (M, N))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    if kind.c == "int8":
        np.testing.assert_array_equal(found, np.clip(np.rint(exact * scale), -128, 127))
    elif kind.c in {"int32", "int16"}:
        np.testing.assert_array_equal(found, exact)
    else:
        if kind.c == "bfloat16":
            found = (found.astype(np.uint32) << 16).view(np.float32)
        wanted = exact * (scale if kind.a != kind.b else 1)
        near = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2**-8}[kind.c]
        np.testing.assert_allclose(found, wanted, rtol=near, atol=1e-2)
    assert rk.rknn_matmul_destroy(context) == 0
    assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0, 0]


def test_sizes_are_switched_and_misuse_has_its_code(dsp_board: Board) -> None:
    context, info = rk.rknn_context(), rk.rknn_matmul_info(M=1, K=32, N=32, type=2)
    shapes = [rk.rknn_matmul_shape(M=one, K=32, N=32) for one in (1, 4)]
    attrs = [rk.rknn_matmul_io_attr(), rk.rknn_matmul_io_attr()]
    assert rk.rknn_matmul_create_dynamic_shape(context, info, 2, shapes, attrs) == 0
    assert [one.A.size for one in attrs] == [32, 128]
    small = rk.rknn_create_mem2(0, 32, 0x20000)
    assert rk.rknn_matmul_set_io_mem(context, small, attrs[0].A) == 0
    assert rk.rknn_matmul_run(context) == rk.RKNN_ERR_FAIL
    assert "B has no memory" in rk.last_error()
    assert rk.rknn_matmul_set_dynamic_shape(context, shapes[1]) == 0
    assert rk.rknn_matmul_set_io_mem(context, small, attrs[1].A) == rk.RKNN_ERR_PARAM_INVALID
    assert rk.rknn_matmul_set_dynamic_shape(context, rk.rknn_matmul_shape(M=3, K=32, N=32)) == rk.RKNN_ERR_PARAM_INVALID
    assert rk.rknn_matmul_set_core_mask(context, 8) == rk.RKNN_ERR_PARAM_INVALID
    assert rk.rknn_matmul_set_core_mask(context, rk.RKNN_NPU_CORE_1) == 0
    mems = [rk.rknn_create_mem(context, size) for size in (128, 1024, 512)]
    for mem, attr in zip(mems, (attrs[1].A, attrs[1].B, attrs[1].C), strict=True):
        assert rk.rknn_matmul_set_io_mem(context, mem, attr) == 0
    assert [rk.rknn_matmul_run(context) for _ in range(3)] == [0, 0, 0]
    cores = dsp_board.status()["cores"]
    assert [core["kind"] for core in cores] == ["npu"] * 3
    until(lambda: dsp_board.status()["cores"][1]["tasks"] >= 3, "the core of the mask does not run them")
    assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0, 0]
    assert rk.rknn_matmul_run(context) == rk.RKNN_ERR_FAIL
    b, native = np.arange(1024).astype(np.int8).reshape(32, 32), np.zeros(1024, np.int8)
    assert rk.rknn_B_normal_layout_to_native_layout(b, native, 32, 32, info) == 0
    np.testing.assert_array_equal(native.reshape(32, 32), b.T)
    zeros = np.zeros(32, np.int32)
    for name, code in ((b"A", rk.RKNN_ERR_PARAM_INVALID), (b"B", rk.RKNN_SUCC)):
        params = rk.rknn_quant_params(name=name, zp=zeros.ctypes.data, zp_len=32)
        assert rk.rknn_matmul_set_quant_params(context, params) == code
    for field in ("scale", "zp"):
        params = rk.rknn_quant_params(**{"name": b"B", f"{field}_len": 32})
        assert rk.rknn_matmul_set_quant_params(context, params) == rk.RKNN_ERR_PARAM_INVALID
        assert f"{field} of 'B' is NULL, and {field}_len is 32" in rk.last_error()
    assert rk.rknn_run(context, None) == rk.RKNN_ERR_CTX_INVALID
    assert "is not from rknn_init" in rk.last_error()
    native = np.zeros(64 * 32 // 2, np.uint8)
    of_fours = rk.rknn_matmul_info(M=1, K=32, N=64, type=10)
    fours = drawn("int4", 32, 64)
    assert rk.rknn_B_normal_layout_to_native_layout(packed(fours, "int4"), native, 32, 64, of_fours) == 0
    np.testing.assert_array_equal(unpacked(native.data, (64, 32), "int4"), fours.T)
    native = np.zeros(1024, np.int8)
    misfits: list[tuple[Any, Any, int]] = [
        (b[:3], native, 32),
        (b, bytearray(3), 32),
        (None, native, 32),
        (b, native, 33),
    ]
    for given_b, output, k in misfits:
        assert rk.rknn_B_normal_layout_to_native_layout(given_b, output, k, 32, info) == rk.RKNN_ERR_PARAM_INVALID
    assert rk.rknn_matmul_destroy(context) == 0
    assert rk.rknn_matmul_run(context) == rk.RKNN_ERR_CTX_INVALID
    assert "was destroyed" in rk.last_error()
    assert rk.rknn_create_mem(context, 32) is None
    assert rk.rknn_destroy_mem(0, small) == 0
    for wrong in (
        {"K": 33},
        {"type": 12},
        {"B_layout": 3},
        {"M": 0},
        {"M": 1 << 30},
        {"K": 10272},
        {"B_quant_type": 6},
        {"B_quant_type": 4},
    ):
        given = rk.rknn_matmul_info(**{"M": 1, "K": 32, "N": 32, "type": 2, **wrong})
        assert rk.rknn_matmul_create(context, given, attrs[0]) == rk.RKNN_ERR_PARAM_INVALID


@pytest.mark.long
def test_the_c_names_are_the_same_products(compiled: Compile, board_home: Path) -> None:  # noqa: F811
    program = compiled(str(Path(__file__).with_name("matmul.c")), *SANITIZE)
    outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
    answer = subprocess.run(
        [program],
        env={**outer, "HBRT_HOME": str(board_home)},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (answer.returncode, answer.stdout) == (0, "0\n"), answer.stderr
    assert "M, K and N are 1, 33 and 32: M must be 1 or more, K a multiple of 32 up to 10240, and N" in answer.stderr


def test_a_scale_of_b_for_each_group_of_rows(dsp_board: Board) -> None:
    del dsp_board
    context, attrs = rk.rknn_context(), rk.rknn_matmul_io_attr()
    info = rk.rknn_matmul_info(M=M, K=K, N=N, type=7, B_quant_type=4, group_size=32)
    assert rk.rknn_matmul_create(context, info, attrs) == 0, rk.last_error()
    a, b = drawn("float16", M, K), drawn("int4", K, N)
    mems = [rk.rknn_create_mem(context, one.size) for one in (attrs.A, attrs.B, attrs.C)]
    for mem, raw in zip(mems, (packed(a, "float16"), packed(b, "int4")), strict=False):
        assert mem is not None
        mem.array(np.uint8)[:] = raw
    for mem, attr in zip(mems, (attrs.A, attrs.B, attrs.C), strict=True):
        assert rk.rknn_matmul_set_io_mem(context, mem, attr) == 0
    scale = np.linspace(0.5, 1.5, N * K // 32).astype(np.float32)  # column by column
    params = rk.rknn_quant_params(name=b"B", scale=scale.ctypes.data, scale_len=scale.size)
    assert rk.rknn_matmul_set_quant_params(context, params) == 0, rk.last_error()
    assert rk.rknn_matmul_run(context) == 0, rk.last_error()
    assert mems[2] is not None
    real = b * np.repeat(scale.reshape(N, -1).T, 32, axis=0)
    np.testing.assert_allclose(mems[2].array(np.float32, (M, N)), a.astype(np.float64) @ real, rtol=1e-4, atol=1e-4)
    assert rk.rknn_matmul_destroy(context) == 0
    assert [rk.rknn_destroy_mem(0, mem) for mem in mems] == [0, 0, 0]


@each(
    "chip, number, a, b, multiples",
    [
        ("rk3588", 1, (8, M, 8), (8, 2, 16, 32), (32, 16)),
        ("rk3576", 2, (4, M, 16), (4, 2, 32, 32), (32, 32)),
        ("rk3588", 10, (2, M, 32), (2, 2, 64, 32), (32, 64)),
        ("rk3588", 7, (8, M, 8), (2, 2, 64, 32), (32, 64)),
        ("rk3562", 1, (8, M, 8), (16, 2, 8, 32), (32, 8)),
        ("rk3562", 2, (4, M, 16), (8, 2, 16, 32), (32, 16)),
        ("rk3568", 1, (16, M, 4), (16, 4, 8, 16), (16, 8)),
        ("rk3566", 2, (8, M, 8), (8, 2, 16, 32), (32, 16)),
    ],
)
def test_native_layouts_and_multiples_are_those_of_the_chip(
    chip: str, number: int, a: tuple[int, ...], b: tuple[int, ...], multiples: tuple[int, int]
) -> None:
    kind, sizes = KINDS[number], Sizes(M, K, N)
    assert native_dims("A", kind, sizes, chip) == a
    assert native_dims("B", kind, sizes, chip) == b
    k, n = multiples
    assert not wrong_size(kind, Sizes(1, k, n), chip)
    for wrong in (Sizes(1, k // 2, n), Sizes(1, k, n // 2), Sizes(1, MAX_K + k, n), Sizes(0, k, n)):
        assert "K a multiple of" in wrong_size(kind, wrong, chip)
