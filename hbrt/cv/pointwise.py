"""Parameter structures of the CV ops that work on single pixels or on all of them, with their rules."""

from __future__ import annotations

from hbrt.cv.enums import HB_VP_THRESH_BINARY, HB_VP_THRESH_BINARY_INV, hbVPThresholdType
from hbrt.cv.image import BGR, NV12, RGB, Y_F32, Y_S16, Y_S32, Y_U8, ImageKind, refuse
from hbrt.cv.rules import (
    COLOR_NV12,
    GRAY,
    CvParam,
    need_apart,
    need_choice,
    need_finite,
    need_range,
    need_size,
    same_kind,
    same_size,
    take,
)
from hbrt.structures import float64_t, int32_t, structure

THRESHOLDS: dict[int, str] = {one: one.name for one in hbVPThresholdType}

CONVERSIONS: dict[ImageKind, tuple[ImageKind, ...]] = {
    NV12: (RGB, BGR, Y_U8),
    RGB: (BGR, Y_U8, NV12),
    BGR: (RGB, Y_U8, NV12),
    Y_U8: (RGB, BGR, NV12),
}
"""What CvtColor makes of each kind."""

WHOLE_RANGES = {Y_U8: (0, 255), Y_S16: (-32768, 32767)}
LARGEST_F32 = (2 - 2**-23) * 2.0**127

MAX_INTEGRAL_PIXELS = ((1 << 31) - 1) // 255
"""So many pixels of 255 just fit the int32 sum."""


class hbDSPCvCvtColorParam(CvParam):
    """Input block of CvtColor, 112 bytes: the formats of the two images determine the conversion.

    Sizes are the same.
    """

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        kind = take(self.src, "src", COLOR_NV12)
        take(self.dst, "dst", CONVERSIONS[kind])
        same_size(self)
        need_apart(self, in_place={self.src.imageFormat, self.dst.imageFormat} == {RGB.format, BGR.format})


class hbDSPCvEqualizeHistParam(CvParam):
    """Input block of EqualizeHist, 112 bytes. Y U8C1 to the same; dst may be src."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, GRAY)
        same_size(self)
        need_apart(self, in_place=True)


class hbDSPCvIntegralParam(CvParam):
    """Input block of Integral, 112 bytes. Y U8C1 of W x H to Y S32C1 of (W + 1) x (H + 1), at most 8421504 pixels."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        take(self.src, "src", GRAY)
        take(self.dst, "dst", (Y_S32,))
        width, height = self.src.width, self.src.height
        if width * height > MAX_INTEGRAL_PIXELS:
            refuse(
                f"src is {width} x {height} pixels: the sum of more than {MAX_INTEGRAL_PIXELS} may not fit an int32."
            )
        need_size(self.dst, width + 1, height + 1)
        need_apart(self)


@structure
class hbDSPCvThresholdParam(CvParam):
    """Input block of Threshold, 136 bytes. Y U8C1, S16C1 or F32C1; dst as src, and may be src.

    Attributes:
        thresh: The threshold that a pixel must exceed: a number that fits its type; an integer for integer types;
            rounded for F32.
        maxVal: The value that BINARY and BINARY_INV write, by the same rule; the other types ignore it.
        type: HB_VP_THRESH_*.
    """

    thresh: float64_t
    maxVal: float64_t
    type: int32_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        kind = same_kind(self, (Y_U8, Y_S16, Y_F32))
        same_size(self)
        need_apart(self, in_place=True)
        need_choice("type", self.type, THRESHOLDS)
        _need_value("thresh", self.thresh, kind)
        if self.type in {HB_VP_THRESH_BINARY, HB_VP_THRESH_BINARY_INV}:
            _need_value("maxVal", self.maxVal, kind)


def _need_value(name: str, value: float, kind: ImageKind) -> None:
    need_finite(name, [value])
    limits = WHOLE_RANGES.get(kind)
    if limits is None:
        if abs(value) > LARGEST_F32:
            refuse(f"{name} is {value}: for {kind} pixels use a number up to {LARGEST_F32:.8g} in size.")
        return
    need_range(name, value, *limits)
    if not value.is_integer():
        refuse(f"{name} is {value}: for {kind} pixels use a whole number.")
