"""A layer for an operator that ONNX lacks, computed by an op of its own on the DSP.

    python custom_layer.py [IMAGE]

The model ends in BestOfRows: for each row of scores the best column and its value. A layer runs that node: it hands the
physical addresses of its tensors to the op at 0x1000 of IMAGE, which a private board runs; samples/dsp/layer_image.py
when none is named. All that comes before stays in one piece in onnxruntime.

`run()` returns op, command, core (the mask that was asked for), status (0 is success), max_error (largest difference
from numpy), host_time_us (submit to release of one inference, the median), report (lines for the reader) and passed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import arm_client as hb
from arm_client.dnn import DspLayer, NDArray, TensorType

IMAGE = Path(__file__).resolve().parent.parent.parent / "dsp" / "layer_image.py"
CMD_BEST_OF_ROWS = 0x1000
ROWS, INPUTS, SCORES = 16, 64, 100
RUNS = 50
TOLERANCE = 1e-5


class BestOfRowsParam(ctypes.Structure):
    """The op's input block; addresses are physical."""

    _fields_ = (("x", ctypes.c_uint64), ("rows", ctypes.c_uint32), ("columns", ctypes.c_uint32))
    x: int
    rows: int
    columns: int


class BestOfRows(DspLayer):
    """(..., columns) float32 -> (..., 2): the column of the largest value, and that value."""

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """The last dimension becomes 2; onnxruntime has to know, since it does not know the operator."""
        scores = bottom[0]
        if scores is None or scores.shape is None or scores.dtype != np.float32:
            raise ValueError(f"BestOfRows takes float32 of a known rank, not {scores}.")
        return [TensorType((*scores.shape[:-1], 2), scores.dtype)]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
        """One remote call for all rows; inputs and outputs are in device memory already."""
        columns = bottom[0].Shape()[-1]
        block = self.block("parameters", ctypes.sizeof(BestOfRowsParam))
        param = BestOfRowsParam.from_buffer(block.view())
        param.x, param.rows, param.columns = bottom[0].phy_addr, bottom[0].Size() // columns, columns
        return self.call(CMD_BEST_OF_ROWS, block, top[0].mem, ctrl)


def model_bytes(weights: Any) -> bytes:
    """Model: x (ROWS, INPUTS) -> MatMul -> BestOfRows -> y (ROWS, 2)."""
    nodes = [
        helper.make_node("MatMul", ["x", "weights"], ["scores"]),
        helper.make_node("BestOfRows", ["scores"], ["y"], domain="sample"),
    ]
    graph = helper.make_graph(
        nodes,
        "best_of_rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, 2])],
        [numpy_helper.from_array(weights, "weights")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("sample", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def run(core: int = hb.HB_DSP_CORE_ANY, dsp_image: str | None = None) -> dict[str, Any]:
    """Runs the model on a board of its own and compares it with numpy."""
    image = Path(dsp_image or IMAGE)
    if not image.is_file():
        raise RuntimeError(f"There is no image {image}: name one, as in python custom_layer.py IMAGE.")
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, INPUTS)).astype(np.float32)
    weights = random.normal(size=(INPUTS, SCORES)).astype(np.float32)
    scores = x @ weights
    expected = np.stack([scores.argmax(1), scores.max(1)], 1)

    with hb.private_board(image):
        check(hb.hbDNNRegisterLayerCreator("BestOfRows", BestOfRows), "hbDNNRegisterLayerCreator")
        got, times_us = infer(model_bytes(weights), x, core)
        check(hb.hbDNNUnregisterLayerCreator("BestOfRows"), "hbDNNUnregisterLayerCreator")

    max_error = float(np.abs(got - expected).max())
    return {
        "op": "BestOfRows",
        "command": CMD_BEST_OF_ROWS,
        "core": core,
        "status": 0,
        "max_error": max_error,
        "host_time_us": float(np.median(times_us)),
        "report": [f"row {row}: column {int(got[row, 0])}, value {got[row, 1]:.3f}" for row in range(3)],
        "passed": max_error <= TOLERANCE,
    }


def infer(model_data: bytes, x: Any, core: int) -> tuple[Any, list[float]]:
    """The model's output for x, and how long each of some inferences took, in microseconds."""
    packed, model = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
    check(hb.hbDNNInitializeFromDDR(packed, [model_data], [len(model_data)], 1), "hbDNNInitializeFromDDR")
    check(hb.hbDNNGetModelHandle(model, packed, "best_of_rows"), "hbDNNGetModelHandle")

    given, wanted = hb.hbDNNTensor(), hb.hbDNNTensor()
    check(hb.hbDNNGetInputTensorProperties(given.properties, model, 0), "hbDNNGetInputTensorProperties")
    check(hb.hbDNNGetOutputTensorProperties(wanted.properties, model, 0), "hbDNNGetOutputTensorProperties")
    for tensor in (given, wanted):
        check(hb.hbSysAllocMem(tensor.sysMem[0], tensor.properties.alignedByteSize), "hbSysAllocMem")
    given.sysMem[0].array(np.float32, x.shape)[:] = x

    ctrl = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    ctrl.dspCoreId = core  # goes with the layer's remote call
    times_us = []
    for _ in range(RUNS):
        start = time.perf_counter()
        task = hb.hbDNNTaskHandle_t()
        check(hb.hbDNNInfer(task, [wanted], [given], model, ctrl), "hbDNNInfer")
        status = hb.hbDNNWaitTaskDone(task, 0)
        said = hb.last_error()
        check(hb.hbDNNReleaseTask(task), "hbDNNReleaseTask")
        if status:
            raise RuntimeError(f"hbDNNWaitTaskDone returned {status}: {said}")
        times_us.append((time.perf_counter() - start) * 1e6)
    got = wanted.sysMem[0].array(np.float32, (ROWS, 2)).copy()

    for tensor in (given, wanted):
        check(hb.hbSysFreeMem(tensor.sysMem[0]), "hbSysFreeMem")
    check(hb.hbDNNRelease(packed), "hbDNNRelease")
    return got, times_us


def check(status: int, call: str) -> None:
    """Stops with the call's name and the runtime's sentence when a call failed."""
    if status != 0:
        raise RuntimeError(f"{call} returned {status}: {hb.last_error() or hb.hbDNNGetErrorDesc(status)}")


def main() -> int:
    """Prints some rows and one line; 0 when the results are right."""
    try:
        got = run(dsp_image=sys.argv[1] if len(sys.argv) > 1 else None)
    except RuntimeError as error:
        print(f"custom_layer: {error}", file=sys.stderr)
        return 1
    print("\n".join(got["report"]))
    print(
        f"custom_layer: {ROWS} rows by command {got['command']:#x}, largest error {got['max_error']:.1e}, "
        f"{got['host_time_us']:.0f} us an inference"
    )
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
