"""Parameter structures of the CV ops that weigh or order a neighborhood, with their rules."""

from __future__ import annotations

from hbrt.cv.image import Y_F32, Y_S16, Y_S32, Y_U8, Plane, refuse
from hbrt.cv.rules import (
    BORDERS,
    COLOR,
    CvParam,
    hbVPFilterKernel,
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
from hbrt.structures import float64_t, int8_t, int32_t, structure

LARGEST_KERNEL = 31
LARGEST_BOX = 127
LARGEST_BILATERAL = 31


@structure
class hbDSPCvBilateralFilterParam(CvParam):
    """Input block of BilateralFilter, 136 bytes. Y U8C1, RGB or BGR; dst as src.

    Attributes:
        sigmaColor: Standard deviation over differences of value, above 0.
        sigmaSpace: Standard deviation over distances in pixels, above 0.
        kernelSize: Diameter of the disc in pixels, odd, 3..31.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    sigmaColor: float64_t
    sigmaSpace: float64_t
    kernelSize: int32_t
    borderType: int32_t

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


@structure
class hbDSPCvBoxFilterParam(CvParam):
    """Input block of BoxFilter, 136 bytes. Y U8C1, RGB or BGR; dst as src, or Y S32C1 for a sum that is not cut.

    Attributes:
        kernelHeight: Rows of the window, 1..127.
        kernelWidth: Columns of the window, 1..127.
        pointLocX: Column of the window that lies on the pixel; -1 for width / 2.
        pointLocY: Row of the window that lies on the pixel; -1 for height / 2.
        normalize: 1 for the mean, 0 for the sum.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    kernelHeight: int32_t
    kernelWidth: int32_t
    pointLocX: int32_t
    pointLocY: int32_t
    normalize: int32_t
    borderType: int32_t

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


@structure
class MorphologyParam(CvParam):
    """The 144 bytes that Dilate and Erode share. Y U8C1, RGB or BGR; dst as src.

    Attributes:
        kernel: Mask of U8C1, sides 1..31, not all 0.
        borderType: HB_VP_BORDER_*; with constant, pixels outside the image never win.
    """

    kernel: hbVPFilterKernel
    borderType: int32_t

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


class hbDSPCvDilateParam(MorphologyParam):
    """Input block of Dilate; the mask's element (width / 2, height / 2) lies on the pixel."""


class hbDSPCvErodeParam(MorphologyParam):
    """Input block of Erode; the mask's element ((width - 1) / 2, (height - 1) / 2) lies on the pixel."""


@structure
class hbDSPCvFilter2DParam(CvParam):
    """Input block of Filter2D, 160 bytes. Y U8C1 to U8C1, S16C1 or F32C1; RGB or BGR to the same.

    Attributes:
        kernel: Weights of F32C1, sides 1..31, finite.
        delta: Added to each sum, finite.
        pointLocX: Column of the kernel that lies on the pixel; -1 for width / 2.
        pointLocY: Row of the kernel that lies on the pixel; -1 for height / 2.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    kernel: hbVPFilterKernel
    delta: float64_t
    pointLocX: int32_t
    pointLocY: int32_t
    borderType: int32_t

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


@structure
class hbDSPCvSepFilter2DParam(CvParam):
    """Input block of SepFilter2D, 184 bytes. Kinds as Filter2D.

    Attributes:
        kernelX: Weights along a row, F32C1: width 1..31, height 1.
        kernelY: Weights along a column, F32C1: width 1, height 1..31.
        delta: Added to each sum, finite.
        pointLocX: Element of kernelX that lies on the pixel; -1 for width / 2.
        pointLocY: Element of kernelY that lies on the pixel; -1 for height / 2.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    kernelX: hbVPFilterKernel
    kernelY: hbVPFilterKernel
    delta: float64_t
    pointLocX: int32_t
    pointLocY: int32_t
    borderType: int32_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        _check_filter(self)
        self.kernelX.check("kernelX", Y_F32, LARGEST_KERNEL)
        self.kernelY.check("kernelY", Y_F32, LARGEST_KERNEL)
        if self.kernelX.height != 1 or self.kernelY.width != 1:
            refuse(
                f"kernelX has {self.kernelX.width} x {self.kernelX.height} and kernelY {self.kernelY.width} x "
                f"{self.kernelY.height} elements: the first is a row, the second a column."
            )
        need_finite("delta", [self.delta])
        need_anchor(self.pointLocX, self.pointLocY, self.kernelX.width, self.kernelY.height)
        need_choice("borderType", self.borderType, BORDERS)
        need_extras_apart(self)

    def extras(self) -> tuple[Plane, ...]:
        """The weights of both directions."""
        return self.kernelX.plane(), self.kernelY.plane()


@structure
class hbDSPCvGaussianBlurParam(CvParam):
    """Input block of GaussianBlur, 120 bytes. Y U8C1, RGB or BGR; dst as src.

    Attributes:
        kernelSize: 3 or 5; the weights are fixed.
        borderType: HB_VP_BORDER_*; constant is 0.
    """

    kernelSize: int32_t
    borderType: int32_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR)
        same_size(self)
        need_apart(self)
        need_choice("kernelSize", self.kernelSize, {3: "for 1 2 1", 5: "for 1 4 6 4 1"})
        need_choice("borderType", self.borderType, BORDERS)


@structure
class hbDSPCvMedianBlurParam(CvParam):
    """Input block of MedianBlur, 120 bytes. Y U8C1, RGB or BGR; dst as src. The border is replicated.

    Attributes:
        maskWidth: Side of the square, odd, 1..127.
    """

    maskWidth: int8_t

    def check(self) -> None:
        """Check the structure against the op's rules; raises CvRuleError."""
        same_kind(self, COLOR)
        same_size(self)
        need_apart(self)
        need_odd("maskWidth", self.maskWidth, 127)


def _check_filter(param: CvParam) -> None:
    kind = take(param.src, "src", COLOR)
    take(param.dst, "dst", (Y_U8, Y_S16, Y_F32) if kind is Y_U8 else (kind,))
    same_size(param)
    need_apart(param)
