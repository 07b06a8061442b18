"""The models of the DNN samples: what is committed is good, what is built at run time is sane."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

MODELS = Path(__file__).resolve().parents[4] / "samples" / "dnn"


@pytest.fixture(scope="module")
def trainer() -> dict[str, Any]:
    return runpy.run_path(str(MODELS / "train_digits.py"))


@pytest.fixture(scope="module")
def builder() -> dict[str, Any]:
    return runpy.run_path(str(MODELS / "build_mobilenet.py"))


@pytest.fixture(scope="module")
def mobilenet(builder: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = builder["build"](tmp_path_factory.mktemp("mobilenet"))
    return file


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


def test_mobilenet_is_as_large_as_the_paper_says(mobilenet: Path) -> None:
    model = onnx.load(mobilenet)
    parameters = sum(numpy_helper.to_array(tensor).size for tensor in model.graph.initializer)
    assert parameters == pytest.approx(4.2e6, rel=0.02)
    assert [node.op_type for node in model.graph.node].count("Conv") == 27


def test_mobilenet_tells_pictures_apart(builder: dict[str, Any], mobilenet: Path) -> None:
    session = onnxruntime.InferenceSession(mobilenet)
    rng = np.random.default_rng(9)
    tops: set[tuple[int, ...]] = set()
    for _ in range(4):
        picture: NDArray[np.uint8] = builder["scene"](rng)
        x = (picture.transpose(2, 0, 1)[None] - np.reshape(builder["MEAN"], (3, 1, 1))) * builder["SCALE"]
        (prob,) = session.run(None, {"data": x.astype(np.float32)})
        assert prob.sum() == pytest.approx(1, abs=1e-4)
        assert 0.002 < prob.max() < 0.99  # neither all alike nor one alone
        tops.add(tuple(prob[0].argsort()[::-1][:5]))
    assert len(tops) == 4
