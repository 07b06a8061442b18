"""What a graph says of a tensor, as a TensorSpec; and a TensorSpec as the C structure. Pure."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from arm_client.dnn.dtypes import NIBBLES, carried
from arm_client.dnn.errors import incompatible
from arm_client.dnn.spec import DYNAMIC, TensorSpec
from hbrt.dnn_types import (
    HB_DNN_TENSOR_MAX_DIMENSIONS,
    hbDNNQuantiType,
    hbDNNTensorLayout,
    hbDNNTensorProperties,
    hbDNNTensorShape,
)

if TYPE_CHECKING:
    from onnx import ValueInfoProto


def spec_of(value: ValueInfoProto) -> TensorSpec:
    """Spec of a graph's input or output that is neither quantised nor an image: aligned as it is valid.

    Raises:
        ModelError: INCOMPATIBLE_MODEL for what the API cannot carry: no tensor, a foreign type, more than 8 dimensions.
    """
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise incompatible(
            f"{value.name!r} is a {(kind or 'value without a type').removesuffix('_type')}; the API carries tensors."
        )
    dtype, tensor_type = carried(value.type.tensor_type.elem_type, value.name)
    shape = tuple(
        dim.dim_value if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0 else DYNAMIC
        for dim in value.type.tensor_type.shape.dim
    )
    if len(shape) > HB_DNN_TENSOR_MAX_DIMENSIONS:
        raise incompatible(
            f"The tensor {value.name!r} has {len(shape)} dimensions; the API carries {HB_DNN_TENSOR_MAX_DIMENSIONS}."
        )
    is_nibble = tensor_type in NIBBLES
    stride = [0] * len(shape)
    aligned_bytes = DYNAMIC
    if DYNAMIC not in shape:
        aligned_bytes = (prod(shape) + 1) // 2 if is_nibble else prod(shape) * dtype.itemsize
        if not is_nibble:
            stride = [dtype.itemsize * prod(shape[at + 1 :]) for at in range(len(shape))]
    layout = hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW if len(shape) == 4 else hbDNNTensorLayout.HB_DNN_LAYOUT_NONE
    return TensorSpec(
        value.name, tensor_type, layout, shape, shape, tuple(stride), aligned_bytes, dtype, shape, None, None
    )


def fill_properties(spec: TensorSpec, target: hbDNNTensorProperties) -> None:
    """Write a spec into the C structure."""
    fill_shape(target.validShape, spec.valid_shape)
    fill_shape(target.alignedShape, spec.aligned_shape)
    target.tensorLayout = spec.layout
    target.tensorType = spec.tensor_type
    target.quantiType = hbDNNQuantiType.NONE
    target.quantizeAxis = 0
    target.alignedByteSize = spec.aligned_bytes
    target.stride[:] = spec.stride + (0,) * (HB_DNN_TENSOR_MAX_DIMENSIONS - len(spec.stride))


def fill_shape(target: hbDNNTensorShape, shape: tuple[int, ...]) -> None:
    """Write a shape into the C structure."""
    target.dimensionSize[:] = shape + (0,) * (HB_DNN_TENSOR_MAX_DIMENSIONS - len(shape))
    target.numDimensions = len(shape)
