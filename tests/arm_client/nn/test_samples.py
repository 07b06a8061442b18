"""The NN samples run as written, on the default image and on the sample image with its own softmax."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board
from arm_client.commands.run.references import CHECKS, verdict_of
from arm_client.commands.run.samples import samples_of
from arm_client.errors import OpFailedError
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX

if TYPE_CHECKING:
    from tests.shared import Shell

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
NAMES = ("softmax", "quantize", "dequantize")
IMAGE = SAMPLES / "dsp" / "nn_image.py"


def sample(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / "arm" / "nn" / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_right_and_written(
    dsp_board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    program = sample(name)
    result = program["main"](str(tmp_path))
    verdict = verdict_of("nn", name, result, SimpleNamespace(**program), {})
    assert verdict is not None
    assert verdict.passed
    assert verdict.max_error <= 1e-6
    assert result.any()
    np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), result)
    assert capsys.readouterr() == (f"Wrote {tmp_path}/{name}.npy\n", "")


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_fails_ends_the_program_with_its_sentence(shell: Shell, name: str) -> None:
    shell.environment["HBRT_AUTOSTART"] = "0"
    said = shell.python(SAMPLES / "arm" / "nn" / f"{name}.py")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith(f"hbSysAllocMem returned {int(Status.HB_SYS_NOT_RUNNING)}: ")
    assert said.stderr.count("\n") == 1


def test_every_sample_has_a_reference() -> None:
    found = {(group, name) for group in ("nn", "dnn", "rknn", "fastrpc") for name in samples_of(group)}
    # A model's answers have no reference, and the other samples of 'asr' are experiments that judge themselves.
    assert found - {("nn", "digits")} == set(CHECKS) - {("asr", "words")}


@pytest.mark.dsp_board(image=IMAGE)
def test_the_images_own_softmax_answers(dsp_board: Board, tmp_path: Path) -> None:
    ops = {op["cmd"]: op["source"] for op in dsp_board.session.link.request("ops")}
    assert ops[0x400].startswith(f"{IMAGE}:")
    assert ops[0x401].startswith("dsp_server.ops.nn.quantize:")
    np.testing.assert_allclose(sample("softmax")["main"](str(tmp_path)).sum(axis=1), 1, atol=1e-5)
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
