"""``--dump_intermediate``: inputs and outputs of every node, from a run that has all of them as its outputs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from arm_client.commands.model_exec import dump

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from arm_client.commands.model_exec.dump import Dumps
    from arm_client.commands.model_exec.inputs import Frame
    from arm_client.dnn import Model
    from hbrt.dnn_types import hbDNNInferCtrlParam

WITH_TEXT = 2


def dump_layers(file: Path, model: Model, frame: Frame, ctrl: hbDNNInferCtrlParam, dumps: Dumps) -> list[Path]:
    """Run the model once more with each node's results as outputs, and write them.

    Layers run where they run else, so the numbers are those of the model itself; only what onnxruntime would have
    fused into one node is computed node by node.

    Args:
        file: The model's file.
        model: The model.
        frame: What it is given.
        ctrl: How the task is scheduled.
        dumps: Where to, and how.

    Returns:
        The files: of each node its inputs and outputs, numbered in the order of the nodes. Constants are left out.

    Raises:
        HbrtError, ModelError: the model cannot be run so.
        OSError: a file cannot be written.
    """
    values, nodes = _all_values(file, frame, ctrl)
    directory = dumps.directory / dump.file_name(model.name, "layers")
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


def _all_values(file: Path, frame: Frame, ctrl: hbDNNInferCtrlParam) -> tuple[dict[str, NDArray[Any]], list[NodeProto]]:
    from arm_client import dnn
    from arm_client.dnn.loading.description_file import beside
    from arm_client.dnn.loading.model_file import read_file

    with tempfile.TemporaryDirectory(prefix="hrt_model_exec-") as folder:
        proto = with_all_outputs(read_file(file).proto)
        changed = Path(folder) / "layers.onnx"
        changed.write_bytes(proto.SerializeToString())
        described = beside(file)
        if described is not None:
            shutil.copyfile(described, changed.with_suffix(described.suffix))
        (whole,) = dnn.load(changed)
    runner = frame.runner(whole)
    try:
        runner.run(ctrl)
        values = {}
        for buffer in (*runner.inputs, *runner.outputs):
            values[buffer.spec.name] = buffer.get()
    finally:
        runner.free()
    return values, list(proto.graph.node)


def with_all_outputs(proto: ModelProto) -> ModelProto:
    """A copy of a model that has every node's results as outputs, those that the API can carry."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(proto)
    copy = onnx.ModelProto()
    copy.CopyFrom(inferred)
    known = {value.name: value for value in copy.graph.value_info}
    listed = {value.name for value in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            value = known.get(name)
            if name and name not in listed and value is not None and value.type.HasField("tensor_type"):
                copy.graph.output.append(value)
    return copy
