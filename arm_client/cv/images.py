"""Images as arrays for CV ops: their descriptors, and whether they can be used in place."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from arm_client.arrays import BoardArray, dtype_of, is_on_board
from arm_client.cabi.arguments import short_repr
from arm_client.checks import refusal
from arm_client.client import Board
from arm_client.errors import CallerError
from hbrt.cv.image import BGR, ELEMENTS, NV12, RGB, Y_F32, Y_S16, Y_S32, Y_U8, ImageKind
from hbrt.cv.structures import hbVPImage


class Nv12(NamedTuple):
    """An NV12 image as two arrays, at any addresses.

    Attributes:
        y: (height, width) uint8, both even.
        uv: (height / 2, width / 2, 2) uint8: U, V.
    """

    y: NDArray[Any]
    uv: NDArray[Any]


Picture = TypeVar("Picture", NDArray[Any], Nv12)
"""An array (height, width), or (height, width, 3) for colors, or an Nv12; results are of that kind, on the board."""

_BY_DTYPE = {np.dtype(ELEMENTS[kind.type].dtype): kind for kind in (Y_U8, Y_S16, Y_S32, Y_F32)}
COLOR_CHANNELS = 3


def first_plane(image: NDArray[Any] | Nv12) -> Any:
    """Return the array itself, or Y; `Any`, because only arrays on the board have an address."""
    return image.y if isinstance(image, Nv12) else image


def size_of(image: NDArray[Any] | Nv12) -> tuple[int, int]:
    """Height and width in pixels."""
    height, width = first_plane(image).shape[:2]
    return height, width


def kind_of(image: NDArray[Any] | Nv12, channels: ImageKind = RGB) -> ImageKind:
    """Return the format and type of an image; `channels` is the channel order of a color image.

    Raises:
        CallerError: it has no pixels, or an invalid shape or type.
    """
    if isinstance(image, Nv12):
        for plane in image:
            if not isinstance(plane, np.ndarray):
                raise refusal(f"A plane of the Nv12 is a {type(plane).__name__}: both must be numpy arrays.")
        y, uv = image.y.shape, image.uv.shape
        if len(y) != 2 or uv != (y[0] // 2, y[1] // 2, 2) or {image.y.dtype, image.uv.dtype} != {np.dtype(np.uint8)}:
            raise refusal(
                f"The planes of NV12 have shapes {y} and {uv}, types {image.y.dtype} and {image.uv.dtype}: must be "
                "(height, width) and (height / 2, width / 2, 2), both uint8."
            )
        return NV12
    if not isinstance(image, np.ndarray):
        raise refusal(f"The image is a {type(image).__name__}: use a numpy array or an Nv12.")
    if image.ndim == COLOR_CHANNELS and image.shape[2] == COLOR_CHANNELS and image.dtype == np.uint8:
        return channels
    kind = _BY_DTYPE.get(image.dtype)
    if image.ndim != 2 or kind is None:
        raise refusal(
            f"An array of shape {image.shape} and type {image.dtype} is not an image: use (height, width) of uint8, "
            "int16, "
            "int32 or float32, (height, width, 3) of uint8, or an Nv12."
        )
    return kind


def kind_of_array(image: NDArray[Any]) -> ImageKind:
    """Like `kind_of`, for an op that takes only single-plane images: an Nv12 is a CallerError, too."""
    given: object = image
    if isinstance(given, Nv12):
        raise refusal(
            "src is an Nv12, which this op does not take: give it the plane y, or cvt_color(board, src, 'rgb')."
        )
    return kind_of(image)


def to_board(board: Board, image: Picture) -> Picture:
    """Return the image in device memory: board arrays with contiguous rows are used in place, others are copied."""
    if isinstance(image, Nv12):
        return Nv12(_array_to_board(board, image.y), _array_to_board(board, image.uv))
    return _array_to_board(board, image)


def _array_to_board(board: Board, array: NDArray[Any]) -> NDArray[Any]:
    if is_on_board(array) and has_whole_rows(array):
        return array
    return board.from_array(np.asarray(array))


def has_whole_rows(array: NDArray[Any]) -> bool:
    """Whether a stride can describe the image: contiguous pixels in each row, and rows in order without overlap."""
    pixel_bytes = array.itemsize * math.prod(array.shape[2:])
    inner = array.strides[1:] if array.shape[1] > 1 else array.strides[2:]
    expected = (pixel_bytes, array.itemsize)[: len(array.strides) - 1][-len(inner) :] if inner else ()
    stride = array.strides[0]
    rows_fit = array.shape[0] == 1 or (stride >= array.shape[1] * pixel_bytes and stride % pixel_bytes == 0)
    return tuple(inner) == tuple(expected) and rows_fit


def describe(image: NDArray[Any] | Nv12, kind: ImageKind) -> hbVPImage:
    """Return the descriptor of an image on the board."""
    first = first_plane(image)
    described = hbVPImage(
        imageFormat=kind.format,
        imageType=kind.type,
        width=first.shape[1],
        height=first.shape[0],
        stride=_stride(first),
        dataPhyAddr=first.phy_addr,
    )
    if isinstance(image, Nv12):
        uv: Any = image.uv
        described.uvPhyAddr, described.uvStride = uv.phy_addr, _stride(uv)
    return described


def _stride(array: NDArray[Any]) -> int:
    """Return the bytes between rows; numpy's value is arbitrary if there is only one row."""
    if array.shape[0] > 1:
        return array.strides[0]
    return array.nbytes


def new_image(board: Board, like: Picture, height: int, width: int, out: Any) -> Picture:
    """Return an image for results: `out` if it fits, or a new one of `like`'s kind and type.

    Raises:
        CallerError: a size below 1, or an `out` that is not on the board or has another size or type.
    """
    if isinstance(like, Nv12):
        y, uv = planes_of(out)
        shape = (height // 2, width // 2, 2)
        return Nv12(new_array(board, (height, width), np.uint8, y), new_array(board, shape, np.uint8, uv))
    return new_array(board, (height, width, *like.shape[2:]), like.dtype, out)


def planes_of(out: Any) -> tuple[Any, Any]:
    """Return the destinations of an Nv12's two planes: the planes of `out`, or None for new ones.

    Any other `out` is a CallerError.
    """
    if out is None:
        return None, None
    try:
        y, uv = out
    except (TypeError, ValueError):
        raise refusal(f"out is of type {type(out).__name__}, but must be an Nv12 of two board arrays.") from None
    return y, uv


def new_array(board: Board, shape: tuple[int, ...], dtype: DTypeLike, out: Any) -> BoardArray:
    """Return an array for results: `out` if it fits, or a new one.

    Raises:
        CallerError: as for `new_image`, or not an image type.
    """
    wanted = _image_dtype(dtype)
    if min(shape) < 1:
        raise refusal(f"A result of shape {shape} has no pixels: both sizes must be 1 or more.")
    if out is None:
        return board.empty(shape, wanted)
    if not (isinstance(out, np.ndarray) and is_on_board(out)):
        raise refusal("out is not in device memory: create it with board.empty().")
    if out.shape != shape or out.dtype != wanted or not has_whole_rows(out):
        raise refusal(
            f"out has shape {out.shape}, type {out.dtype} and strides {out.strides}, but the result has shape {shape} "
            f"and type {wanted}, with contiguous pixels in each row."
        )
    return out


def _image_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        wanted = dtype_of(dtype)
    except CallerError:
        wanted = None
    if wanted not in list(_BY_DTYPE):  # a list, since not every type is hashable
        raise refusal(f"dtype is {short_repr(dtype)}, but must be uint8, int16, int32 or float32.")
    return wanted


ORDERS = {"rgb": RGB, "bgr": BGR}
FORMATS = {**ORDERS, "y": Y_U8, "nv12": NV12}
"""Names of the eight-bit formats in Python."""
