"""Which operators are one layer on a chip."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from rknn_api.container import Container
from rknn_api.perf.layers import layers_of
from rknn_api.run.custom_ops import CustomOps
from rknn_api.toolkit.rknn import RKNN
from tests.rknn_api import nets


def conv(read: str, made: str, weight: str = "w") -> NodeProto:
    return helper.make_node("Conv", [read, weight], [made])


def op_types(folder: Path, nodes: list[NodeProto], outputs: list[str], *, is_quantized: bool) -> list[str]:
    rng = np.random.default_rng(4)
    weights = {name: rng.standard_normal((4, 4, 1, 1)).astype(np.float32) for name in ("w", "v")}
    x = rng.standard_normal((1, 4, 6, 6)).astype(np.float32)
    path = nets.saved(folder, nodes, {"x": [1, 4, 6, 6]}, outputs, weights)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(path) == 0, rknn.last_error
    assert rknn.build(is_quantized, nets.arrays(folder, x)) == 0, rknn.last_error
    assert rknn.export_rknn(folder / "net.rknn") == 0
    container = Container.read(folder / "net.rknn")
    return [one.op_type for one in layers_of(container.proto(), container.metadata, CustomOps())][1 : -len(outputs)]


def swish(read: str, made: str) -> list[NodeProto]:
    return [helper.make_node("Sigmoid", [read], [f"{made}s"]), helper.make_node("Mul", [read, f"{made}s"], [made])]


SUM = helper.make_node("Add", ["r", "s"], ["y"])
CASES: list[tuple[list[NodeProto], list[str], list[str]]] = [
    ([conv("x", "c"), *swish("c", "y")], ["y"], ["ConvExSwish"]),
    ([conv("x", "c"), helper.make_node("Relu", ["c"], ["y"])], ["y"], ["ConvRelu"]),
    ([conv("x", "c"), helper.make_node("LeakyRelu", ["c"], ["y"])], ["y"], ["ConvLeakyRelu"]),
    ([conv("x", "c"), helper.make_node("Add", ["x", "c"], ["y"])], ["y"], ["ConvAdd"]),
    (
        [conv("x", "a"), helper.make_node("Relu", ["a"], ["r"]), conv("r", "b", "v"), *swish("b", "s"), SUM],
        ["y"],
        ["ConvRelu", "ConvExSwishAdd"],
    ),
    ([helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1, 1]), *swish("p", "y")], ["y"], ["MaxPool", "exSwish"]),
    ([conv("x", "c"), helper.make_node("Relu", ["c"], ["y"])], ["c", "y"], ["Conv", "Relu"]),
    ([conv("x", "c"), *swish("c", "y")], ["c", "y"], ["Conv", "exSwish"]),
]


@pytest.mark.parametrize("kind", ["float16", "int8"])
@pytest.mark.parametrize(("nodes", "outputs", "wanted"), CASES)
def test_what_follows_a_convolution_alone_is_a_part_of_its_layer(
    tmp_path: Path, nodes: list[NodeProto], outputs: list[str], wanted: Any, kind: str
) -> None:
    assert op_types(tmp_path, nodes, outputs, is_quantized=kind == "int8") == wanted
