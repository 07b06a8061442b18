"""The result of a query about a tensor: dimensions, layout, type, strides, sizes. Pure.

Source: RKNN SDK advanced guide (chapter 5), 5.2; RKNN C API Reference (2.3.2), rknn_tensor_attr,
https://github.com/airockchip/rknn-toolkit2
Emulator: an output without a native layout on a chip keeps the model's layout.
"""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import NamedTuple

import numpy as np

from hbrt.findings.text import counted
from rknn_api import layouts, python_types, types
from rknn_api.container import TensorInfo
from rknn_api.errors import invalid_model
from rknn_api.layouts import Rules
from rknn_api.types import rknn_tensor_attr, rknn_tensor_format, rknn_tensor_qnt_type

_PLAIN_TYPES = frozenset({"bool", "int64"})  # which the NPU takes as NCHW, unquantized
_QUANTIZED = frozenset({"int8", "uint8", "int16", "uint16"})


class View(Enum):
    """The layout in which a query describes a tensor."""

    PLAIN = "plain"
    NATIVE = "native"
    NATIVE_NHWC = "native NHWC"
    CURRENT = "current"


class Side(NamedTuple):
    """A tensor of a model at its current shape.

    Attributes:
        info: Its description.
        shape: In the graph's layout, with all images of a batch.
        is_input: Whether it is an input.
    """

    info: TensorInfo
    shape: tuple[int, ...]
    is_input: bool

    @property
    def is_picture(self) -> bool:
        """Whether it has four dimensions with a known order."""
        return len(self.shape) == 4 and self.info.layout in {"NCHW", "NHWC"}

    @property
    def nchw(self) -> tuple[int, ...]:
        """A four-dimensional shape as N, C, H, W."""
        if self.info.layout == "NCHW":
            return self.shape
        n, h, w, c = self.shape
        return n, c, h, w


def layout_of(side: Side, view: View, rules: Rules) -> str:
    """The layout in which a query describes a tensor."""
    if not side.is_picture:
        return "UNDEFINED"
    kind, channels = side.info.stored, side.nchw[1]
    if side.is_input:
        if kind in _PLAIN_TYPES:
            return "NCHW"
        is_native = view in {View.NATIVE, View.NATIVE_NHWC} and channels not in layouts.PICTURE_CHANNELS
        return "NC1HWC2" if is_native and rules.c2.get(kind) else "NHWC"
    if view is View.PLAIN:
        return side.info.layout
    if view is View.NATIVE:
        return "NC1HWC2" if rules.c2.get(kind) else side.info.layout
    return "NHWC"


def dims_in(side: Side, layout: str, c2: int) -> tuple[int, ...]:
    """The dimensions of a tensor in a layout."""
    if layout == "UNDEFINED":
        return side.shape
    if layout == "NC1HWC2":
        return layouts.native_shape(side.nchw, c2)
    return layouts.nhwc_shape(side.nchw) if layout == "NHWC" else side.nchw


def fill(attr: rknn_tensor_attr, side: Side, view: View, rules: Rules) -> None:
    """Write the result of a query; ``index`` remains the caller's.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: the structure cannot hold the type or the number of dimensions.
    """
    if side.info.stored not in python_types.DTYPES or len(side.shape) > types.RKNN_MAX_DIMS:
        raise invalid_model(
            f"{side.info.name!r} has type {side.info.stored} and {counted(len(side.shape), 'dimension')}; "
            f"the C API supports {', '.join(python_types.DTYPES)}, and {types.RKNN_MAX_DIMS} dimensions."
        )
    info, layout = side.info, layout_of(side, view, rules)
    dims = dims_in(side, layout, rules.c2.get(info.stored, 0))
    element = np.dtype(info.stored).itemsize
    attr.n_dims = len(dims)
    attr.dims[:] = [*dims, *[0] * (types.RKNN_MAX_DIMS - len(dims))]
    attr.name = info.name.encode()[: types.RKNN_MAX_NAME_LEN - 1].decode(errors="ignore").encode()
    attr.n_elems = prod(dims)
    attr.size = attr.n_elems * element
    attr.fmt = rknn_tensor_format[f"RKNN_TENSOR_{layout}"]
    attr.type = python_types.DTYPES[info.stored]
    is_affine = info.stored in _QUANTIZED or info.stored == "float16"
    attr.qnt_type = (
        rknn_tensor_qnt_type.RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC
        if is_affine
        else rknn_tensor_qnt_type.RKNN_TENSOR_QNT_NONE
    )
    attr.fl, attr.zp, attr.scale = 0, info.zero_point, info.scale
    attr.w_stride = attr.h_stride = attr.pass_through = 0
    attr.size_with_stride = attr.size
    if layout == "NHWC" and side.is_input:
        attr.w_stride = layouts.stride_of(dims[2], dims[3], rules.width_align)
        attr.size_with_stride = layouts.strided_bytes(dims, attr.w_stride, 0, element)
    elif side.is_picture:
        attr.w_stride = side.nchw[3]
    elif side.is_input:
        attr.size_with_stride = layouts.rounded_bytes(attr.size, rules.bytes_align)
