"""A program's own ops in C: in a program, under the sanitizers too, and in plug-ins; what fails says why."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hbrt.native.files import include_dir
from rknn_api.commands.benchmark import command as benchmark
from rknn_api.lite.rknn_lite import RKNNLite
from rknn_api.run import plugins
from rknn_api.toolkit.rknn import RKNN
from tests.limits import PATIENCE_S
from tests.native.arm.conftest import Compile, compiled  # noqa: F401 - a fixture
from tests.rknn_api import nets
from tests.rknn_api.capi.models import CstScale, model

SANITIZE = ("--sanitize", "address,undefined", "-fno-sanitize-recover=all")
PLUGIN = """
#include "rknn_custom_op.h"
static int compute(rknn_custom_op_context *op, rknn_custom_op_tensor *in, uint32_t n_in, rknn_custom_op_tensor *out,
                   uint32_t n_out) {
  (void)op, (void)n_in, (void)n_out;
  for (uint32_t at = 0; at < in->attr.n_elems; at++)
    ((float *)out->mem.virt_addr)[at] = 3 * ((float *)in->mem.virt_addr)[at];
  return 0;
}
rknn_custom_op *ENTRY(void) {
  static rknn_custom_op op = {.version = 1, .target = RKNN_TARGET_TYPE_CPU, .op_type = TYPE, .compute = compute};
  return &op;
}
"""


@pytest.mark.parametrize("flags", [(), pytest.param(SANITIZE, marks=pytest.mark.long)])
def test_a_program_computes_ops_of_its_own(
    flags: tuple[str, ...],
    compiled: Compile,  # noqa: F811
    tmp_path: Path,
    board_home: Path,
) -> None:
    program, file = compiled(str(Path(__file__).with_name("custom_op.c")), *flags), tmp_path / "op.rknn"
    file.write_bytes(model("op"))
    outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
    answer = subprocess.run(
        [program, file],
        env={**outer, "HBRT_HOME": str(board_home)},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert answer.returncode == 0, answer.stderr
    # Each pixel is the sum of three; (3v * 2.5 + 3) * 2.5 + 4
    assert [float(one) for one in answer.stdout.split()] == [30.25, 49.0, 11.5]
    for sentence in (
        "The model has the custom ops cstScale, for which nothing is registered",
        "op_type is 'cstScales', but the model has no such node; did you mean 'cstScale'?",
        "write the op type without its domain, 'cstScale'.",
        "'cstScale' is already registered",
        "has no compute; set the callback.",
        "has compute_native, which is reserved",
        "is for the GPU; set cl_kernel_name and cl_kernel_source.",
        "op is NULL",
        "init of the op 'cstScale' (node 'scale_1') returned 8.",
        "No GPU is emulated: the callbacks of 'cstScale' run on the CPU",
        "compute of the op 'cstScale' (node 'scale_0') returned -5.",
    ):
        assert sentence in answer.stderr
    assert "destroy of the op" not in answer.stderr


@pytest.mark.dsp_board(profile="rk3588")
@pytest.mark.usefixtures("dsp_board")
def test_plugins_compute_where_a_board_would_and_say_why_they_do_not(
    compiled: Compile,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    source, folder, file = tmp_path / "plugin.c", tmp_path / "plugins", tmp_path / "op.rknn"
    source.write_text(PLUGIN)
    file.write_bytes(model("op"))
    folder.mkdir()
    monkeypatch.setenv("HBRT_RKNN_PLUGINS", str(folder))

    def build(name: str, entry: str, op_type: str) -> Path:
        made = compiled(
            str(source), "-shared", "-fPIC", f"-DENTRY={entry}", f'-DTYPE="{op_type}"', f"-I{include_dir('rknn')}"
        )
        there = folder / f"librkcst_{name}.so"
        there.write_bytes(made.read_bytes())
        return there

    of_arm = bytearray(build("noentry", "get_op", "cstScale").read_bytes())
    of_arm[18:20] = (183).to_bytes(2, "little")
    (folder / "librkcst_arm.so").write_bytes(of_arm)
    (folder / "librkcst_text.so").write_text("no library")
    build("other", plugins.ENTRY, "cstOther")
    (folder / "libcst_scale.so").write_text("another name")
    lite, x = RKNNLite(), np.ones((1, 2, 3, 3), np.float32)
    assert lite.load_rknn(file) == 0
    assert lite.init_runtime() == -1
    for sentence in (
        "The model has the custom ops cstScale, but no plug-in librkcst_NAME.so",
        "librkcst_noentry.so has no function get_rknn_custom_op; in C++ declare it",
        "librkcst_arm.so is built for aarch64, but this machine is",
        "librkcst_text.so is not a shared library",
        "librkcst_other.so: op_type is 'cstOther', but the model has no such node",
    ):
        assert sentence in lite.last_error
    build("scale", plugins.ENTRY, "cstScale")
    assert lite.init_runtime() == 0, lite.last_error
    outputs = lite.inference([x])
    assert outputs is not None
    np.testing.assert_array_equal(outputs[0], np.full((1, 4, 2, 3), 27, np.float32))
    lite.release()
    measured = CliRunner().invoke(benchmark, [str(file), "", "1"])
    assert measured.exit_code == 0, measured.output

    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.reg_custom_op(CstScale()) == 0
    assert rknn.load_onnx(tmp_path_model(tmp_path)) == 0
    assert rknn.build(do_quantization=True, dataset=str(nets.arrays(tmp_path, *([x] * 2)))) == 0
    found = []
    for target in (None, "rk3588"):
        assert rknn.init_runtime(target=target) == 0, rknn.last_error
        answer = rknn.inference([x])
        assert answer is not None
        found.append(float(answer[0].mean()))
    assert found[0] == pytest.approx(10.5, abs=0.1)
    assert found[1] == pytest.approx(9, abs=0.1)
    np.save(tmp_path / "x.npy", x)
    assert rknn.accuracy_analysis([str(tmp_path / "x.npy")], tmp_path / "snapshot", target="rk3588") == 0
    (folder / "librkcst_scale.so").unlink()
    assert rknn.init_runtime(target="rk3588") == 0
    assert "which a board needs: its Python class runs" in capfd.readouterr().err
    rknn.release()


def tmp_path_model(folder: Path) -> str:
    from onnx import helper

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("cstScale", ["c"], ["y"], domain="own", gain=2.5, offsets=[1, 2]),
    ]
    return str(nets.saved(folder, nodes, {"x": [1, 3, 2, 3]}, ["y"], {"w": np.ones((4, 3, 1, 1), np.float32)}))
