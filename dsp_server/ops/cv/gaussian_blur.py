"""GaussianBlur, command 0x80a: a mean with fixed binomial weights."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvGaussianBlurParam


def gaussian_blur(param: hbDSPCvGaussianBlurParam, src: Planes, dst: Planes) -> Run:
    """Weights [1 2 1] x [1 2 1] / 16, or [1 4 6 4 1] x [1 4 6 4 1] / 256; exact, ties up.

    Source: VP operator manual (J6), GaussianBlur. With a sigma of 0 OpenCV has these weights too.
    """
    return settled(
        dst[0], cv2.GaussianBlur, src[0], (param.kernelSize,) * 2, 0, dst=dst[0], borderType=param.borderType
    )


hb_dsp_gaussian_blur = cv_op(hbDSPCvGaussianBlurParam, gaussian_blur, instructions=12)
