"""Threshold, command 0x815: pixels above a value, and the others."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.pointwise import hbDSPCvThresholdParam


def threshold(param: hbDSPCvThresholdParam, src: Planes, dst: Planes) -> Run:
    """A pixel that is above thresh, and one that is not, becomes: BINARY maxVal, 0; BINARY_INV 0, maxVal.

    TRUNC thresh, itself; TOZERO itself, 0; TOZERO_INV 0, itself. What a NaN becomes is not defined.

    Y of U8, S16 or F32, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Threshold, which describes the five types.
    Emulator: all five work.
    """
    source, target, numbers = src[0], dst[0], (param.thresh, param.maxVal, param.type)
    return lambda: settle(target, cv2.threshold(source, *numbers, dst=target)[1])


hb_dsp_threshold = cv_op(hbDSPCvThresholdParam, threshold, instructions=3)
