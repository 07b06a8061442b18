"""Parameter structures and rules of the CV ops that work on single pixels or the whole image."""

from __future__ import annotations

from hbrt.cv import structures
from hbrt.cv.enums import HB_VP_THRESH_BINARY, HB_VP_THRESH_BINARY_INV, hbVPThresholdType
from hbrt.cv.image import BGR, NV12, RGB, Y_F32, Y_S16, Y_S32, Y_U8, ImageKind, refuse
from hbrt.cv.rules import (
    COLOR_NV12,
    GRAY,
    CvRules,
    need_apart,
    need_choice,
    need_finite,
    need_range,
    need_size,
    same_kind,
    same_size,
    take,
)

THRESHOLDS: dict[int, str] = {one: one.name for one in hbVPThresholdType}

CONVERSIONS: dict[ImageKind, tuple[ImageKind, ...]] = {
    NV12: (RGB, BGR, Y_U8),
    RGB: (BGR, Y_U8, NV12),
    BGR: (RGB, Y_U8, NV12),
    Y_U8: (RGB, BGR, NV12),
}
"""Result kinds of CvtColor for each kind."""

WHOLE_RANGES = {Y_U8: (0, 255), Y_S16: (-32768, 32767)}
LARGEST_F32 = (2 - 2**-23) * 2.0**127

MAX_INTEGRAL_PIXELS = ((1 << 31) - 1) // 255
"""Maximum number of pixels of 255 whose sum fits an int32."""


class hbDSPCvCvtColorParam(CvRules, structures.hbDSPCvCvtColorParam):
    """Input block of CvtColor, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        kind = take(self.src, "src", COLOR_NV12)
        take(self.dst, "dst", CONVERSIONS[kind])
        same_size(self)
        need_apart(self, in_place={self.src.imageFormat, self.dst.imageFormat} == {RGB.format, BGR.format})


class hbDSPCvEqualizeHistParam(CvRules, structures.hbDSPCvEqualizeHistParam):
    """Input block of EqualizeHist, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, GRAY)
        same_size(self)
        need_apart(self, in_place=True)


class hbDSPCvIntegralParam(CvRules, structures.hbDSPCvIntegralParam):
    """Input block of Integral, with its rules."""

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


class hbDSPCvThresholdParam(CvRules, structures.hbDSPCvThresholdParam):
    """Input block of Threshold, with its rules."""

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
        refuse(f"{name} is {value}: for {kind} pixels use an integer.")
