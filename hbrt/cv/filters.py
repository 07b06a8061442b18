"""Parameter structures and rules of the CV ops that weight or sort a neighborhood."""

from __future__ import annotations

from hbrt.cv import structures
from hbrt.cv.image import Y_F32, Y_S16, Y_S32, Y_U8, Plane, refuse
from hbrt.cv.rules import (
    BORDERS,
    COLOR,
    CvRules,
    need_anchor,
    need_apart,
    need_choice,
    need_extras_apart,
    need_finite,
    need_odd,
    need_range,
    same_kind,
    same_size,
    take,
)

LARGEST_KERNEL = 31
LARGEST_BOX = 127
LARGEST_BILATERAL = 31


class hbDSPCvBilateralFilterParam(CvRules, structures.hbDSPCvBilateralFilterParam):
    """Input block of BilateralFilter, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR)
        same_size(self)
        need_apart(self)
        for name, sigma in (("sigmaColor", self.sigmaColor), ("sigmaSpace", self.sigmaSpace)):
            if not 0 < sigma <= 1e6:
                refuse(f"{name} is {sigma}: use a number above 0 and up to 1e6.")
        need_odd("kernelSize", self.kernelSize, LARGEST_BILATERAL, smallest=3)
        need_choice("borderType", self.borderType, BORDERS)


class hbDSPCvBoxFilterParam(CvRules, structures.hbDSPCvBoxFilterParam):
    """Input block of BoxFilter, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        need_choice("normalize", self.normalize, {0: "the sum", 1: "the mean"})
        kind = take(self.src, "src", COLOR)
        results = (kind, Y_S32) if kind is Y_U8 and not self.normalize else (kind,)
        take(self.dst, "dst", results)
        same_size(self)
        need_apart(self)
        need_range("kernelWidth", self.kernelWidth, 1, LARGEST_BOX)
        need_range("kernelHeight", self.kernelHeight, 1, LARGEST_BOX)
        need_anchor(self.pointLocX, self.pointLocY, self.kernelWidth, self.kernelHeight)
        need_choice("borderType", self.borderType, BORDERS)


class MorphologyParam(CvRules):
    """The 144 bytes that Dilate and Erode share. Y U8C1, RGB or BGR; dst as src.

    Attributes:
        kernel: Mask of U8C1, sides 1..31, not all 0.
        borderType: HB_VP_BORDER_*; with constant, pixels outside the image never win.
    """

    kernel: structures.hbVPFilterKernel
    borderType: int

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR)
        same_size(self)
        need_apart(self)
        self.kernel.check("kernel", Y_U8, LARGEST_KERNEL)
        need_choice("borderType", self.borderType, BORDERS)
        need_extras_apart(self)

    def extras(self) -> tuple[Plane, ...]:
        """The mask."""
        return (self.kernel.plane(),)


class hbDSPCvDilateParam(MorphologyParam, structures.hbDSPCvDilateParam):
    """Input block of Dilate, with its rules."""


class hbDSPCvErodeParam(MorphologyParam, structures.hbDSPCvErodeParam):
    """Input block of Erode, with its rules."""


class hbDSPCvFilter2DParam(CvRules, structures.hbDSPCvFilter2DParam):
    """Input block of Filter2D, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        _check_filter(self)
        self.kernel.check("kernel", Y_F32, LARGEST_KERNEL)
        need_finite("delta", [self.delta])
        need_anchor(self.pointLocX, self.pointLocY, self.kernel.width, self.kernel.height)
        need_choice("borderType", self.borderType, BORDERS)
        need_extras_apart(self)

    def extras(self) -> tuple[Plane, ...]:
        """The weights."""
        return (self.kernel.plane(),)


class hbDSPCvSepFilter2DParam(CvRules, structures.hbDSPCvSepFilter2DParam):
    """Input block of SepFilter2D, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        _check_filter(self)
        self.kernelX.check("kernelX", Y_F32, LARGEST_KERNEL)
        self.kernelY.check("kernelY", Y_F32, LARGEST_KERNEL)
        if self.kernelX.height != 1 or self.kernelY.width != 1:
            refuse(
                f"kernelX has {self.kernelX.width} x {self.kernelX.height} and kernelY {self.kernelY.width} x "
                f"{self.kernelY.height} elements: the first must be a row, the second a column."
            )
        need_finite("delta", [self.delta])
        need_anchor(self.pointLocX, self.pointLocY, self.kernelX.width, self.kernelY.height)
        need_choice("borderType", self.borderType, BORDERS)
        need_extras_apart(self)

    def extras(self) -> tuple[Plane, ...]:
        """The weights of both directions."""
        return self.kernelX.plane(), self.kernelY.plane()


class hbDSPCvGaussianBlurParam(CvRules, structures.hbDSPCvGaussianBlurParam):
    """Input block of GaussianBlur, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR)
        same_size(self)
        need_apart(self)
        need_choice("kernelSize", self.kernelSize, {3: "for 1 2 1", 5: "for 1 4 6 4 1"})
        need_choice("borderType", self.borderType, BORDERS)


class hbDSPCvMedianBlurParam(CvRules, structures.hbDSPCvMedianBlurParam):
    """Input block of MedianBlur, with its rules."""

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR)
        same_size(self)
        need_apart(self)
        need_odd("maskWidth", self.maskWidth, 127)


def _check_filter(param: CvRules) -> None:
    kind = take(param.src, "src", COLOR)
    take(param.dst, "dst", (Y_U8, Y_S16, Y_F32) if kind is Y_U8 else (kind,))
    same_size(param)
    need_apart(param)
