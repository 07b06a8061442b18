"""A layer for an operator that ONNX lacks, computed by a custom op on the DSP.

python custom_layer.py [IMAGE] runs on a private board with IMAGE, or with samples/dsp/layer_image.py.

The model ends in BestOfRows: the best column and its value for each row of scores. A layer runs that node: it passes
the physical addresses of its tensors to the image's op at 0x1000. Everything before it stays in one piece in
onnxruntime.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import arm_client as hb
from arm_client.dnn import DspLayer, NDArray, TensorType
from arm_client.sample import check

IMAGE = Path(__file__).resolve().parent.parent.parent / "dsp" / "layer_image.py"
CMD_BEST_OF_ROWS = 0x1000
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(20, 16, 64)).astype(np.float32)  # 20 inferences
WEIGHTS = RANDOM.normal(size=(64, 100)).astype(np.float32)


class BestOfRowsParam(ctypes.Structure):
    """The op's input block; addresses are physical."""

    _fields_ = (("x", ctypes.c_uint64), ("rows", ctypes.c_uint32), ("columns", ctypes.c_uint32))
    x: int
    rows: int
    columns: int


class BestOfRows(DspLayer):
    """(..., columns) float32 -> (..., 2): the column of the largest value, and that value."""

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """The last dimension becomes 2; tell onnxruntime, which does not know the operator."""
        scores = bottom[0]
        if scores is None or scores.shape is None or scores.dtype != np.float32:
            raise ValueError(f"BestOfRows needs float32 of a known rank, got {scores}.")
        return [TensorType((*scores.shape[:-1], 2), scores.dtype)]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
        """One remote call for all rows; inputs and outputs are already in device memory."""
        columns = bottom[0].Shape()[-1]
        block = self.block("parameters", ctypes.sizeof(BestOfRowsParam))
        param = BestOfRowsParam.from_buffer(block.view())
        param.x, param.rows, param.columns = bottom[0].phy_addr, bottom[0].Size() // columns, columns
        return self.call(CMD_BEST_OF_ROWS, block, top[0].mem, ctrl)


def model_bytes() -> bytes:
    """Model: x (16, 64) -> MatMul -> BestOfRows -> y (16, 2)."""
    nodes = [
        helper.make_node("MatMul", ["x", "weights"], ["scores"]),
        helper.make_node("BestOfRows", ["scores"], ["y"], domain="sample"),
    ]
    graph = helper.make_graph(
        nodes,
        "best_of_rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 2])],
        [numpy_helper.from_array(WEIGHTS, "weights")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("sample", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def main(dsp_image: str = str(IMAGE)) -> Any:
    """Prints some rows; returns the model's outputs for X."""
    with hb.private_board(dsp_image):
        check(hb.hbDNNRegisterLayerCreator("BestOfRows", BestOfRows), "hbDNNRegisterLayerCreator")
        result = infer(model_bytes())
        check(hb.hbDNNUnregisterLayerCreator("BestOfRows"), "hbDNNUnregisterLayerCreator")
    for row in range(3):
        print(f"row {row}: column {int(result[0, row, 0])}, value {result[0, row, 1]:.3f}")
    return result


def infer(model_data: bytes) -> Any:
    """The model's outputs for X."""
    packed, model = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
    check(hb.hbDNNInitializeFromDDR(packed, [model_data], [len(model_data)], 1), "hbDNNInitializeFromDDR")
    check(hb.hbDNNGetModelHandle(model, packed, "best_of_rows"), "hbDNNGetModelHandle")

    given, wanted = hb.hbDNNTensor(), hb.hbDNNTensor()
    check(hb.hbDNNGetInputTensorProperties(given.properties, model, 0), "hbDNNGetInputTensorProperties")
    check(hb.hbDNNGetOutputTensorProperties(wanted.properties, model, 0), "hbDNNGetOutputTensorProperties")
    for tensor in (given, wanted):
        check(hb.hbSysAllocMem(tensor.sysMem[0], tensor.properties.alignedByteSize), "hbSysAllocMem")
    result = np.empty((len(X), 16, 2), np.float32)
    ctrl = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    for at, x in enumerate(X):
        given.sysMem[0].array(np.float32, x.shape)[:] = x
        task = hb.hbDNNTaskHandle_t()
        check(hb.hbDNNInfer(task, [wanted], [given], model, ctrl), "hbDNNInfer")
        check(hb.hbDNNWaitTaskDone(task, 0), "hbDNNWaitTaskDone")
        check(hb.hbDNNReleaseTask(task), "hbDNNReleaseTask")
        result[at] = wanted.sysMem[0].array(np.float32, (16, 2))

    for tensor in (given, wanted):
        check(hb.hbSysFreeMem(tensor.sysMem[0]), "hbSysFreeMem")
    check(hb.hbDNNRelease(packed), "hbDNNRelease")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
