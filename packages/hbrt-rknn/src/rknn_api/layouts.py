"""The memory layouts of tensors on each chip: NC1HWC2, strides, alignment, and the permitted changes of an attribute.

Pure, except that ``rules_of`` reads a chip's profile.

Source: RKNN SDK advanced guide (chapter 5), 5.1 and 5.2; RKNN C API Reference (2.3.2), zero-copy attributes,
https://github.com/airockchip/rknn-toolkit2
Emulator: unused lanes of C2 are zeros, but undefined on a board; widths are aligned in pixels.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbrt.profiles.profile import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PICTURE_CHANNELS = frozenset({1, 3, 4})
"""An input with this many channels is NHWC to the NPU, with rows of w_stride pixels."""

_ROUND_PIXELS, _ROUND_BYTES = 4, 1024  # of a native tensor, as in published logs of the RK3588

_RV = 3  # the column of RV1103 and RV1106 in the table of functions

INPUT_EDITS = {
    "bool": ("bool",),
    "int8": ("int8", "uint8", "float32"),
    "float16": ("uint8", "float16", "float32"),
    "int16": ("int16",),
    "int32": ("int32",),
    "int64": ("int64",),
}
"""By type of a model's input, the types that a program may feed it with in the zero-copy API."""

OUTPUT_EDITS = {
    "bool": ("bool",),
    "int8": ("int8", "float32", "float16"),
    "float16": ("float16", "float32"),
    "int16": ("int16",),
    "int32": ("int32",),
    "int64": ("int64",),
}
"""By type of a model's output, the types that a program may request."""

OUTPUT_LAYOUTS = {
    "NC1HWC2": ("NC1HWC2", "NCHW"),
    "NCHW": ("NCHW",),
    "NHWC": ("NHWC",),
    "UNDEFINED": ("UNDEFINED",),
}
"""By an output's queried layout, the layouts that a program may request."""


class Rules(NamedTuple):
    """A chip's requirements.

    Attributes:
        c2: By type; 0 if it has no such layout.
        width_align: Widths are rounded up to a multiple of this.
        bytes_align: Sizes are rounded up to a multiple of this.
        output_edits: As ``OUTPUT_EDITS``; RV1103 and RV1106 do not produce float32.
    """

    c2: dict[str, int]
    width_align: int
    bytes_align: int
    output_edits: dict[str, tuple[str, ...]]


@cache
def rules_of(platform: str) -> Rules:
    """The rules of a chip, such as "rk3588".

    Raises:
        BadProfileError: unknown profile, or it has no NPU.

    Source: RKNN SDK advanced guide (chapter 5), table 5-7
    """
    profile = find(platform)
    c2 = {kind: profile.whole(f"npu.c2_{kind}") for kind in ("int8", "float16", "int16")}
    edits = OUTPUT_EDITS
    if profile.whole("npu.functions") == _RV:
        edits = {kind: tuple(one for one in to if one != "float32") for kind, to in edits.items()}
    c2["uint8"] = c2["int8"]
    return Rules(c2, profile.whole("npu.width_align"), profile.whole("npu.bytes_align"), edits)


def native_shape(shape: Sequence[int], c2: int, element_bytes: int = 0) -> tuple[int, int, int, int, int]:
    """NC1HWC2 of a shape in NCHW.

    Args:
        shape: N, C, H, W.
        c2: Innermost channels.
        element_bytes: Size of the type, for C1 as large as a chip may report it, with tensors rounded as by
            ``native_bytes``; 0 for the smallest C1.
    """
    n, c, h, w = shape
    c1 = -(-c // c2)
    if element_bytes:
        c1 = native_bytes((1, c, h, w), c2, element_bytes) // (h * w * c2 * element_bytes)
    return n, c1, h, w, c2


def native_bytes(shape: Sequence[int], c2: int, element_bytes: int) -> int:
    """Bytes of a tensor in NC1HWC2: planes of more than one pixel rounded up to 4, images to 1024 bytes."""
    n, c, h, w = shape
    pixels = 1 if h * w == 1 else rounded_bytes(h * w, _ROUND_PIXELS)
    return n * rounded_bytes(-(-c // c2) * c2 * element_bytes * pixels, _ROUND_BYTES)


def native_offset(n: int, c: int, h: int, w: int, native: Sequence[int]) -> int:
    """The index of an element in NC1HWC2, in elements from the tensor's start."""
    _, c1, height, width, c2 = native
    return (((n * c1 + c // c2) * height + h) * width + w) * c2 + c % c2


def to_native(array: NDArray[Any], native: Sequence[int]) -> NDArray[Any]:
    """NCHW to NC1HWC2, any number of images; unused lanes are zero.

    Args:
        array: N, C, H, W.
        native: As from ``native_shape``, or with a larger C1.
    """
    n, c, h, w = array.shape
    _, c1, _, _, c2 = native
    padded = np.zeros((n, c1 * c2, h, w), array.dtype)
    padded[:, :c] = array
    return np.ascontiguousarray(padded.reshape(n, c1, c2, h, w).transpose(0, 1, 3, 4, 2))


def from_native(array: NDArray[Any], channels: int) -> NDArray[Any]:
    """NC1HWC2 to NCHW, any number of images; unused lanes are dropped."""
    n, c1, h, w, c2 = array.shape
    return np.ascontiguousarray(array.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c2, h, w)[:, :channels])


def stride_of(width: int, channels: int, align: int) -> int:
    """Pixels per row of an NHWC input: its width, rounded up for a picture."""
    return -(-width // align) * align if channels in PICTURE_CHANNELS else width


def strided_bytes(shape: Sequence[int], w_stride: int, h_stride: int, element_bytes: int) -> int:
    """Bytes of an NHWC tensor with the given strides of rows and images; 0 means as in the shape."""
    n, h, w, c = shape
    return n * (h_stride or h) * (w_stride or w) * c * element_bytes


def with_strides(array: NDArray[Any], w_stride: int, h_stride: int = 0) -> NDArray[Any]:
    """An NHWC tensor with padded rows and images, zeros in between: one dimension."""
    n, h, w, c = array.shape
    wide = np.zeros((n, h_stride or h, w_stride or w, c), array.dtype)
    wide[:, :h, :w] = array
    return wide.reshape(-1)


def without_strides(data: NDArray[Any], shape: Sequence[int], w_stride: int, h_stride: int = 0) -> NDArray[Any]:
    """The NHWC tensor in memory with padded rows and images.

    Args:
        data: One-dimensional: the elements and the gaps between them.
        shape: N, H, W, C without gaps.
        w_stride: Pixels from row to row, 0 for the width.
        h_stride: Rows from image to image, 0 for the height.

    Returns:
        A view.
    """
    n, h, w, c = shape
    wide = (n, h_stride or h, w_stride or w, c)
    return data[: prod(wide)].reshape(wide)[:, :h, :w]


def rounded_bytes(size_bytes: int, align: int) -> int:
    """A size rounded up to a multiple."""
    return -(-size_bytes // align) * align


def nhwc_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """N, C, H, W as N, H, W, C."""
    n, c, h, w = shape
    return n, h, w, c
