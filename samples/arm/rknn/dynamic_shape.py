"""One model file for pictures of three sizes: dynamic_input lists the shapes that it can run with.

python dynamic_shape.py builds a convolution followed by the mean over the picture, and runs it with each size.
"""

import sys
import tempfile
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rknn.api import RKNN

RNG = np.random.default_rng(2)
WEIGHTS = RNG.standard_normal((8, 3, 3, 3)).astype(np.float32)
SHAPES = [[1, 3, 32, 32], [1, 3, 24, 40], [1, 3, 16, 16]]
"""In the layout of the ONNX model."""
REPORTS = True


def main() -> dict[str, Any]:
    """Returns the model's output for a picture of each size, and the pictures."""
    rknn = RKNN()
    rknn.config(target_platform="rk3588", dynamic_input=[[shape] for shape in SHAPES])
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model(), f"{folder}/mean.onnx")
        good(rknn.load_onnx(f"{folder}/mean.onnx"), "load_onnx")
    good(rknn.build(do_quantization=False), "build")
    good(rknn.init_runtime(), "init_runtime")
    pictures = [RNG.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    results = []
    for picture in pictures:
        outputs = rknn.inference([picture], data_format="nchw")
        if outputs is None:
            sys.exit(rknn.last_error)
        results.append(outputs[0])
        print(f"{list(picture.shape)} to {list(outputs[0].shape)}")
    rknn.release()
    return {"pictures": pictures, "results": results}


def model() -> onnx.ModelProto:
    """A convolution, relu, and the mean over the picture."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPES[0])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 1, 1])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def good(status: int, call: str) -> None:
    """Stop if a call failed: it has printed the reason."""
    if status:
        sys.exit(f"{call} failed.")


if __name__ == "__main__":
    main()
