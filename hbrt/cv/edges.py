"""Parameter structures of the CV ops that look for edges and corners, with their rules."""

from __future__ import annotations

from hbrt.cv.enums import HB_VP_BORDER_REPLICATE, hbVPNormType
from hbrt.cv.image import Y_F32, Y_S16, Y_S32, refuse
from hbrt.cv.rules import (
    BORDERS,
    GRAY,
    CvParam,
    need_apart,
    need_choice,
    need_finite,
    need_odd,
    need_range,
    same_kind,
    same_size,
    take,
)
from hbrt.structures import float64_t, int32_t, structure

NORMS: dict[int, str] = {one: one.name for one in hbVPNormType}
APERTURES = {3: "", 5: "", 7: ""}
LARGEST_BLOCK = 31


@structure
class hbDSPCvCannyParam(CvParam):
    """Input block of Canny, 144 bytes. Y U8C1 to Y U8C1, 255 on an edge and 0 elsewhere.

    Attributes:
        threshold1: An edge continues where the gradient is above this; 0 or more.
        threshold2: An edge begins where the gradient is above this; at least threshold1.
        kernelSize: Of the derivatives: 3, 5 or 7.
        norm: HB_VP_NORM_L1: |dx| + |dy|; HB_VP_NORM_L2: sqrt(dx^2 + dy^2).
        overlap: Halo of a tile on the chip, 0..1024. The whole image is one tile here, so that it changes nothing.
        borderType: HB_VP_BORDER_REPLICATE.
    """

    threshold1: float64_t
    threshold2: float64_t
    kernelSize: int32_t
    norm: int32_t
    overlap: int32_t
    borderType: int32_t

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


@structure
class hbDSPCvCornerHarrisParam(CvParam):
    """Input block of CornerHarris, 136 bytes. Y U8C1 to Y S32C1, or F32C1.

    Attributes:
        sensitivity: k, above 0, up to 0.25.
        blockSize: Side of the window that the products of derivatives are averaged over, odd, 1..31.
        kernelSize: Of the derivatives: 3, 5 or 7.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    sensitivity: float64_t
    blockSize: int32_t
    kernelSize: int32_t
    borderType: int32_t

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


@structure
class hbDSPCvSobelParam(CvParam):
    """Input block of Sobel, 144 bytes. Y U8C1 to Y S16C1, which saturates.

    Attributes:
        scale: Each derivative is multiplied by it; finite.
        delta: Then this is added; finite.
        dx: Order of the derivative along a row, 0..2.
        dy: Order of the derivative along a column, 0..2; not both are 0.
        kernelSize: 1, 3, 5 or 7; 1 is 3 along an axis that is derived, without smoothing along one that is not.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    scale: float64_t
    delta: float64_t
    dx: int32_t
    dy: int32_t
    kernelSize: int32_t
    borderType: int32_t

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
            refuse("dx and dy are both 0: one of them is the order of the derivative.")
        need_choice("borderType", self.borderType, BORDERS)
