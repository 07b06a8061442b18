"""Small models, and their calibration data."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from rknn_api.container import Container

DNN = Path(__file__).resolve().parents[4] / "samples" / "dnn"
DIGITS = DNN / "digits_float.onnx"
SIDE = 32


def digits() -> tuple[NDArray[Any], NDArray[Any]]:
    """Pictures (n, 8, 8, 1) of 0 to 16, and the digits that they show."""
    with np.load(DNN / "digits_test.npz") as held:
        return held["images"][..., None].astype(np.float32), held["labels"]


def saved(
    folder: Path,
    nodes: list[NodeProto],
    inputs: dict[str, Any],
    outputs: list[str],
    weights: Any = (),
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
) -> Path:
    """A model in a file; its inputs and outputs are of one type."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in dict(weights).items()],
    )
    domains = {node.domain for node in nodes} | {""}
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(one, opset if not one else 1) for one in domains], ir_version=9
    )
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def mobilenet(folder: Path) -> Path:
    """MobileNetV1, small: convolutions by depth and by point with batch norms and relu6, a mean, dense, softmax."""
    rng = np.random.default_rng(3)
    nodes: list[NodeProto] = []
    weights: dict[str, Any] = {"low": np.float32(0), "high": np.float32(6)}
    name, channels = "data", 3
    for at, (out, stride, group) in enumerate([(8, 2, 1), (8, 1, 8), (16, 1, 1), (16, 2, 16), (24, 1, 1)]):
        side = 1 if group == 1 and at else 3
        shape = (out, channels // group, side, side)
        weights[f"w{at}"] = (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        for what in ("scale", "bias", "mean", "var"):
            weights[f"{what}{at}"] = rng.uniform(0.5, 1.5, out).astype(np.float32)
        nodes += [
            helper.make_node(
                "Conv", [name, f"w{at}"], [f"c{at}"], strides=[stride] * 2, pads=[side // 2] * 4, group=group
            ),
            helper.make_node(
                "BatchNormalization", [f"c{at}", f"scale{at}", f"bias{at}", f"mean{at}", f"var{at}"], [f"n{at}"]
            ),
            helper.make_node("Clip", [f"n{at}", "low", "high"], [f"r{at}"]),
        ]
        name, channels = f"r{at}", out
    weights["dense"] = rng.standard_normal((24, 10)).astype(np.float32)
    nodes += [
        helper.make_node("GlobalAveragePool", [name], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Gemm", ["flat", "dense"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["prob"], axis=1),
    ]
    return saved(folder, nodes, {"data": [1, 3, SIDE, SIDE]}, ["prob"], weights)


def shaped(folder: Path, shape: str) -> Path:
    """A net of pictures [1, 3, 16, 16]: "residual" adds, "branches" meet, "upward" grows again, "dense" is flat."""
    rng = np.random.default_rng(7)

    def drawn(*sizes: int) -> NDArray[Any]:
        return np.asarray(rng.standard_normal(sizes) * np.sqrt(2 / np.prod(sizes[1:])), np.float32)

    first, make = drawn(8, 3, 3, 3), helper.make_node
    start = make("Conv", ["x", "a"], ["p"], pads=[1] * 4)
    if shape == "residual":
        second = drawn(8, 8, 3, 3)
        nodes = [start, make("Relu", ["p"], ["q"]), make("Conv", ["q", "b"], ["r"], pads=[1] * 4)]
        nodes += [make("Add", ["r", "q"], ["s"]), make("Relu", ["s"], ["y"])]
    elif shape == "branches":
        second = drawn(4, 16, 1, 1)
        nodes = [start, make("Sigmoid", ["p"], ["g"]), make("Mul", ["p", "g"], ["q"])]
        nodes += [make("MaxPool", ["q"], ["m"], kernel_shape=[3, 3], pads=[1] * 4)]
        nodes += [make("Concat", ["q", "m"], ["k"], axis=1), make("Conv", ["k", "b"], ["y"])]
    elif shape == "upward":
        second = drawn(8, 4, 2, 2)
        nodes = [make("Conv", ["x", "a"], ["p"], pads=[1] * 4, strides=[2, 2]), make("Relu", ["p"], ["q"])]
        nodes += [make("ConvTranspose", ["q", "b"], ["y"], strides=[2, 2])]
    else:
        first, second = drawn(3 * 16 * 16, 32), drawn(32, 10)
        nodes = [make("Flatten", ["x"], ["f"]), make("Gemm", ["f", "a"], ["p"]), make("Relu", ["p"], ["q"])]
        nodes += [make("Gemm", ["q", "b"], ["y"])]
    return saved(folder, nodes, {"x": [1, 3, 16, 16]}, ["y"], {"a": first, "b": second})


def pictures(folder: Path, count: int = 6) -> Path:
    """A dataset of drawn pictures, one of another size."""
    import cv2

    rng = np.random.default_rng(4)
    for at in range(count):
        side = SIDE if at else SIDE + 5
        cv2.imwrite(str(folder / f"picture{at}.png"), rng.integers(0, 256, (side, side, 3), np.uint8))
    return listed(folder, [f"picture{at}.png" for at in range(count)])


def arrays(folder: Path, *given: Any) -> Path:
    """A dataset of arrays, a sample of one input each."""
    for at, array in enumerate(given):
        np.save(folder / f"array{at}.npy", np.asarray(array, np.float32))
    return listed(folder, [f"array{at}.npy" for at in range(len(given))])


def listed(folder: Path, lines: list[str]) -> Path:
    """The text file of a dataset."""
    path = folder / "dataset.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def bare(path: Path) -> ort.InferenceSession:
    """Onnxruntime alone on a model file's graph, with its own option for exact products of integers."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(bytes(Container.read(path).graph), options)


def graph_of(path: Path) -> ModelProto:
    """A model file's graph."""
    return onnx.load_from_string(bytes(Container.read(path).graph))
