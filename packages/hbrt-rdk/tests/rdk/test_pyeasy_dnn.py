"""Programs of RDK boards import their modules by name."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from arm_client.client import Board

DIGITS = Path(__file__).resolve().parents[4] / "samples" / "dnn"


@pytest.mark.parametrize("name", ["hobot_dnn", "hobot_dnn_rdkx5"])
def test_a_program_of_the_board_runs(dsp_board: Board, name: str) -> None:
    dnn = importlib.import_module(f"{name}.pyeasy_dnn")
    models = dnn.load(str(DIGITS / "digits_int8.onnx"))
    properties = models[0].inputs[0].properties
    assert (properties.tensor_type, properties.layout, properties.shape) == ("int8", "NCHW", (1, 1, 8, 8))
    image = np.load(DIGITS / "digits_test.npz")["images"][0] / 16
    outputs = models[0].forward(models[0].inputs[0].quantize(image[None, None]))
    assert outputs[0].buffer.argmax() == 1
    assert outputs[0].properties.scale_data.shape == (1,)
