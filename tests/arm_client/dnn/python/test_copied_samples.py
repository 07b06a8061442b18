"""The model samples copied alone: each takes the files that it misses from elsewhere."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from arm_client.client import Board
from arm_client.commands.run.references import verdict_of

SAMPLES = Path(__file__).resolve().parents[4] / "samples"


def copied(name: str, directory: Path) -> dict[str, Any]:
    directory.mkdir(parents=True, exist_ok=True)
    return runpy.run_path(str(shutil.copy(SAMPLES / "arm" / "dnn" / f"{name}.py", str(directory))))


def test_without_the_builder_a_model_has_to_be_named(tmp_path: Path) -> None:
    picture = str(tmp_path / "red.png")
    assert cv2.imwrite(picture, np.zeros((8, 8, 3), np.uint8))
    missing = tmp_path / "dnn" / "build_mobilenet.py"
    with pytest.raises(SystemExit, match=f"{missing}, which builds the model, does not exist: name a model"):
        copied("mobilenetv1", tmp_path / "arm" / "dnn")["main"]("", picture)


def test_the_data_may_lie_elsewhere(dsp_board: Board, tmp_path: Path) -> None:
    for name, where in (("digits", SAMPLES / "dnn"), ("custom_layer", SAMPLES / "dsp" / "layer_image.py")):
        program = copied(name, tmp_path)
        verdict = verdict_of("dnn", name, program["main"](str(where)), SimpleNamespace(**program), {})
        assert verdict is not None
        assert verdict.passed
