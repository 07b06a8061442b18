"""Resizing: of an image, of its regions, and the steps of a pyramid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled, view, view_all
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.enums import HB_VP_INTER_GAUSSIAN, HB_VP_INTER_NEAREST
from hbrt.cv.resize import (
    PyramidParam,
    hbDSPCvPyrDownParam,
    hbDSPCvPyrUpParam,
    hbDSPCvResizeParam,
    hbDSPCvRoiResizeParam,
)

METHODS = {HB_VP_INTER_NEAREST: cv2.INTER_NEAREST}


# Resize, command 0x810: to another width and height.


def resize(param: hbDSPCvResizeParam, src: Planes, dst: Planes) -> Run:
    """Resize with scale = size of src / size of dst in each direction; NV12: each plane separately.

    NEAREST: dst(x) = src(floor(x * scale)), in float64: if x * scale is an integer, the result may be one less.
    LINEAR: a blend of the two pixels around (x + 0.5) * scale - 0.5, with a replicated border; in U8 the weights have
    11 bits, and the result is accurate to 1.

    src: Y of U8, S16 or F32, RGB, BGR or NV12; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Resize.
    Emulator: pixel centers at .5 are OpenCV's.
    """
    return resize_planes(src, dst, METHODS.get(param.interpolation, cv2.INTER_LINEAR))


def resize_planes(src: Planes, dst: Planes, method: int) -> Run:
    """Resize each plane to the size of its target."""
    return in_turn(
        settled(target, cv2.resize, source, (target.shape[1], target.shape[0]), dst=target, interpolation=method)
        for source, target in zip(src, dst, strict=True)
    )


hb_dsp_resize = cv_op(hbDSPCvResizeParam, resize, instructions=10)


# RoiResize, command 0x811: several regions of an image, all to the same size.


def roi_resize(param: hbDSPCvRoiResizeParam, src: Planes, dst: Planes) -> Run:
    """Result i is Resize of src[top..bottom, left..right] of region i, inclusive, as if the region were an image.

    Nothing outside a region is checked. Consecutive results are `dstStep` bytes apart.

    src in U8: Y, RGB, BGR or NV12; dst: the same.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the structure is its choice; its regions are defined like the DNN runtime's hbDNNRoi.
    """
    table, first, steps = view(param.extras()[0]), param.dst.planes(), param.steps()
    method = METHODS.get(param.interpolation, cv2.INTER_LINEAR)

    def run() -> None:
        rois: list[tuple[int, int, int, int]] = [tuple(row) for row in table.tolist()]
        param.check_rois(rois)
        view_all(param.targets())  # all results or none: if one cannot be mapped, nothing is written
        for index, (left, top, right, bottom) in enumerate(rois):
            planes = tuple(
                plane._replace(phy_addr=plane.phy_addr + index * step)
                for plane, step in zip(first, steps, strict=False)
            )
            parts = tuple(
                source[top >> halving : (bottom >> halving) + 1, left >> halving : (right >> halving) + 1]
                for halving, source in enumerate(src)
            )
            resize_planes(parts, view_all(planes), method)()

    return run


hb_dsp_roi_resize = cv_op(hbDSPCvRoiResizeParam, roi_resize, instructions=10)


# PyrDown, command 0x80d: half the size, smoothed.


def pyr_down(param: hbDSPCvPyrDownParam, src: Planes, dst: Planes) -> Run:
    """GAUSSIAN: [1 4 6 4 1] / 16 in both directions, then every second pixel from the first on. LINEAR: like Resize.

    The border is mirrored about its last pixel. Rounded to nearest, ties up. NV12: each plane separately.

    src in U8: Y, RGB, BGR or NV12; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Pyramid.
    Emulator: the weights and the border are OpenCV's.
    """
    return _pyramid_step(param, cv2.pyrDown, src, dst)


hb_dsp_pyr_down = cv_op(hbDSPCvPyrDownParam, pyr_down, instructions=10)


# PyrUp, command 0x80e: twice the size, smoothed.


def pyr_up(param: hbDSPCvPyrUpParam, src: Planes, dst: Planes) -> Run:
    """GAUSSIAN: insert a 0 after every pixel, then [1 4 6 4 1] / 8, in both directions. LINEAR: like Resize.

    The border is mirrored about its first pixel, and replicated past its last. Rounded to nearest, ties up. NV12: each
    plane separately.

    src in U8: Y, RGB, BGR or NV12; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Pyramid.
    Emulator: the weights and the border are OpenCV's.
    """
    return _pyramid_step(param, cv2.pyrUp, src, dst)


hb_dsp_pyr_up = cv_op(hbDSPCvPyrUpParam, pyr_up, instructions=10)


def _pyramid_step(param: PyramidParam, gaussian: Callable[..., Any], src: Planes, dst: Planes) -> Run:
    if param.interpolation != HB_VP_INTER_GAUSSIAN:
        return resize_planes(src, dst, cv2.INTER_LINEAR)
    return in_turn(
        settled(target, gaussian, source, dst=target, dstsize=(target.shape[1], target.shape[0]))
        for source, target in zip(src, dst, strict=True)
    )
