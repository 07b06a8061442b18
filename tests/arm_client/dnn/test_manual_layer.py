"""The manual's softmax layer inside a model: one run on a private board names its nine mistakes on standard error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hbrt.samples_dir import samples_dir

DEFECTS = samples_dir() / "defects"
PROGRAM = """
import sys
import numpy as np
from onnx import TensorProto, helper
import arm_client as hb
from arm_client import dnn
sys.path.insert(0, {defects!r})
import softmax_layer as manual

class Softmax(dnn.DspLayer):
    def Forward(self, bottom, top, ctrl):
        rows = np.frombuffer(bytes(bottom[0].RawData()), np.float32).reshape(shape)
        out = np.empty_like(rows)
        half = rows[0].nbytes // 2
        manual.wrong_forward(manual.IN_TILES, rows[:1], out, rows[0].nbytes)
        manual.wrong_forward(manual.IN_TILES, rows[:1], out, half)
        manual.wrong_forward(manual.IN_PLACE, rows[:1], out, half)
        return manual.wrong_forward(manual.IN_PLACE, rows, out, rows[0].nbytes)

shape = [2, manual.MANY]
graph = helper.make_graph(
    [helper.make_node("Softmax", ["x"], ["y"])],
    "softmax",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
with hb.private_board({image!r}, cores=1) as board:
    assert hb.hbDNNRegisterLayerCreator("Softmax", Softmax) == 0
    (loaded,) = dnn.load(model.SerializeToString())
    loaded(np.zeros(shape, np.float32))
"""
SAYS = (
    "use-after-free: ",
    "which no copy has set",
    "dma-busy: ",
    "dma-left: ",
    "that failed: ",
    "leak: ",
    "left-mapped: ",
    "waits without a limit",
    "4 bytes of padding",
)


def test_one_run_names_them(tmp_path: Path) -> None:
    program = tmp_path / "model.py"
    program.write_text(PROGRAM.format(defects=str(DEFECTS), image=str(DEFECTS / "image.py")))
    command = [sys.executable, "-m", "hbrt", "run", "--check", "all,advice", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    lines = done.stderr.splitlines()
    for words in SAYS:
        told = [line for line in lines if words in line and re.search(r"softmax_layer\.py:\d+", line)]
        assert told, f"nothing detects {words!r} in:\n{done.stderr}"
