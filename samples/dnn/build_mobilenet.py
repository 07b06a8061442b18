"""Build MobileNetV1 (224 x 224, 1000 classes) as an ONNX model with seeded weights, and its description.

    python build_mobilenet.py [DIRECTORY]

The graph is that of the paper (arXiv 1704.04861, width 1): a convolution, thirteen pairs of depthwise and pointwise
convolutions, the mean over the image, a dense layer, softmax. The weights are random, so its classes are meaningless;
for real ones, replace it with a trained model. They are scaled layer by layer by their outputs for some drawn scenes,
as batch normalization would: otherwise every picture would get the same answer. It needs onnx and OpenCV, and takes
some seconds and 17 MB.

* mobilenetv1.onnx: `data` float32 (1, 3, 224, 224), BGR, to `prob` float32 (1, 1000).
* mobilenetv1.yaml: declares that a board's model takes NV12 pictures, and how they become `data`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

SIDE, CLASSES, SCENES = 224, 1000, 16
MEAN, SCALE = (103.94, 116.78, 123.68), 0.017
OPSET = 17
# Output channels and stride of each pair.
PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
DESCRIPTION = f"""\
# What a compiled model would contain about mobilenetv1.onnx, with the keys of the vendor's compiler.
model_parameters:
  onnx_model: mobilenetv1.onnx
  march: bayes
input_parameters:
  input_name: data
  input_type_rt: nv12
  input_type_train: bgr
  input_layout_train: NCHW
  norm_type: data_mean_and_scale
  mean_value: {" ".join(map(str, MEAN))}
  scale_value: {SCALE}
compiler_parameters:
  input_source:
    data: pyramid
"""
Floats = NDArray[np.float32]


def main() -> int:
    """Build both files and print their paths."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    print(build(directory))
    return 0


def build(directory: Path, seed: int = 1) -> Path:
    """Write mobilenetv1.onnx and mobilenetv1.yaml.

    Args:
        directory: Target; created if it does not exist.
        seed: For the weights and for the scenes that scale them.

    Returns:
        The model's file.
    """
    rng = np.random.default_rng(seed)
    scenes = np.stack([scene(rng) for _ in range(SCENES)])
    x = ((scenes.transpose(0, 3, 1, 2) - np.reshape(MEAN, (3, 1, 1))) * SCALE).astype(np.float32)
    net = Net(rng, x)
    net.convolution("conv1", 32, 3, 2)
    for number, (channels, stride) in enumerate(PAIRS, 2):
        net.depthwise(f"conv{number}_dw", stride)
        net.convolution(f"conv{number}_pw", channels, 1, 1)
    net.classifier()
    model = net.to_onnx()
    directory.mkdir(parents=True, exist_ok=True)
    onnx.save(model, directory / "mobilenetv1.onnx")
    (directory / "mobilenetv1.yaml").write_text(DESCRIPTION, encoding="utf-8")
    return directory / "mobilenetv1.onnx"


def scene(rng: np.random.Generator, height: int = SIDE, width: int = SIDE) -> NDArray[np.uint8]:
    """A drawn picture, BGR (height, width, 3): a sky over a ground, and some shapes, as bright as in a photograph."""
    low, high = rng.uniform(40, 215, (2, 1, 3))
    rows = np.linspace(0, 1, height)[:, None]
    picture = np.ascontiguousarray(np.broadcast_to((low + (high - low) * rows)[:, None], (height, width, 3)))
    horizon = int(rng.uniform(0.4, 0.8) * height)
    picture[horizon:] = rng.uniform(20, 160, 3)
    for _ in range(rng.integers(3, 12)):
        color = tuple(rng.uniform(0, 255, 3))
        x, y = int(rng.integers(0, width)), int(rng.integers(0, height))
        size = int(rng.integers(height // 16, height // 3))
        kind = rng.integers(3)
        if kind == 0:
            cv2.circle(picture, (x, y), size // 2, color, -1, cv2.LINE_AA)
        elif kind == 1:
            cv2.rectangle(picture, (x, y), (x + size, y + size * 2 // 3), color, -1)
        else:
            corners = np.array([[x, y], [x + size, y], [x + size // 2, y - size]], np.int32)
            cv2.fillPoly(picture, [corners], color, cv2.LINE_AA)
    for cells, amount in ((3, 30), (12, 20), (48, 15)):
        coarse = rng.normal(0, amount, (cells, cells, 1)) + rng.normal(0, amount / 3, (cells, cells, 3))
        picture += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    noisy: NDArray[np.uint8] = np.clip(picture + rng.normal(0, 4, picture.shape), 0, 255).astype(np.uint8)
    return noisy


class Net:
    """A network that grows layer by layer, with each layer's output for the scenes.

    Args:
        rng: For the weights.
        x: (N, 3, 224, 224), the scenes as the graph's input.
    """

    def __init__(self, rng: np.random.Generator, x: Floats) -> None:
        self.rng, self.x = rng, x
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, Floats] = {}
        self.at = "data"

    def convolution(self, name: str, channels: int, kernel: int, stride: int) -> None:
        """Add a convolution over all channels, and ReLU6."""
        inputs = self.x.shape[1]
        weight = self.rng.normal(0, 1, (channels, inputs, kernel, kernel)).astype(np.float32)
        cols = windows(self.x, kernel, stride)
        n, _, h, w = cols.shape[:4]
        flat = cols.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, -1) @ weight.reshape(channels, -1).T
        self._activate(name, weight, flat.reshape(n, h, w, channels).transpose(0, 3, 1, 2), kernel, stride)

    def depthwise(self, name: str, stride: int) -> None:
        """Add a 3 x 3 convolution per channel, and ReLU6."""
        channels = self.x.shape[1]
        weight = self.rng.normal(0, 1, (channels, 1, 3, 3)).astype(np.float32)
        out = np.einsum("nchwij,cij->nchw", windows(self.x, 3, stride), weight[:, 0])
        self._activate(name, weight, out, 3, stride, group=channels)

    def classifier(self) -> None:
        """Add the mean over the image, the dense layer and softmax."""
        mean = self.x.mean((2, 3))
        weight = self.rng.normal(0, 1, (mean.shape[1], CLASSES)).astype(np.float32)
        logits = mean @ weight
        gain = (1.0 / logits.std(0)).astype(np.float32)  # as confident as a trained network: no class is near 0 or 1
        self._node("GlobalAveragePool", "pool", [self.at])
        self._node("Flatten", "flatten", [self.at])
        self.weights |= {"fc_w": weight * gain, "fc_b": -logits.mean(0) * gain}
        self._node("Gemm", "fc", [self.at, "fc_w", "fc_b"])
        self._node("Softmax", "prob", [self.at], axis=1)

    def to_onnx(self) -> onnx.ModelProto:
        """The whole model, checked."""
        graph = helper.make_graph(
            self.nodes,
            "mobilenetv1",
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
            [helper.make_tensor_value_info("prob", TensorProto.FLOAT, [1, CLASSES])],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, producer_name="build_mobilenet.py", ir_version=8, opset_imports=opsets)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _activate(self, name: str, weight: Floats, out: Floats, kernel: int, stride: int, group: int = 1) -> None:
        """Scale a convolution to mean 0 and standard deviation 1 per channel for the scenes; then ReLU6."""
        mean, deviation = out.mean((0, 2, 3)), out.std((0, 2, 3)) + 1e-6
        self.weights[f"{name}_w"] = weight / deviation[:, None, None, None]
        self.weights[f"{name}_b"] = (-mean / deviation).astype(np.float32)
        self.x = np.clip((out - mean[:, None, None]) / deviation[:, None, None], 0, 6).astype(np.float32)
        inputs = [self.at, f"{name}_w", f"{name}_b"]
        self._node("Conv", name, inputs, pads=[kernel // 2] * 4, strides=[stride] * 2, group=group)
        self.weights |= {"zero": np.array(0, np.float32), "six": np.array(6, np.float32)}
        self._node("Clip", f"{name}_relu6", [self.at, "zero", "six"])

    def _node(self, op_type: str, name: str, inputs: list[str], **attributes: Any) -> None:
        self.nodes.append(helper.make_node(op_type, inputs, [name], f"{name}_node", **attributes))
        self.at = name


def windows(x: Floats, kernel: int, stride: int) -> Floats:
    """(N, C, H / stride, W / stride, kernel, kernel): the inputs of the convolution for each output pixel."""
    pad = kernel // 2
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    found = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    return found[:, :, ::stride, ::stride]


if __name__ == "__main__":
    sys.exit(main())
