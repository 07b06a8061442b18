"""``--dump_intermediate``: inputs and outputs of every node, from a run that outputs all of them."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from arm_client.commands.model_exec import dump
from arm_client.commands.model_exec.dump import real_values

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from arm_client.commands.model_exec.dump import Dumps
    from arm_client.commands.model_exec.inputs import Frame
    from arm_client.dnn import Model
    from hbrt.dnn_types import hbDNNInferCtrlParam

WITH_TEXT = 2
AS_FED = "@fed"


def dump_layers(file: Path, model: Model, frame: Frame, ctrl: hbDNNInferCtrlParam, dumps: Dumps) -> list[Path]:
    """Run the model once more with each node's results as outputs, and write them.

    Layers run in their usual place, so the numbers are those of the model itself; only what onnxruntime would have
    fused into one node is computed node by node.

    Args:
        file: The model's file.
        model: The model.
        frame: Its inputs.
        ctrl: How the task is scheduled.
        dumps: Where to, and how.

    Returns:
        The files: of each node its inputs and outputs, numbered in the order of the nodes. Constants are left out.

    Raises:
        HbrtError, ModelError: the model cannot be run this way.
        OSError: a file cannot be written.
    """
    values, nodes = all_values(file, model, frame, ctrl)
    directory = dumps.dump_path / dump.file_name(model.name, "layers")
    files = []
    for number, node in enumerate(nodes):
        for kind, names in (("input", node.input), ("output", node.output)):
            for at, name in enumerate(names):
                if name not in values:
                    continue
                stem = dump.file_name(f"{number:04d}", node.name or node.op_type, kind, at)
                files.append(directory / f"{stem}.bin")
                dump.write_bytes(files[-1], values[name].tobytes())
                if dumps.dump_intermediate >= WITH_TEXT:
                    files.append(directory / f"{stem}.txt")
                    dump.write_text(files[-1], values[name], dumps.dump_txt_axis, dumps.dump_precision)
    return files


def all_values(
    file: Path, model: Model, frame: Frame, ctrl: hbDNNInferCtrlParam, timeout_ms: int = 0
) -> tuple[dict[str, NDArray[Any]], list[NodeProto]]:
    """Every value of a run by name, as stored in memory, and the nodes of the model.

    The graph's input after picture conversion and scaling is under the input's name and ``AS_FED``.

    Raises:
        HbrtError, ModelError, TimeoutError: the model cannot be run this way, or takes too long.
    """
    from arm_client import dnn
    from arm_client.dnn.errors import refusals
    from arm_client.dnn.loading.description_file import beside
    from hbrt.models.loading.model_file import read_file

    with refusals():
        read = read_file(file)
    with tempfile.TemporaryDirectory(prefix="hrt_model_exec-") as folder:
        proto = with_inputs_as_outputs(with_all_outputs(read.proto))
        changed = Path(folder) / "layers.onnx"
        changed.write_bytes(proto.SerializeToString())
        described = beside(file)
        if described is not None:
            shutil.copyfile(described, changed.with_suffix(described.suffix))
        (whole,) = dnn.load(changed)
    runner = _as_taken(frame, model, whole).runner(whole)
    try:
        runner.run(ctrl, timeout_ms)
        values = {}
        for buffer in (*runner.inputs, *runner.outputs):
            values[buffer.spec.name] = buffer.get()
    finally:
        runner.free()
    return values, [node for node in proto.graph.node if not node.output[0].endswith(AS_FED)]


def _as_taken(frame: Frame, model: Model, whole: Model) -> Frame:
    """The frame for the model with all outputs; its inputs are real numbers after a QuantizeLinear was removed."""
    kept = [
        one.spec.graph_dtype == other.spec.graph_dtype for one, other in zip(model.inputs, whole.inputs, strict=True)
    ]
    if all(kept):
        return frame
    runner = frame.runner(model)
    try:
        real = [real_values(buffer) for buffer in runner.inputs]
    finally:
        runner.free()
    values = [value if same else real[at] for at, (value, same) in enumerate(zip(frame.values, kept, strict=True))]
    return dataclasses.replace(frame, values=values)


def with_all_outputs(proto: ModelProto) -> ModelProto:
    """A copy of a model with every node's results as outputs, as far as the API supports them.

    Values that depend on no input are left out: onnxruntime folds them, and refuses a folded value as an output.
    """
    import onnx

    from hbrt.models.spec.graph_edits import graph_inputs

    copy = onnx.shape_inference.infer_shapes(proto)
    known = {value.name: value for value in copy.graph.value_info}
    listed = {value.name for value in copy.graph.output}
    live = {value.name for value in graph_inputs(copy.graph)}
    for node in copy.graph.node:  # in topological order, as the format demands
        if live.isdisjoint(node.input) and not any(attribute.HasField("g") for attribute in node.attribute):
            continue
        live.update(node.output)
        for name in node.output:
            value = known.get(name)
            if name and name not in listed and value is not None and value.type.HasField("tensor_type"):
                copy.graph.output.append(value)
    return copy


def with_inputs_as_outputs(proto: ModelProto) -> ModelProto:
    """The model itself, with its graph's inputs added as outputs."""
    import onnx

    from hbrt.models.spec.graph_edits import graph_inputs

    graph = proto.graph
    for value in graph_inputs(graph):
        graph.node.append(onnx.helper.make_node("Identity", [value.name], [f"{value.name}{AS_FED}"]))
        fed = graph.output.add()
        fed.CopyFrom(value)
        fed.name = f"{value.name}{AS_FED}"
    return proto
