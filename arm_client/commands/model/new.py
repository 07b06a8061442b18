"""An ONNX file with a board's file name, next to the description that a compiled model would have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import GraphProto, ValueInfoProto, helper

from arm_client.dnn.spec.spec import TensorSpec
from hbrt.dnn_types import hbDNNTensorLayout
from hbrt.models.spec.graph import shape_of
from hbrt.models.spec.graph_edits import TO_NHWC, free_name, graph_inputs, rename_reads

_RANK = 4  # of pictures and of a detector's heads


@dataclass(frozen=True)
class NewModel:
    """The files that the program uses as its model.

    Attributes:
        source: The ONNX file.
        target: The file that the program loads; its YAML file is next to it.
        given: The program's format for a picture: nv12, rgb, bgr, yuv444, gray, or featuremap for the numbers.
        trained: The graph's training format, for pictures.
        mean: Mean per channel, subtracted first; "" for none.
        scale: Scale per channel, multiplied next; "" for none.
        is_nhwc: Outputs of four dimensions become NHWC.
    """

    source: Path
    target: Path
    given: str
    trained: str
    mean: str
    scale: str
    is_nhwc: bool

    @property
    def description(self) -> Path:
        """The YAML file."""
        return self.target.with_suffix(".yaml")


def write(new: NewModel) -> None:
    """Write the model and its YAML file.

    Raises:
        FileExistsError: one of them exists. OSError: they cannot be written, or the source cannot be read.
        DecodeError: the source is not an ONNX file.
    """
    for file in (new.target, new.description):
        if file.exists():
            raise FileExistsError(f"{file} already exists: remove it, or choose another name.")
    model = onnx.load(str(new.source))
    if new.is_nhwc:
        for value in model.graph.output:
            _transpose(model.graph, value)
    onnx.save(model, str(new.target))
    text = describe(new, [(value.name, shape_of(value)) for value in graph_inputs(model.graph)])
    new.description.write_text(text, encoding="utf-8")


def describe(new: NewModel, inputs: list[tuple[str, tuple[int, ...]]]) -> str:
    """The YAML file for inputs of these names and shapes. An input that is not a picture is a featuremap."""
    channels = 1 if new.given == "gray" else 3
    rows = {"input_name": [], "input_type_rt": [], "input_type_train": []}  # type: dict[str, list[str]]
    means, scales = [], []
    for name, shape in inputs:
        is_picture = new.given != "featuremap" and _is_picture(shape, channels)
        rows["input_name"].append(name)
        rows["input_type_rt"].append(new.given if is_picture else "featuremap")
        rows["input_type_train"].append(new.trained if is_picture else "featuremap")
        means.append(new.mean if is_picture and new.mean else "None")
        scales.append(new.scale if is_picture and new.scale else "None")
    if new.mean:
        rows["mean_value"] = means
    if new.scale:
        rows["scale_value"] = scales
    return "".join(f"{key}: {';'.join(values)}\n" for key, values in rows.items())


def advice(inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> list[str]:
    """The differences between a model and the expectations of the board's public programs: one message each."""
    told = [
        f"The input {spec.name} looks like a picture and takes {spec.graph_dtype.name} numbers; most "
        f"board programs pass NV12: --input nv12."
        for spec in inputs
        if spec.image is None and _is_picture(spec.valid_shape, 3)
    ]
    told += [
        f"The output {spec.name} is NCHW {list(spec.valid_shape)}; most programs read a detector's heads as NHWC: "
        "--output nhwc."
        for spec in outputs
        if spec.layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW and not _is_nhwc(spec.valid_shape)
    ]
    told += [
        f"The output {spec.name} is quantized ({spec.quantization.kind.name}): the program dequantizes it."
        for spec in outputs
        if spec.quantization is not None
    ]
    return told


def _is_picture(shape: tuple[int, ...], channels: int) -> bool:
    return len(shape) == _RANK and channels in {shape[1], shape[3]}


def _is_nhwc(shape: tuple[int, ...]) -> bool:
    """Whether the sizes of a square come first, as in a head in NHWC."""
    return shape[1] == shape[2] != shape[3] or shape[2] == shape[3] == 1


def _transpose(graph: GraphProto, value: ValueInfoProto) -> None:
    """Make an output of four dimensions NHWC: before its DequantizeLinear, which stays the last node."""
    shape = shape_of(value)
    if len(shape) != _RANK or _is_nhwc(shape):
        return
    producer = next(node for node in graph.node if value.name in node.output)
    at = list(graph.node).index(producer)
    before = free_name(graph, f"{value.name}.nchw")
    if producer.op_type == "DequantizeLinear":
        node = helper.make_node("Transpose", [producer.input[0]], [before], perm=TO_NHWC)
        producer.input[0] = before
        graph.node.insert(at, node)
    else:
        rename_reads(graph, value.name, before)
        producer.output[list(producer.output).index(value.name)] = before
        graph.node.insert(at + 1, helper.make_node("Transpose", [before], [value.name], perm=TO_NHWC))
    sizes = [value.type.tensor_type.shape.dim[axis] for axis in TO_NHWC]
    kept = [type(size).FromString(size.SerializeToString()) for size in sizes]
    del value.type.tensor_type.shape.dim[:]
    value.type.tensor_type.shape.dim.extend(kept)
