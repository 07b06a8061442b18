"""Models that stand in for those of public programs: the same inputs and outputs, numbers that follow the inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_TYPES = {"f32": TensorProto.FLOAT, "s8": TensorProto.INT8, "u8": TensorProto.UINT8, "s32": TensorProto.INT32}
_TYPES |= {"s16": TensorProto.INT16, "s64": TensorProto.INT64, "f16": TensorProto.FLOAT16}


def write_model(file: Path, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> None:
    """Write a model, and the description of its pictures next to it.

    Each output is a ramp from -1 to 1, shifted by the sum of the means of all inputs, or its own ``ramp``, unshifted.

    Args:
        file: Where to; its suffix is the program's.
        inputs: Of each its ``shape``, and optionally its ``name`` and ``type``: "nv12" (of an NCHW shape), "f32", ...
        outputs: As the inputs; a ``ramp`` is the first and the last number; with a ``scale`` they are quantized, each
            channel of the last dimension, or of ``axis``, by it; an ``op`` of one input, such as "Sigmoid", is applied
            to them.
    """
    rows = [{"name": f"input{at}", "type": "f32", **one} for at, one in enumerate(inputs)]
    made = [{"name": f"output{at}", "type": "f32", **one} for at, one in enumerate(outputs)]
    values, nodes, means = [], [], []
    for row in rows:
        kind = _TYPES.get(row["type"], TensorProto.FLOAT)
        values.append(helper.make_tensor_value_info(row["name"], kind, row["shape"]))
        nodes.append(helper.make_node("Cast", [row["name"]], [f"{row['name']}.f"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("ReduceMean", [f"{row['name']}.f"], [f"{row['name']}.m"], keepdims=0))
        means.append(f"{row['name']}.m")
    nodes.append(helper.make_node("Sum", means, ["mean"]))
    nodes.append(helper.make_node("Sub", ["mean", "mean"], ["nothing"]))
    results, ramps = [], []
    for row in made:
        size = int(np.prod(row["shape"]))
        first, last = row.get("ramp", (-1, 1))
        ramp = np.linspace(first, last, size, dtype=np.float32).reshape(row["shape"])
        ramps.append(numpy_helper.from_array(ramp, f"{row['name']}.r"))
        added = "nothing" if "ramp" in row else "mean"
        nodes.append(helper.make_node("Add", [f"{row['name']}.r", added], [f"{row['name']}.s"]))
        kind = _TYPES[row["type"]]
        if "op" in row:
            nodes[-1].output[0] = f"{row['name']}.o"
            nodes.append(helper.make_node(row["op"], [f"{row['name']}.o"], [f"{row['name']}.s"]))
        if "scale" in row:
            axis = row.get("axis", len(row["shape"]) - 1)
            scale = np.full(row["shape"][axis], row["scale"], np.float32)
            ramps.append(numpy_helper.from_array(scale, f"{row['name']}.scale"))
            nodes.append(helper.make_node("Cast", [f"{row['name']}.s"], [f"{row['name']}.q"], to=kind))
            zero = np.zeros(row["shape"][axis], helper.tensor_dtype_to_np_dtype(kind))
            ramps.append(numpy_helper.from_array(zero, f"{row['name']}.zero"))
            names = [f"{row['name']}.{part}" for part in ("q", "scale", "zero")]
            nodes.append(helper.make_node("DequantizeLinear", names, [row["name"]], axis=axis))
            kind = TensorProto.FLOAT
        else:
            nodes.append(helper.make_node("Cast", [f"{row['name']}.s"], [row["name"]], to=kind))
        results.append(helper.make_tensor_value_info(row["name"], kind, row["shape"]))
    graph = helper.make_graph(nodes, file.stem, values, results, ramps)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, file)
    kinds = [row["type"] if row["type"] in {"nv12", "rgb", "bgr", "gray"} else "featuremap" for row in rows]
    if set(kinds) != {"featuremap"}:
        trained = ["rgb" if kind == "nv12" else kind for kind in kinds]
        text = f"input_name: {';'.join(row['name'] for row in rows)}\ninput_type_rt: {';'.join(kinds)}\n"
        file.with_suffix(".yaml").write_text(f"{text}input_type_train: {';'.join(trained)}\n", encoding="utf-8")
