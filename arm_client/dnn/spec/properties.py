"""Rules for alignment, strides and byte sizes, as a TensorSpec and the matching C structure. Pure.

docs/dnn-tensors.md explains the rules.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arm_client.dnn.errors import incompatible, refusals
from arm_client.dnn.spec.dtypes import NIBBLES, carried
from arm_client.dnn.spec.spec import ImageSpec, TensorSpec
from hbrt.dnn_types import (
    HB_DNN_TENSOR_MAX_DIMENSIONS,
    hbDNNDataType,
    hbDNNQuantiType,
    hbDNNTensorLayout,
    hbDNNTensorProperties,
    hbDNNTensorShape,
)
from hbrt.models.spec import graph
from hbrt.models.spec.spec import DYNAMIC, Quantization, QuantizationKind

if TYPE_CHECKING:
    from onnx import ValueInfoProto

IMAGE_ALIGNMENT = 16
"""Row alignment of Y and NV12, in bytes."""

MAX_BYTES = (1 << 31) - 1
"""alignedByteSize is an int32."""

NV12 = frozenset({hbDNNDataType.HB_DNN_IMG_TYPE_NV12, hbDNNDataType.HB_DNN_IMG_TYPE_NV12_SEPARATE})
PLANAR = NV12 | {hbDNNDataType.HB_DNN_IMG_TYPE_Y}
"""Images with aligned rows; RGB, BGR and YUV444 are packed."""


def up(value: int, multiple: int) -> int:
    """Round a value up to a multiple."""
    return -(-value // multiple) * multiple


def bayes_row_bytes(size: int) -> int:
    """Return the row length on the J5's BPU: the smallest 256 * k + {0, 16, 32, 64, 128} that holds `size` bytes.

    Source: third-party notes on the Bayes BPU, feature-map alignment; no manual confirms them.
    """
    whole, rest = divmod(size, 256)
    return whole * 256 + next(step for step in (0, 16, 32, 64, 128, 256) if step >= rest)


def aligned_shape_of(
    shape: tuple[int, ...], layout: hbDNNTensorLayout, item_bytes: int, *, is_input: bool
) -> tuple[int, ...]:
    """Return the sizes in memory of a quantized 4-D tensor; any other shape is returned unchanged.

    NHWC: C is padded to `bayes_row_bytes`, except for inputs with C <= 4, where H is rounded up to a multiple of 2 and
    W to one of 32. NCHW: W is padded to `bayes_row_bytes`.
    """
    if len(shape) != 4 or DYNAMIC in shape or 0 in shape:
        return shape
    batch, *inner = shape
    if layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW:
        channels, height, width = inner
        return (batch, channels, height, bayes_row_bytes(width * item_bytes) // item_bytes)
    if layout != hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC:
        return shape
    height, width, channels = inner
    if is_input and channels <= 4:
        return (batch, up(height, 2), up(width, 32), channels)
    return (batch, height, width, bayes_row_bytes(channels * item_bytes) // item_bytes)


def strides_of(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Return the strides in bytes of a dense row-major array."""
    return tuple(item_bytes * math.prod(shape[at + 1 :]) for at in range(len(shape)))


@refusals()
def shape_of(value: ValueInfoProto) -> tuple[int, ...]:
    """Return a graph tensor's shape, with DYNAMIC for open sizes.

    Raises:
        ModelError: INCOMPATIBLE_MODEL: not a tensor, or the number of dimensions is unknown or too large.
    """
    shape = graph.shape_of(value)
    if len(shape) > HB_DNN_TENSOR_MAX_DIMENSIONS:
        raise incompatible(
            f"The tensor {value.name!r} has {len(shape)} dimensions; the API allows {HB_DNN_TENSOR_MAX_DIMENSIONS}."
        )
    return shape


def spec_of(
    value: ValueInfoProto,
    *,
    is_input: bool = False,
    layout: hbDNNTensorLayout | None = None,
    quantization: Quantization | None = None,
) -> TensorSpec:
    """Return the memory layout of a numeric tensor.

    Args:
        value: The graph's input or output.
        is_input: Whether it is an input; quantized inputs with few channels are padded differently from outputs.
        layout: None for the default: NCHW for four dimensions, as in ONNX, else NONE.
        quantization: None for an unquantized tensor, which is not padded.

    Raises:
        ModelError: INCOMPATIBLE_MODEL: the API cannot represent the type, the dimensions or the size.
    """
    shape = shape_of(value)
    dtype, tensor_type = carried(value.type.tensor_type.elem_type, value.name)
    if layout is None:
        is_four = len(shape) == 4
        layout = hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW if is_four else hbDNNTensorLayout.HB_DNN_LAYOUT_NONE
    is_nibble = tensor_type in NIBBLES
    padded = shape
    if quantization is not None and not is_nibble:
        padded = aligned_shape_of(shape, layout, dtype.itemsize, is_input=is_input)
    stride, size = (0,) * len(shape), DYNAMIC
    if DYNAMIC not in shape and is_nibble:  # two per byte: elements are not addressable
        size = (math.prod(shape) + 1) // 2
    elif DYNAMIC not in shape:
        stride, size = strides_of(padded, dtype.itemsize), math.prod(padded) * dtype.itemsize
    return TensorSpec(
        name=value.name,
        tensor_type=tensor_type,
        layout=layout,
        valid_shape=shape,
        aligned_shape=padded,
        stride=stride,
        aligned_bytes=_checked_bytes(value.name, size),
        graph_dtype=dtype,
        graph_shape=shape,
        quantization=quantization,
    )


def image_spec(
    value: ValueInfoProto,
    tensor_type: hbDNNDataType,
    layout: hbDNNTensorLayout,
    image: ImageSpec,
) -> TensorSpec:
    """Return the memory layout of an image: rows of Y and NV12 are multiples of 16 bytes, others are packed.

    The valid shape of NV12 is that of the picture, (N, 3, H, W), although UV has a quarter of the pixels; its strides
    are 0, as in the manual. The images of a batch are stored one after another.

    Args:
        value: The graph's input, four-dimensional in the layout `image.train_layout`.
        tensor_type: An HB_DNN_IMG_TYPE_* value.
        layout: Of the picture in memory: NHWC or NCHW. Y and NV12 are always NCHW.
        image: How the picture is converted to the graph's input.

    Raises:
        ModelError: INCOMPATIBLE_MODEL: open sizes, NV12 with odd sides, or too many bytes.
    """
    name, shape = value.name, shape_of(value)
    if len(shape) != 4 or DYNAMIC in shape or 0 in shape:
        raise incompatible(
            f"The image input {name!r} has the shape {list(shape)} in the graph; an image needs four "
            f"known sizes: set input_shape in the YAML file, e.g. 1x3x224x224."
        )
    dtype, _ = carried(value.type.tensor_type.elem_type, name)
    is_channels_first = image.train_layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    batch, height, width = (shape[0], *(shape[2:] if is_channels_first else shape[1:3]))
    channels = shape[1] if is_channels_first else shape[3]
    needed = 1 if tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_Y else 3
    if channels != needed:
        raise incompatible(
            f"The input {name!r} has {channels} channels in the graph, but {tensor_type.name} has {needed}: check "
            f"input_type_rt, input_type_train and input_layout_train."
        )
    if tensor_type in NV12 and (height % 2 or width % 2):
        raise incompatible(
            f"The input {name!r} is NV12 with {height} rows and {width} columns: a UV pair covers 2 x 2 pixels, so "
            f"both must be even."
        )
    if tensor_type in PLANAR:
        layout = hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    is_planes = layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    valid = (batch, channels, height, width) if is_planes else (batch, height, width, channels)
    padded = (*valid[:3], up(width, IMAGE_ALIGNMENT)) if tensor_type in PLANAR else valid
    is_nv12 = tensor_type in NV12
    return TensorSpec(
        name=name,
        tensor_type=tensor_type,
        layout=layout,
        valid_shape=valid,
        aligned_shape=padded,
        stride=(0,) * 4 if is_nv12 else strides_of(padded, 1),
        aligned_bytes=_checked_bytes(name, math.prod(padded) // (2 if is_nv12 else 1)),
        graph_dtype=dtype,
        graph_shape=shape,
        image=image,
    )


def _checked_bytes(name: str, size: int) -> int:
    if size > MAX_BYTES:
        raise incompatible(f"The tensor {name!r} has {size} bytes; alignedByteSize holds at most {MAX_BYTES}.")
    return size


def fill_properties(spec: TensorSpec, target: hbDNNTensorProperties) -> None:
    """Fill every field of a caller's structure, like hbDNNGetInputTensorProperties.

    Zero points are int8 in the C structure: a U8 tensor's value above 127 appears as its low 8 bits: 200 as -56.
    `TensorSpec.quantization` has the full value.
    """
    fill_shape(target.validShape, spec.valid_shape)
    fill_shape(target.alignedShape, spec.aligned_shape)
    target.tensorLayout = spec.layout
    target.tensorType = spec.tensor_type
    target.alignedByteSize = spec.aligned_bytes
    target.stride[:] = spec.stride + (0,) * (HB_DNN_TENSOR_MAX_DIMENSIONS - len(spec.stride))
    rule = spec.quantization or Quantization(QuantizationKind.NONE)
    target.quantiType = hbDNNQuantiType[rule.kind.name]
    target.quantizeAxis = rule.axis
    # From here on the caller's structure owns the arrays: they live as long as it or a copy of it.
    target.shift.shiftLen = rule.shift.size
    target.shift.shiftData = _pointer(rule.shift, ctypes.c_uint8)
    target.scale.scaleLen = rule.scale.size
    target.scale.scaleData = _pointer(rule.scale, ctypes.c_float)
    target.scale.zeroPointLen = rule.zero_point.size
    target.scale.zeroPointData = _pointer(rule.zero_point.astype(np.int8), ctypes.c_int8)


def _pointer(values: NDArray[Any], element: type[Any]) -> Any:
    if not values.size:
        return ctypes.POINTER(element)()
    return ctypes.cast((element * values.size)(*values.tolist()), ctypes.POINTER(element))


def fill_shape(target: hbDNNTensorShape, shape: Sequence[int]) -> None:
    """Write a shape into the C structure; unused dimensions are set to 0."""
    target.dimensionSize[:] = (*shape, *[0] * (HB_DNN_TENSOR_MAX_DIMENSIONS - len(shape)))
    target.numDimensions = len(shape)


def shape_in(shape: hbDNNTensorShape) -> tuple[int, ...]:
    """Return the sizes in a C structure. A number of dimensions outside 0..8 is clamped."""
    count = min(max(shape.numDimensions, 0), HB_DNN_TENSOR_MAX_DIMENSIONS)
    return tuple(shape.dimensionSize[:count])
