"""The NN samples run as written, on the default image and on the sample image with a softmax of its own."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board
from arm_client.errors import OpFailedError
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
COMMANDS = {"softmax": 0x400, "quantize": 0x401, "dequantize": 0x402}
IMAGE = SAMPLES / "dsp" / "nn_image.py"


def sample(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / "arm" / "nn" / f"{name}.py"))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("core", [0, 2])
def test_a_run_is_right_and_says_what_the_runner_shows(dsp_board: Board, name: str, core: int) -> None:
    got = sample(name)["run"](core)
    assert got.pop("host_time_us") > 0
    assert got.pop("max_error") <= 1e-6
    says = {"op": name, "command": COMMANDS[name], "core": core, "status": 0, "passed": True}
    assert got == {**says, "output_file": ""}


@pytest.mark.parametrize(
    ("name", "shape"), [("softmax", (4, 1000)), ("quantize", (1, 3, 224, 224)), ("dequantize", None)]
)
def test_results_are_written(dsp_board: Board, tmp_path: Path, name: str, shape: tuple[int, ...] | None) -> None:
    got = sample(name)["run"](output_dir=str(tmp_path / "new"))
    assert got["output_file"] == str(tmp_path / "new" / f"{name}.npy")
    results = np.load(got["output_file"])
    assert results.shape == (shape or (50_000,))
    assert results.any()
    if name == "softmax":
        np.testing.assert_allclose(results.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", COMMANDS)
def test_main_prints_one_line(
    dsp_board: Board, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    assert sample(name)["main"]() == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert f"command {COMMANDS[name]:#x}, status 0, largest error" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_main_without_a_board(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    monkeypatch.setenv("HBRT_HOME", str(tmp_path))
    monkeypatch.setenv("HBRT_AUTOSTART", "0")
    assert sample(name)["main"]() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{name}: hbSysAllocMem returned {int(Status.HB_SYS_NOT_RUNNING)}: ")


@pytest.mark.parametrize("name", ["softmax", "quantize", "dequantize"])
def test_a_directory_that_cannot_be_is_a_sentence(
    dsp_board: Board, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tmp_path / "file" / "below")])
    assert sample(name)["main"]() == 1
    assert capsys.readouterr() == ("", f"{name}: [Errno 20] Not a directory: '{tmp_path / 'file' / 'below'}'\n")


def test_a_wrong_result_is_a_failure(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    softmax = sample("softmax")
    monkeypatch.setattr(sys, "argv", ["softmax.py"])
    monkeypatch.setitem(softmax["main"].__globals__, "TOLERANCE", -1.0)
    assert softmax["main"]() == 1


@pytest.mark.dsp_board(image=IMAGE)
def test_the_images_own_softmax_answers(dsp_board: Board) -> None:
    ops = {op["cmd"]: op["source"] for op in dsp_board.session.link.request("ops")}
    assert ops[0x400].startswith(f"{IMAGE}:")
    assert ops[0x401].startswith("dsp_server.ops.nn.quantize:")
    assert sample("softmax")["run"]()["passed"]
    for count in (1, 12_799, 12_800, 12_801, 100_000):  # its tiles have 12 800 elements
        values = np.random.default_rng(count).standard_normal(count).astype(np.float32)
        exponentials = np.exp(values.astype(np.float64))
        got = nn.softmax(dsp_board, values)
        np.testing.assert_allclose(got, exponentials / exponentials.sum(), rtol=1e-6)


@pytest.mark.dsp_board(image=IMAGE)
def test_the_images_own_softmax_refuses_a_bad_address(dsp_board: Board) -> None:
    with pytest.raises(OpFailedError) as caught:
        dsp_board.call(HB_DSP_RPC_CMD_NN_SOFTMAX, hbDSPSoftmaxParam(64, 0x1000), dsp_board.empty(16))
    assert caught.value.status == Status.HB_ERR_MMAP_FAILED
    assert dsp_board.call(HB_DSP_RPC_CMD_NN_SOFTMAX, hbDSPSoftmaxParam(0, 0), None) is None
