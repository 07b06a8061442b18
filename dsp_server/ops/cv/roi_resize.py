"""RoiResize, command 0x811: several regions of an image, all to one size."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, view, view_all
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import METHODS, resize_planes
from hbrt.cv.resize import hbDSPCvRoiResizeParam


def roi_resize(param: hbDSPCvRoiResizeParam, src: Planes, dst: Planes) -> Run:
    """Result i is Resize of src[top..bottom, left..right] of region i, both corners inside, as if it were an image.

    Nothing outside a region is checked. Results lie `dstStep` bytes apart.

    U8: Y, RGB, BGR or NV12, and dst the same.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the structure is its choice; its regions have the corners of the DNN runtime's hbDNNRoi.
    """
    table, first, steps = view(param.extras()[0]), param.dst.planes(), param.steps()
    method = METHODS.get(param.interpolation, cv2.INTER_LINEAR)

    def run() -> None:
        rois: list[tuple[int, int, int, int]] = [tuple(row) for row in table.tolist()]
        param.check_rois(rois)
        view_all(param.targets())  # all results or none: nothing is written when one of them cannot be
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
