"""Pictures as the image types of the DNN runtime: what a program does with a photograph before it runs a model. Pure.

Colours go through BT.601: Y = 0.299 R + 0.587 G + 0.114 B, U = 128 + 0.564 (B - Y), V = 128 + 0.713 (R - Y), each of
0..255, or squeezed to 16..235 (Y) and 16..240 (U, V) where the model's description asks for the video range.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from arm_client.dnn.errors import bad_argument
from arm_client.dnn.properties import NV12
from arm_client.dnn.spec import TensorSpec
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout

Bytes = NDArray[np.uint8]


def sides_of(spec: TensorSpec) -> tuple[int, int]:
    """Rows and columns of the picture that an image input takes."""
    is_planes = spec.layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    rows, columns = spec.valid_shape[2:] if is_planes else spec.valid_shape[1:3]
    return rows, columns


def fitted(picture: Bytes, height: int, width: int) -> Bytes:
    """A picture (H, W, 3) resized to (height, width, 3): by area when it shrinks, else bilinear."""
    if picture.shape[:2] == (height, width):
        return picture
    shrinks = picture.shape[0] >= height and picture.shape[1] >= width
    resized: Any = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


def encode(picture: Bytes, spec: TensorSpec) -> Bytes:
    """A picture as the bytes that an image input takes.

    Args:
        picture: BGR, (H, W, 3), of any sides; NV12 needs even ones.
        spec: The input.

    Returns:
        Y: (H, W). NV12: (H * 3 / 2, W), Y and then pairs of U and V. YUV444, RGB, BGR: (H, W, 3), or (3, H, W) for an
        input of the layout NCHW.

    Raises:
        ModelError: INVALID_ARGUMENT: the input is no image, or NV12 of an odd side.
    """
    kind = spec.tensor_type
    if spec.image is None:
        raise bad_argument(f"{spec.name!r} holds {kind.name}, not a picture.")
    if kind == hbDNNDataType.HB_DNN_IMG_TYPE_BGR:
        return _laid_out(picture, spec)
    if kind == hbDNNDataType.HB_DNN_IMG_TYPE_RGB:
        return _laid_out(np.ascontiguousarray(picture[..., ::-1]), spec)
    yuv = _yuv(picture, is_video=spec.image.video_range)
    if kind == hbDNNDataType.HB_DNN_IMG_TYPE_Y:
        return np.ascontiguousarray(yuv[..., 0])
    if kind in NV12:
        return _nv12(yuv, spec.name)
    return _laid_out(yuv, spec)


def _yuv(picture: Bytes, *, is_video: bool) -> Bytes:
    """(H, W, 3): Y, U, V of each pixel."""
    yuv = np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2YCrCb), np.uint8)[..., [0, 2, 1]]
    if not is_video:
        return np.ascontiguousarray(yuv)
    squeezed = np.array([16, 128, 128]) + (yuv - np.array([0.0, 128, 128])) * (np.array([219, 224, 224]) / 255)
    rounded: Bytes = np.rint(squeezed).astype(np.uint8)
    return rounded


def _nv12(yuv: Bytes, name: str) -> Bytes:
    height, width = yuv.shape[:2]
    if height % 2 or width % 2:
        raise bad_argument(
            f"A picture for {name!r} has {height} rows and {width} columns; NV12 has a UV pair for 2 x 2 pixels, so "
            f"both must be even: crop it."
        )
    pairs = np.asarray(cv2.resize(yuv[..., 1:], (width // 2, height // 2), interpolation=cv2.INTER_AREA), np.uint8)
    nv12: Bytes = np.concatenate([yuv[..., 0], pairs.reshape(height // 2, width)])
    return nv12


def _laid_out(pixels: Bytes, spec: TensorSpec) -> Bytes:
    is_planes = spec.layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) if is_planes else pixels
