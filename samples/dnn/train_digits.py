"""Train the digit classifier of `hbrt run dnn digits`, and quantize it to int8.

    python train_digits.py [DIRECTORY]

The images are scikit-learn's 1797 handwritten digits of 8 x 8 pixels, gray 0 to 16: four fifths train the network, one
fifth is the test split. It takes some seconds on one CPU, and the same machine produces the same files each time. It
needs scikit-learn, onnx and onnxruntime.

The files are written next to this script, or into DIRECTORY:

* digits_float.onnx: `image` float32 (1, 1, 8, 8), gray / 16, to `logits` float32 (1, 10).
* digits_int8.onnx: the same network with 8-bit weights and activations as QuantizeLinear / DequantizeLinear pairs. The
  runtime turns the pairs at its ends into the tensors' own types: `image` and `logits` are S8 there.
* digits_test.npz: `images` uint8 (360, 8, 8) and `labels` uint8 (360,) of the test split.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 5
EPOCHS, BATCH, RATE = 30, 64, 2e-3
OPSET = 17
Floats = NDArray[np.float32]
Weights = dict[str, Floats]


def main() -> int:
    """Write the three files and print the accuracy of the networks."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    gray, labels = load_digits(return_X_y=True)
    images = (gray.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.2, random_state=SEED, stratify=labels
    )
    weights = train(train_x, train_y)
    print(
        f"trained on {len(train_x)} images, {accuracy(weights, test_x, test_y):.2%} of {len(test_x)} others are right"
    )

    directory.mkdir(parents=True, exist_ok=True)
    model = to_onnx(weights)
    onnx.save(model, directory / "digits_float.onnx")
    quantize(directory / "digits_float.onnx", directory / "digits_int8.onnx", train_x[:256])
    gray_test = np.rint(test_x[:, 0] * 16).astype(np.uint8)
    np.savez_compressed(directory / "digits_test.npz", images=gray_test, labels=test_y.astype(np.uint8))
    for name in ("digits_float.onnx", "digits_int8.onnx", "digits_test.npz"):
        print(f"{directory / name}: {(directory / name).stat().st_size / 1024:.0f} KiB")
    return 0


def initial(rng: np.random.Generator) -> Weights:
    """He initialization: two 3 x 3 convolutions, two dense layers."""

    def normal(*shape: int, inputs: int) -> Floats:
        return rng.normal(0, (2 / inputs) ** 0.5, shape).astype(np.float32)

    return {
        "conv1_w": normal(16, 1, 3, 3, inputs=9),
        "conv1_b": np.zeros(16, np.float32),
        "conv2_w": normal(32, 16, 3, 3, inputs=144),
        "conv2_b": np.zeros(32, np.float32),
        "dense1_w": normal(512, 32, inputs=512),
        "dense1_b": np.zeros(32, np.float32),
        "dense2_w": normal(32, 10, inputs=32),
        "dense2_b": np.zeros(10, np.float32),
    }


def train(images: Floats, labels: NDArray[np.int64]) -> Weights:
    """Adam on the cross entropy, with cosine decay of the rate to 0."""
    rng = np.random.default_rng(SEED)
    weights = initial(rng)
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    steps = EPOCHS * (len(images) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for at in range(0, len(images) - BATCH + 1, BATCH):
            step += 1
            chosen = order[at : at + BATCH]
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for name, gradient in gradients(weights, images[chosen], labels[chosen]).items():
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient**2
                mean, variance = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
                weights[name] = (weights[name] - rate * mean / (np.sqrt(variance) + 1e-8)).astype(np.float32)
    return weights


def columns(x: Floats) -> Floats:
    """(N, H, W, C * 9): the 3 x 3 neighborhood of each pixel of (N, C, H, W), with zeros around the image."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def convolve(cols: Floats, weight: Floats, bias: Floats) -> Floats:
    """(N, O, H, W) from columns and weights (O, C, 3, 3)."""
    out: Floats = (cols @ weight.reshape(len(weight), -1).T + bias).transpose(0, 3, 1, 2)
    return out


def forward(weights: Weights, x: Floats) -> tuple[Floats, dict[str, Any]]:
    """Logits (N, 10), and what the backward pass needs."""
    cols1 = columns(x)
    map1 = np.maximum(convolve(cols1, weights["conv1_w"], weights["conv1_b"]), 0)
    cols2 = columns(map1)
    map2 = np.maximum(convolve(cols2, weights["conv2_w"], weights["conv2_b"]), 0)
    squares = map2.reshape(len(x), 32, 4, 2, 4, 2)
    flat = squares.max((3, 5)).reshape(len(x), 512)
    hidden = np.maximum(flat @ weights["dense1_w"] + weights["dense1_b"], 0)
    logits = hidden @ weights["dense2_w"] + weights["dense2_b"]
    kept = {"cols1": cols1, "map1": map1, "cols2": cols2, "map2": map2, "flat": flat, "hidden": hidden}
    return logits, kept


def gradients(weights: Weights, x: Floats, labels: NDArray[np.int64]) -> Weights:
    """Derivative of the mean cross entropy with respect to each weight."""
    logits, kept = forward(weights, x)
    n = len(x)
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    d_logits = exponentials / exponentials.sum(1, keepdims=True)
    d_logits[np.arange(n), labels] -= 1
    d_logits /= n
    d_hidden = d_logits @ weights["dense2_w"].T * (kept["hidden"] > 0)
    d_flat = d_hidden @ weights["dense1_w"].T
    # Of each 2 x 2 square, only the largest pixel was passed on.
    pooled = kept["flat"].reshape(n, 32, 4, 1, 4, 1)
    winners = kept["map2"].reshape(n, 32, 4, 2, 4, 2) == pooled
    d_map2 = (d_flat.reshape(pooled.shape) * winners).reshape(n, 32, 8, 8) * (kept["map2"] > 0)
    rows2 = d_map2.transpose(0, 2, 3, 1).reshape(-1, 32)
    # The backward pass of a convolution is a convolution with kernels rotated by 180 degrees.
    turned = weights["conv2_w"][:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    d_map1 = convolve(columns(d_map2), turned, np.zeros(16, np.float32)) * (kept["map1"] > 0)
    rows1 = d_map1.transpose(0, 2, 3, 1).reshape(-1, 16)
    return {
        "conv1_w": (rows1.T @ kept["cols1"].reshape(-1, 9)).reshape(16, 1, 3, 3),
        "conv1_b": rows1.sum(0),
        "conv2_w": (rows2.T @ kept["cols2"].reshape(-1, 144)).reshape(32, 16, 3, 3),
        "conv2_b": rows2.sum(0),
        "dense1_w": kept["flat"].T @ d_hidden,
        "dense1_b": d_hidden.sum(0),
        "dense2_w": kept["hidden"].T @ d_logits,
        "dense2_b": d_logits.sum(0),
    }


def accuracy(weights: Weights, images: Floats, labels: NDArray[np.int64]) -> float:
    """Share of the images whose largest logit is the label's."""
    return float((forward(weights, images)[0].argmax(1) == labels).mean())


def to_onnx(weights: Weights) -> onnx.ModelProto:
    """The network as an ONNX graph, for one image at a time."""
    nodes = [
        helper.make_node("Conv", ["image", "conv1_w", "conv1_b"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "conv2_w", "conv2_b"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p2"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "dense1_w", "dense1_b"], ["d1"], "dense1"),
        helper.make_node("Relu", ["d1"], ["r3"], "relu3"),
        helper.make_node("Gemm", ["r3", "dense2_w", "dense2_b"], ["logits"], "dense2"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph, producer_name="train_digits.py", ir_version=8, opset_imports=[helper.make_opsetid("", OPSET)]
    )
    onnx.checker.check_model(model, full_check=True)
    return model


class Calibration(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """Images for calibrating the range of the activations."""

    def __init__(self, images: Floats) -> None:
        self.images: Iterator[dict[str, Floats]] = iter([{"image": image[None]} for image in images])

    def get_next(self) -> dict[str, Floats] | None:
        """The next one; None after the last."""
        return next(self.images, None)


def quantize(source: Path, target: Path, images: Floats) -> None:
    """Write the QDQ model: S8 weights per channel, S8 activations."""
    logging.getLogger().setLevel(logging.ERROR)  # it advises fusing nodes first, but this network has none to fuse
    quantize_static(
        source,
        target,
        Calibration(images),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    onnx.checker.check_model(str(target), full_check=True)


if __name__ == "__main__":
    sys.exit(main())
