"""An ONNX file with a board's file name, next to the description that a compiled model would have."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import GraphProto, ValueInfoProto, helper

from arm_client.dnn.spec.spec import TensorSpec
from hbrt.dnn_types import hbDNNTensorLayout
from hbrt.models.spec.graph import shape_of
from hbrt.models.spec.graph_edits import TO_NHWC, free_name, graph_inputs, rename_reads

_RANK = 4  # of pictures and of a detector's heads


def write(source: Path, target: Path, *, is_nhwc: bool) -> list[tuple[str, tuple[int, ...]]]:
    """Write a copy of an ONNX file, with outputs of four dimensions as NHWC where that is wanted.

    Returns:
        Names and shapes of the inputs.

    Raises:
        OSError: a file cannot be read or written. DecodeError: the source is not an ONNX file.
    """
    model = onnx.load(str(source))
    if is_nhwc:
        for value in model.graph.output:
            _transpose(model.graph, value)
    onnx.save(model, str(target))
    return [(value.name, shape_of(value)) for value in graph_inputs(model.graph)]


def describe(inputs: list[tuple[str, tuple[int, ...]]], given: str, trained: str, mean: str, scale: str) -> str:
    """Return the YAML file of a model. An input that is not a picture is a featuremap.

    Args:
        inputs: Names and shapes.
        given: The program's format for a picture: nv12, rgb, bgr, yuv444, gray, or featuremap for the numbers.
        trained: The graph's training format, for pictures.
        mean: Mean per channel, subtracted first; "" for none.
        scale: Scale per channel, multiplied next; "" for none.
    """
    channels = 1 if given == "gray" else 3
    rows: dict[str, list[str]] = {}
    for name, shape in inputs:
        is_picture = given != "featuremap" and _is_picture(shape, channels)
        of_input = {
            "input_name": name,
            "input_type_rt": given if is_picture else "featuremap",
            "input_type_train": trained if is_picture else "featuremap",
            **({"mean_value": mean if is_picture else "None"} if mean else {}),
            **({"scale_value": scale if is_picture else "None"} if scale else {}),
        }
        for key, value in of_input.items():
            rows.setdefault(key, []).append(value)
    return "".join(f"{key}: {';'.join(values)}\n" for key, values in rows.items())


def has_picture(inputs: list[tuple[str, tuple[int, ...]]], given: str) -> bool:
    """Whether an input may take pictures of a format: four dimensions with its channels."""
    return any(_is_picture(shape, 1 if given == "gray" else 3) for _, shape in inputs)


def advice(inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], *, is_nhwc: bool) -> list[str]:
    """The differences between a model and the expectations of the board's public programs: one message each.

    Args:
        inputs: Of the model.
        outputs: Of the model.
        is_nhwc: Whether ``write`` made outputs of four dimensions NHWC.
    """
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
        if not is_nhwc and spec.layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW and not _is_nhwc(spec.valid_shape)
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
