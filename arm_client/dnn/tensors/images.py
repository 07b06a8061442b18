"""Convert pictures to the numbers a graph was trained on, and back: colors, layout, mean and scale. Pure.

Planes are (rows, bytes per row) uint8 arrays, which may have padding between rows. OpenCV converts colors with the
BT.601 matrices. NV12 has full range (0..255) unless the YAML file says input_space_and_range bt601_video (16..235), as
in the vendor's toolchain manual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from arm_client.dnn.spec.properties import NV12, up
from arm_client.dnn.spec.spec import ImageSpec, TensorSpec
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout

Bytes = NDArray[np.uint8]


def graph_input(spec: TensorSpec, pictures: Sequence[Sequence[Bytes]], tensor_type: hbDNNDataType) -> NDArray[Any]:
    """Convert pictures in memory to the graph's input.

    Args:
        spec: Spec of the input.
        pictures: The planes of each batch element; see `pictures.Picture`.
        tensor_type: Type that the caller set; NV12_SEPARATE counts as NV12.

    Returns:
        Array of graph_shape and graph_dtype: (value - mean) * scale in float32; for integer graphs the plain value.
    """
    assert spec.image is not None  # noqa: S101 - only inputs that are images come here
    result = np.empty((len(pictures), *spec.graph_shape[1:]), spec.graph_dtype)
    for target, planes in zip(result, pictures, strict=True):
        pixels = trained_pixels(planes, tensor_type, spec.layout, spec.image, spec.sides)
        normalize(pixels, spec.image, target)
    return result


def trained_pixels(
    planes: Sequence[Bytes],
    tensor_type: hbDNNDataType,
    layout: hbDNNTensorLayout,
    image: ImageSpec,
    sides: tuple[int, int],
) -> Bytes:
    """Return pixels in the graph's training color format: (H, W, C) uint8, contiguous."""
    height, width = sides
    if tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_Y:
        return np.ascontiguousarray(planes[0]).reshape(height, width, 1)
    if tensor_type in NV12:
        return _from_nv12(planes[0], planes[1], image)
    if layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW:
        pixels = _uint8(cv2.merge([np.ascontiguousarray(plane) for plane in planes]))
    else:
        pixels = np.ascontiguousarray(planes[0]).reshape(height, width, 3)
    given = {hbDNNDataType.HB_DNN_IMG_TYPE_YUV444: "yuv444", hbDNNDataType.HB_DNN_IMG_TYPE_RGB: "rgb"}.get(
        tensor_type, "bgr"
    )
    if given == image.train_type:
        return pixels
    if given == "yuv444":
        luma, u, v = cv2.split(pixels)
        return _to_colors(luma, u, v, image.train_type)
    return _uint8(cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))


def _from_nv12(luma: Bytes, chroma: Bytes, image: ImageSpec) -> Bytes:
    """Convert NV12; all four pixels get the chroma of their pair."""
    luma, chroma = np.ascontiguousarray(luma), np.ascontiguousarray(chroma)
    pairs = chroma.reshape(chroma.shape[0], -1, 2)
    if image.video_range:
        code = cv2.COLOR_YUV2RGB_NV12 if image.train_type == "rgb" else cv2.COLOR_YUV2BGR_NV12
        return _uint8(cv2.cvtColorTwoPlane(np.clip(luma, 16, 235), np.clip(pairs, 16, 240), code))
    u, v = (cv2.resize(one, luma.shape[::-1], interpolation=cv2.INTER_NEAREST) for one in cv2.split(pairs))
    if image.train_type == "yuv444":
        return _uint8(cv2.merge([luma, u, v]))
    return _to_colors(luma, u, v, image.train_type)


def _to_colors(luma: Any, u: Any, v: Any, train_type: str) -> Bytes:
    """Convert at full range. OpenCV's YCrCb is this conversion, with V before U; its YUV is different."""
    code = cv2.COLOR_YCrCb2RGB if train_type == "rgb" else cv2.COLOR_YCrCb2BGR
    return _uint8(cv2.cvtColor(cv2.merge([luma, v, u]), code))


def normalize(pixels: Bytes, image: ImageSpec, target: NDArray[Any]) -> None:
    """Write (value - mean) * scale, in float32, into a picture of the graph's input: (C, H, W) or (H, W, C).

    A byte has only 256 values, so each channel uses a lookup table.

    Source: RDK toolchain manual (rdk_doc), HzPreprocess,
    https://github.com/D-Robotics/rdk_doc/blob/main/docs/07_Advanced_development/04_toolchain_development/intermediate/ptq_process.md#pre_process
    """
    channels = pixels.shape[2]
    is_planes = image.train_layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    if not np.issubdtype(target.dtype, np.floating):
        target[...] = pixels.transpose(2, 0, 1) if is_planes else pixels
        return
    levels = np.arange(256, dtype=np.float32)[:, None]
    table = np.ascontiguousarray(np.broadcast_to((levels - image.mean) * image.scale, (256, channels)))
    if is_planes:
        for channel, plane in enumerate(cv2.split(pixels)):
            target[channel] = cv2.LUT(plane, np.ascontiguousarray(table[:, channel]))
    else:
        target[...] = cv2.LUT(pixels, table.reshape(1, 256, channels)).reshape(pixels.shape)


def encode(
    bgr: Bytes,
    tensor_type: hbDNNDataType,
    layout: hbDNNTensorLayout = hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC,
    *,
    video_range: bool = False,
    stride_multiple: int = 1,
) -> tuple[Bytes, ...]:
    """Return a picture as a program passes it to a model: what a camera or a decoder would write.

    Args:
        bgr: (H, W, 3) uint8, as OpenCV reads a file. For NV12 both sides must be even.
        tensor_type: HB_DNN_IMG_TYPE_*.
        layout: Layout of RGB, BGR and YUV444.
        video_range: Use the NV12 range 16..235 instead of 0..255.
        stride_multiple: Pad rows of Y and NV12 with zeros to this multiple; 16 for an aligned picture.

    Returns:
        One (rows, bytes) uint8 array, contiguous; for NV12_SEPARATE two, Y and UV. An NV12 pair is the mean of its four
        pixels in full range, and the chroma of the first one in video range, as in OpenCV.
    """
    height, width = bgr.shape[:2]
    if tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_Y:
        return (_widen(_uint8(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)), stride_multiple),)
    if tensor_type in NV12:
        planes = [_widen(plane, stride_multiple) for plane in _to_nv12(bgr, video_range=video_range)]
        return tuple(planes) if tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_NV12_SEPARATE else (np.vstack(planes),)
    pixels = np.ascontiguousarray(bgr)
    if tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_RGB:
        pixels = _uint8(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))
    elif tensor_type == hbDNNDataType.HB_DNN_IMG_TYPE_YUV444:
        pixels = np.ascontiguousarray(_uint8(cv2.cvtColor(pixels, cv2.COLOR_BGR2YCrCb))[:, :, [0, 2, 1]])
    if layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW:
        return (np.vstack(cv2.split(pixels)),)
    return (pixels.reshape(height, width * 3),)


def _to_nv12(bgr: Bytes, *, video_range: bool) -> tuple[Bytes, Bytes]:
    height, width = bgr.shape[:2]
    if video_range:
        planar = _uint8(cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_I420))
        luma, quarters = planar[:height], planar[height:].reshape(2, height // 2, width // 2)
        return luma, np.ascontiguousarray(quarters.transpose(1, 2, 0)).reshape(height // 2, width)
    yuv = _uint8(cv2.cvtColor(bgr, cv2.COLOR_BGR2YCrCb))
    pairs = cv2.resize(yuv[:, :, [2, 1]], (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(yuv[:, :, 0]), _uint8(pairs).reshape(height // 2, width)


def _widen(plane: Bytes, multiple: int) -> Bytes:
    return np.pad(plane, ((0, 0), (0, up(plane.shape[1], multiple) - plane.shape[1])))


def _uint8(pixels: Any) -> Bytes:
    """Cast the pixels, whose type OpenCV's stubs leave open."""
    found: Bytes = pixels
    return found
