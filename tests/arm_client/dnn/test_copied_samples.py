"""The model samples copied alone: each names the file that it misses, and takes another one."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from arm_client.client import Board

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def copied(name: str, directory: Path) -> dict[str, Any]:
    directory.mkdir(parents=True, exist_ok=True)
    return runpy.run_path(str(shutil.copy(SAMPLES / "arm" / "dnn" / f"{name}.py", str(directory))))


@pytest.mark.parametrize(
    ("name", "missing", "how"),
    [
        ("digits", "dnn/digits_test.npz", "name the directory of it, as in python digits.py DIRECTORY."),
        ("custom_layer", "image dsp/layer_image.py", "name one, as in python custom_layer.py IMAGE."),
        ("mobilenetv1", "picture arm/cv/data/input.png", "name one, as in python mobilenetv1.py MODEL PICTURE."),
    ],
)
def test_what_it_misses(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    missing: str,
    how: str,
) -> None:
    *what, file = missing.split()
    program = copied(name, tmp_path / "arm" / "dnn")
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    assert program["main"]() == 1
    words = " ".join([*what, str(tmp_path / file)])
    assert capsys.readouterr() == ("", f"{name}: There is no {words}: {how}\n")


def test_without_the_builder_a_model_has_to_be_named(tmp_path: Path) -> None:
    picture = str(tmp_path / "red.png")
    assert cv2.imwrite(picture, np.zeros((8, 8, 3), np.uint8))
    missing = tmp_path / "dnn" / "build_mobilenet.py"
    with pytest.raises(RuntimeError, match=f"There is no {missing}, which builds the model: name one"):
        copied("mobilenetv1", tmp_path / "arm" / "dnn")["run"](None, picture)


def test_the_data_may_lie_elsewhere(dsp_board: Board, tmp_path: Path) -> None:
    assert copied("digits", tmp_path)["run"](str(SAMPLES / "dnn"))["passed"]
    assert copied("custom_layer", tmp_path)["run"](dsp_image=str(SAMPLES / "dsp" / "layer_image.py"))["passed"]
