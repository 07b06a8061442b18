"""Combine a model with its description: the graph to run, and the tensor properties that the API reports."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from onnx import ModelProto, ValueInfoProto

from arm_client.dnn.errors import incompatible, refusals
from arm_client.dnn.loading.description import Description, InputDescription
from arm_client.dnn.spec.dtypes import carried
from arm_client.dnn.spec.properties import image_spec, shape_of, spec_of
from arm_client.dnn.spec.spec import ImageSpec, TensorSpec
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout
from hbrt.models.loading.boundary import quantized_boundary
from hbrt.models.spec.graph import Graph
from hbrt.models.spec.graph_edits import (
    TO_NCHW,
    TO_NHWC,
    fix_shape,
    graph_inputs,
    infer_missing_shapes,
    set_batch,
    transpose_input,
)
from hbrt.models.spec.quantization import as_shift
from hbrt.models.spec.spec import Quantization

NCHW, NHWC = hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW, hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC
IMAGE_TYPES = {
    "nv12": hbDNNDataType.HB_DNN_IMG_TYPE_NV12,
    "yuv444": hbDNNDataType.HB_DNN_IMG_TYPE_YUV444,
    "rgb": hbDNNDataType.HB_DNN_IMG_TYPE_RGB,
    "bgr": hbDNNDataType.HB_DNN_IMG_TYPE_BGR,
    "gray": hbDNNDataType.HB_DNN_IMG_TYPE_Y,
}
ZERO_POINTS = (-128, 127)
"""Types that hbDNNQuantiScale can hold."""

IMAGE_DTYPES = ("float32", "float16", "float64", "uint8")
"""Graph input types allowed where the program provides a picture."""


class Specified(NamedTuple):
    """A graph to run, and its tensor specs.

    Attributes:
        proto: The original model if nothing had to change, else a copy.
        inputs: In the graph's order.
        outputs: In the graph's order.
        notes: What the API cannot report about the tensors, and why.
    """

    proto: ModelProto
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    notes: tuple[str, ...] = ()


@refusals()
def specify(proto: ModelProto, description: Description) -> Specified:
    """Combine a model with its description.

    Args:
        proto: A checked model; it is not modified.
        description: From the file next to the model; may be empty.

    Raises:
        ModelError: INCOMPATIBLE_MODEL: the two do not match, or the API cannot represent a tensor.
    """
    described = description.inputs
    if _must_change(proto, description):
        copy = ModelProto()
        copy.CopyFrom(proto)
        proto = copy
        for value in graph_inputs(proto.graph):
            shape = described[value.name].shape if value.name in described else None
            if shape is not None:
                fix_shape(value, shape)
        if description.batch is not None and description.batch > 1:
            set_batch(proto, description.batch)
        infer_missing_shapes(proto)
    images = {name for name, one in described.items() if one.is_image}
    boundary = quantized_boundary(proto, images, ZERO_POINTS)
    graph = boundary.model.graph
    rules = dict(boundary.quantization)
    if description.prefers_shift:
        rules = {name: as_shift(rule) for name, rule in rules.items()}
    inputs = []
    for value in graph_inputs(graph):
        one = described.get(value.name, InputDescription())
        if one.is_image:
            inputs.append(_image(value, one))
        else:
            inputs.append(_numbers(boundary.model, value, one, rules.get(value.name)))
    made = Graph(boundary.model)
    outputs = tuple(
        spec_of(value, layout=_output_layout(made, value.name), quantization=rules.get(value.name))
        for value in graph.output
    )
    return Specified(boundary.model, tuple(inputs), outputs, boundary.notes)


def _must_change(proto: ModelProto, description: Description) -> bool:
    return (
        (description.batch or 1) > 1
        or any(one.shape is not None or _is_turned(one) for one in description.inputs.values())
        or any(not value.type.tensor_type.HasField("shape") for value in proto.graph.output)
    )


def _is_turned(one: InputDescription) -> bool:
    """Whether the program passes a featuremap in a layout other than the graph's."""
    return not one.is_image and None not in {one.layout_rt, one.layout_train} and one.layout_rt != one.layout_train


def _numbers(model: ModelProto, value: ValueInfoProto, one: InputDescription, rule: Quantization | None) -> TensorSpec:
    layout = _first_said(one.layout_rt, one.layout_train)
    if layout is not None and len(shape_of(value)) != 4:
        layout = None  # only 4-D tensors have layouts, but the compiler's files give one for every input
    elif layout is not None and _is_turned(one):
        transpose_input(model.graph, value, is_nhwc=layout == NHWC)
        if rule is not None:
            # The channel of a scale moves with its dimension.
            turned = TO_NHWC if layout == NHWC else TO_NCHW
            rule = replace(rule, axis=turned.index(rule.axis))
    return spec_of(value, is_input=True, layout=layout, quantization=rule)


def _output_layout(graph: Graph, name: str) -> hbDNNTensorLayout | None:
    """Return NHWC for an output that a Transpose from NCHW makes; None for the default."""
    while (at := graph.producers.get(name)) is not None:
        node = graph.nodes[at]
        if node.op_type == "Transpose":
            return NHWC if any(tuple(one.ints) == TO_NHWC for one in node.attribute if one.name == "perm") else None
        if node.op_type not in {"QuantizeLinear", "DequantizeLinear"}:
            return None
        name = node.input[0]
    return None


def _image(value: ValueInfoProto, one: InputDescription) -> TensorSpec:
    dtype, _ = carried(value.type.tensor_type.elem_type, value.name)
    if dtype.name not in IMAGE_DTYPES:
        raise incompatible(
            f"The input {value.name!r} is described as {one.type_rt}, but its type is {dtype.name} in the "
            f"graph; picture inputs must be one of {', '.join(IMAGE_DTYPES)}."
        )
    is_normalized = one.mean.any() or (one.scale != 1).any()
    if dtype.name == "uint8" and is_normalized:
        raise incompatible(
            f"The input {value.name!r} is uint8 in the graph, but its description normalizes it; remove mean_value "
            "and scale_value."
        )
    train_layout = one.layout_train
    if train_layout is None:
        train_layout = _layout_by_channels(shape_of(value), 1 if one.type_rt == "gray" else 3)
    image = ImageSpec(
        train_type=one.type_train,
        train_layout=train_layout,
        mean=one.mean,
        scale=one.scale,
        is_resizer=one.source == "resizer",
        video_range=one.video_range,
    )
    return image_spec(value, IMAGE_TYPES[one.type_rt], train_layout if one.layout_rt is None else one.layout_rt, image)


def _first_said(*layouts: hbDNNTensorLayout | None) -> hbDNNTensorLayout | None:
    """Return the first that is not None; `or` would skip NHWC, which is 0."""
    return next((layout for layout in layouts if layout is not None), None)


def _layout_by_channels(shape: tuple[int, ...], channels: int) -> hbDNNTensorLayout:
    """Return NCHW, as in ONNX, unless only the last size can be the channel count."""
    is_last = len(shape) == 4 and shape[3] == channels and shape[1] != channels
    return NHWC if is_last else NCHW
