"""A model with an op that ONNX does not have: callbacks in C compute it on the board.

python custom_op_c.py writes a model with a cstSwish, compiles samples/c/rknn_custom_op.c with hbrt cc, and runs it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hbrt.samples_dir import samples_dir
from rknn.api import RKNN
from rknn.api.custom_op import get_node_attr

SHAPE = (1, 3, 4, 4)
BETA = 0.5
REPORTS = True


class CstSwish:
    """The class that the toolkit needs to convert the model."""

    op_type = "cstSwish"

    def shape_infer(self, node: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        """Shapes and types of the outputs: the same as the input's."""
        return in_shapes.copy(), in_dtypes.copy()

    def compute(self, node: Any, inputs: Any) -> Any:
        """The outputs."""
        beta = get_node_attr(node, "beta")
        return [(inputs[0] / (1 + np.exp(-beta * inputs[0]))).astype(np.float32)]


def main() -> Any:
    """Returns what the C program prints; the sum of channels goes through the op."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(model(), folder / "swish.onnx")
        convert(folder)
        run("-m", "hbrt", "cc", str(samples_dir() / "c" / "rknn_custom_op.c"), "-o", str(folder / "program"))
        # Use a separate home, so rknn_init starts a private board with the model's chip.
        outer = {name: value for name, value in os.environ.items() if not name.startswith("HBRT_")}
        answer = subprocess.run(
            [folder / "program", folder / "swish.rknn"],
            env={**outer, "HBRT_HOME": name},
            check=False,
            capture_output=True,
            text=True,
        )
    if answer.returncode:
        sys.exit(f"The program exited with code {answer.returncode}. {answer.stderr}")
    found = np.array(answer.stdout.split(), np.float32)
    print(f"cstSwish in C: {found.size} numbers from {found.min():.3f} to {found.max():.3f}")
    return found


def convert(folder: Path) -> None:
    """Write swish.rknn."""
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    good(rknn.reg_custom_op(CstSwish()), "reg_custom_op")
    good(rknn.load_onnx(folder / "swish.onnx"), "load_onnx")
    good(rknn.build(do_quantization=False), "build")
    good(rknn.export_rknn(folder / "swish.rknn"), "export_rknn")
    rknn.release()


def model() -> onnx.ModelProto:
    """A pointwise convolution that adds the channels, and the op."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("cstSwish", ["c"], ["y"], domain="own", beta=BETA),
    ]
    graph = helper.make_graph(
        nodes,
        "swish",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, *SHAPE[2:]])],
        [numpy_helper.from_array(np.full((1, 3, 1, 1), 0.01, np.float32), "w")],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], ir_version=10
    )


def run(*arguments: str) -> None:
    """Run this Python; it must succeed."""
    if subprocess.run([sys.executable, *arguments], check=False).returncode:
        sys.exit(f"{' '.join(arguments)} failed.")


def good(status: int, call: str) -> None:
    """Stop if a call failed: it has printed the reason."""
    if status:
        sys.exit(f"{call} failed.")


if __name__ == "__main__":
    main()
