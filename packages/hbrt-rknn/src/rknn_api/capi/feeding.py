"""Convert between a program's bytes and the graph's arrays, for every layout and type. Pure."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbrt.quantize.numbers import quantize
from rknn_api import layouts
from rknn_api.capi.attributes import Side, dims_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rknn_api.container import TensorInfo


class Form(NamedTuple):
    """How a program's bytes are read or written.

    Attributes:
        dtype: numpy's name for the type.
        layout: NCHW, NHWC, NC1HWC2 or UNDEFINED.
        w_stride: Pixels from row to row in NHWC, 0 for the width.
        h_stride: Rows from image to image, 0 for the height.
        is_stored: Whether the numbers are the model's own (pass_through): quantized, mean and deviation applied.
        c2: For NC1HWC2.
    """

    dtype: str
    layout: str
    w_stride: int = 0
    h_stride: int = 0
    is_stored: bool = False
    c2: int = 0


def size_of(side: Side, form: Form) -> int:
    """Bytes of a tensor in a form."""
    dims, element = dims_in(side, form.layout, form.c2), np.dtype(form.dtype).itemsize
    if form.layout == "NHWC":
        return layouts.strided_bytes(dims, form.w_stride, form.h_stride, element)
    return prod(dims) * element


def in_place(raw: memoryview, side: Side, form: Form) -> NDArray[Any] | None:
    """A view of a program's bytes as the graph's array; None if the type, order or stride differs.

    Args:
        raw: At least ``size_of`` bytes.
        side: The input or output.
        form: Form of the bytes.
    """
    dims = dims_in(side, form.layout, form.c2)
    is_sparse = form.layout == "NHWC" and size_of(side, form) != prod(dims) * np.dtype(form.dtype).itemsize
    if form.dtype != side.info.dtype or is_sparse or not _is_in_order(dims, form.layout, side):
        return None
    array = np.frombuffer(raw, form.dtype, prod(dims)).reshape(side.shape)
    return array if array.flags.aligned else None


def _is_in_order(dims: tuple[int, ...], layout: str, side: Side) -> bool:
    """Whether elements in a layout have the graph's order; also true if the transposed dimensions have one element."""
    if layout in {"UNDEFINED", side.info.layout}:
        return True
    n, c, h, w = side.nchw
    return prod(dims) == n * c * h * w and 1 in {c, h * w}


def to_graph(raw: memoryview, side: Side, form: Form, made: NDArray[Any] | None = None) -> NDArray[Any]:
    """The input array for the graph.

    Args:
        raw: At least ``size_of`` bytes.
        side: The input.
        form: Form of the bytes.
        made: Destination, with the graph's type and shape; None for a new array.

    Returns:
        C-contiguous array in the graph's layout and type, a copy.
    """
    dims = dims_in(side, form.layout, form.c2)
    data = np.frombuffer(raw, form.dtype, size_of(side, form) // np.dtype(form.dtype).itemsize)
    if form.layout == "NHWC":
        given = layouts.without_strides(data, dims, form.w_stride, form.h_stride)
    else:
        given = data.reshape(dims)
    if form.layout == "NC1HWC2":
        given, layout = layouts.from_native(given, side.nchw[1]), "NCHW"
    else:
        layout = form.layout
    turned = _turned(given, layout, side.info.layout)
    if form.is_stored:
        turned = _real(turned, side.info)
    if made is None:
        return np.array(turned, side.info.dtype, order="C")
    np.copyto(made, turned, casting="unsafe")
    return made


def from_graph(array: NDArray[Any], side: Side, form: Form) -> NDArray[Any]:
    """An output in the requested format: an array with the bytes for the program."""
    stored = array if form.dtype == side.info.dtype else _stored(array, side.info, form.dtype)
    if form.layout in {"UNDEFINED", side.info.layout}:
        return np.ascontiguousarray(stored)
    nchw = _turned(stored, side.info.layout, "NCHW")
    if form.layout == "NC1HWC2":
        return layouts.to_native(nchw, layouts.native_shape(nchw.shape, form.c2))
    return np.ascontiguousarray(_turned(nchw, "NCHW", form.layout))


def _turned(array: NDArray[Any], has: str, wants: str) -> NDArray[Any]:
    if has == "NHWC" and wants == "NCHW":
        return array.transpose(0, 3, 1, 2)
    if has == "NCHW" and wants == "NHWC":
        return array.transpose(0, 2, 3, 1)
    return array


def _real(stored: NDArray[Any], info: TensorInfo) -> NDArray[Any]:
    """The values for the graph so that it computes with these stored numbers, although it quantizes and normalizes."""
    if info.stored == info.dtype:
        return stored
    real = stored.astype(np.float64)
    if info.stored in {"int8", "uint8", "int16", "uint16"}:
        real = (real - info.zero_point) * info.scale
    along = [1] * stored.ndim
    channel = {"NCHW": 1, "NHWC": 3}.get(info.layout, stored.ndim - 1)
    for factor, is_mean in ((info.std, False), (info.mean, True)):
        if factor and stored.ndim:
            along[channel] = len(factor)
            each = np.asarray(factor, np.float64).reshape(along)
            real = real + each if is_mean else real * each
    return real


def _stored(array: NDArray[Any], info: TensorInfo, dtype: str) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "f" or dtype != info.stored:
        return array.astype(kind)
    scale, zero_point = np.array(info.scale, np.float32), np.array(info.zero_point, np.int32)
    return quantize(array, scale, zero_point, kind, zero_point_last=True)
