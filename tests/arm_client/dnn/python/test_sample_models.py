"""The committed models of the DNN samples are good; the test of ``hbrt run dnn`` builds the other one."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

MODELS = Path(__file__).resolve().parents[4] / "samples" / "dnn"


@pytest.fixture(scope="module")
def trainer() -> dict[str, Any]:
    return runpy.run_path(str(MODELS / "train_digits.py"))


def test_the_committed_digits_are_the_test_split(trainer: dict[str, Any]) -> None:
    # Here, because every test process loads this file, and the two take nearly a second.
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    gray, labels = load_digits(return_X_y=True)
    _, images, _, answers = train_test_split(
        gray.reshape(-1, 8, 8), labels, test_size=0.2, random_state=trainer["SEED"], stratify=labels
    )
    held = np.load(MODELS / "digits_test.npz")
    np.testing.assert_array_equal(held["images"], images)
    np.testing.assert_array_equal(held["labels"], answers)


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_the_committed_nets_know_digits(name: str) -> None:
    held = np.load(MODELS / "digits_test.npz")
    session = onnxruntime.InferenceSession(MODELS / f"{name}.onnx")
    images = (held["images"] / 16).astype(np.float32)
    found = [session.run(None, {"image": image[None, None]})[0].argmax() for image in images]
    assert (np.array(found) == held["labels"]).mean() > 0.98


def test_the_gradients_are_the_slopes_of_the_loss(trainer: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    weights = {name: value.astype(np.float64) for name, value in trainer["initial"](rng).items()}
    x, labels = rng.uniform(0, 1, (4, 1, 8, 8)), np.array([3, 1, 4, 1])

    def loss() -> float:
        logits = trainer["forward"](weights, x)[0]
        highest = logits.max(1, keepdims=True)
        log_sum = np.log(np.exp(logits - highest).sum(1)) + highest[:, 0]
        return float((log_sum - logits[np.arange(4), labels]).mean())

    for name, gradient in trainer["gradients"](weights, x, labels).items():
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        kept = weights[name][place]
        losses = []
        for step in (1e-6, -1e-6):
            weights[name][place] = kept + step
            losses.append(loss())
        weights[name][place] = kept
        assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(gradient[place], rel=1e-4), name


def test_the_committed_float_net_is_what_the_trainer_writes(trainer: dict[str, Any]) -> None:
    model = onnx.load(MODELS / "digits_float.onnx")
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert trainer["to_onnx"](weights) == model
