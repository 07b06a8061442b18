"""The sample image: softmax in C++ by intrinsics, with every check on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import private_board
from tests.limits import PATIENCE_S
from tests.native.dsp.conftest import WARNINGS, Build
from tests.shared import build_c

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
SAMPLE = SAMPLES / "dsp" / "softmax_image.cc"


@pytest.mark.parametrize("check", [None, "all"])
def test_softmax_of_the_sample_is_that_of_float64(build: Build, check: str | None) -> None:
    with private_board(build(SAMPLE, *WARNINGS), cores=1, check=check) as board:
        assert board.ops()[0x400] == "hb_dsp_softmax"
        for count in (1, 16, 17, 12_288, 12_289, 100_000):
            x = np.random.default_rng(count).standard_normal((2, count)).astype(np.float32) * 8
            power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
            assert np.abs(nn.softmax(board, x) - power / power.sum(1, keepdims=True)).max() < 2e-7, count
        assert not board.status()["findings"]


def test_program_in_c_calls_the_image_in_cpp(build: Build, tmp_path: Path) -> None:
    program = tmp_path / "softmax"
    build_c(SAMPLES / "c" / "softmax.c", "-o", program)
    with private_board(build(SAMPLE, *WARNINGS), cores=1) as board:
        environment = {**os.environ, "HBRT_BOARD": str(board.path)}
        ran = subprocess.run([program], env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        assert board.status()["cores"][0]["tasks"] == 1
    power = np.exp(np.arange(4.0) - 3)
    np.testing.assert_allclose([float(word) for word in ran.stdout.split()], power / power.sum(), atol=2e-7)
