"""A model with an op that ONNX does not have: a Python class computes it in the toolkit.

python custom_op.py builds a model with a convolution and a cstSwish, converts it and runs it.
"""

import sys
import tempfile
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rknn.api import RKNN
from rknn.api.custom_op import get_node_attr

RNG = np.random.default_rng(1)
WEIGHTS = RNG.standard_normal((4, 3, 1, 1)).astype(np.float32)
X = RNG.standard_normal((1, 3, 6, 6)).astype(np.float32)
BETA = 1.5
REPORTS = True


class CstSwish:
    """x * sigmoid(beta * x). The names of the methods and their parameters are fixed."""

    op_type = "cstSwish"

    def shape_infer(self, node: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        """Shapes and types of the outputs: the same as the input's."""
        return in_shapes.copy(), in_dtypes.copy()

    def compute(self, node: Any, inputs: Any) -> Any:
        """The outputs; inputs are NCHW, whatever the program passes."""
        return [swish(inputs[0], get_node_attr(node, "beta"))]


def swish(x: Any, beta: float) -> Any:
    """The op's function."""
    return (x / (1 + np.exp(-beta * x))).astype(np.float32)


def main() -> Any:
    """Returns the model's outputs for X."""
    rknn = RKNN()
    rknn.config(target_platform="rk3566")
    good(rknn.reg_custom_op(CstSwish()), "reg_custom_op")  # between config and load_onnx
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model(), f"{folder}/swish.onnx")
        good(rknn.load_onnx(f"{folder}/swish.onnx"), "load_onnx")
    good(rknn.build(do_quantization=False), "build")
    good(rknn.init_runtime(), "init_runtime")
    outputs = rknn.inference([X.transpose(0, 2, 3, 1)])
    if outputs is None:
        sys.exit(rknn.last_error)
    rknn.release()
    print(f"cstSwish by a class: {outputs[0].size} numbers from {outputs[0].min():.3f} to {outputs[0].max():.3f}")
    return outputs[0]


def model() -> onnx.ModelProto:
    """A pointwise convolution, and the op."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("cstSwish", ["c"], ["y"], domain="own", beta=BETA),
    ]
    graph = helper.make_graph(
        nodes,
        "swish",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], ir_version=10
    )


def good(status: int, call: str) -> None:
    """Stop if a call failed: it has printed the reason."""
    if status:
        sys.exit(f"{call} failed.")


if __name__ == "__main__":
    main()
