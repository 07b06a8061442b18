"""Parameter structures and rules of the CV ops that detect edges and corners."""

from __future__ import annotations

from hbrt.cv import structures
from hbrt.cv.enums import HB_VP_BORDER_REPLICATE, hbVPNormType
from hbrt.cv.image import Y_F32, Y_S16, Y_S32, refuse
from hbrt.cv.rules import (
    BORDERS,
    GRAY,
    CvRules,
    need_apart,
    need_choice,
    need_finite,
    need_odd,
    need_range,
    same_kind,
    same_size,
    take,
)

NORMS: dict[int, str] = {one: one.name for one in hbVPNormType}
APERTURES = {3: "", 5: "", 7: ""}
LARGEST_BLOCK = 31


class hbDSPCvCannyParam(CvRules, structures.hbDSPCvCannyParam):
    """Input block of Canny, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, GRAY)
        same_size(self)
        need_apart(self)
        need_finite("threshold2", [self.threshold2])
        if self.threshold2 < 0:
            refuse(f"threshold2 is {self.threshold2}: use 0 or more, and at least threshold1.")
        need_range("threshold1", self.threshold1, 0, self.threshold2)
        need_choice("kernelSize", self.kernelSize, APERTURES)
        need_choice("norm", self.norm, NORMS)
        need_range("overlap", self.overlap, 0, 1024)
        need_choice("borderType", self.borderType, {HB_VP_BORDER_REPLICATE: "HB_VP_BORDER_REPLICATE"})


class hbDSPCvCornerHarrisParam(CvRules, structures.hbDSPCvCornerHarrisParam):
    """Input block of CornerHarris, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        take(self.src, "src", GRAY)
        take(self.dst, "dst", (Y_S32, Y_F32))
        same_size(self)
        need_apart(self)
        if not 0 < self.sensitivity <= 0.25:
            refuse(f"sensitivity is {self.sensitivity}: use a number above 0 and up to 0.25.")
        need_odd("blockSize", self.blockSize, LARGEST_BLOCK)
        need_choice("kernelSize", self.kernelSize, APERTURES)
        need_choice("borderType", self.borderType, BORDERS)


class hbDSPCvSobelParam(CvRules, structures.hbDSPCvSobelParam):
    """Input block of Sobel, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        take(self.src, "src", GRAY)
        take(self.dst, "dst", (Y_S16,))
        same_size(self)
        need_apart(self)
        need_finite("scale", [self.scale])
        need_finite("delta", [self.delta])
        need_choice("kernelSize", self.kernelSize, {1: "without smoothing", **APERTURES})
        need_range("dx", self.dx, 0, 2)
        need_range("dy", self.dy, 0, 2)
        if not self.dx + self.dy:
            refuse("dx and dy are both 0: at least one must be the order of a derivative.")
        need_choice("borderType", self.borderType, BORDERS)
