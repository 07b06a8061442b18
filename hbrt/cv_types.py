"""Every public name of the CV ops: commands, image descriptor, parameter structures, enums as flat constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hbrt.cv.commands import (
    hbDSPCvCmd as hbDSPCvCmd,
)
from hbrt.cv.edges import (
    HB_VP_NORM_L1 as HB_VP_NORM_L1,
    HB_VP_NORM_L2 as HB_VP_NORM_L2,
    hbDSPCvCannyParam as hbDSPCvCannyParam,
    hbDSPCvCornerHarrisParam as hbDSPCvCornerHarrisParam,
    hbDSPCvSobelParam as hbDSPCvSobelParam,
)
from hbrt.cv.filters import (
    hbDSPCvBilateralFilterParam as hbDSPCvBilateralFilterParam,
    hbDSPCvBoxFilterParam as hbDSPCvBoxFilterParam,
    hbDSPCvDilateParam as hbDSPCvDilateParam,
    hbDSPCvErodeParam as hbDSPCvErodeParam,
    hbDSPCvFilter2DParam as hbDSPCvFilter2DParam,
    hbDSPCvGaussianBlurParam as hbDSPCvGaussianBlurParam,
    hbDSPCvMedianBlurParam as hbDSPCvMedianBlurParam,
    hbDSPCvSepFilter2DParam as hbDSPCvSepFilter2DParam,
)
from hbrt.cv.flip_rotate import (
    HB_VP_FLIP_BOTH as HB_VP_FLIP_BOTH,
    HB_VP_FLIP_HORIZONTAL as HB_VP_FLIP_HORIZONTAL,
    HB_VP_FLIP_VERTICAL as HB_VP_FLIP_VERTICAL,
    HB_VP_ROTATE_90_CLOCKWISE as HB_VP_ROTATE_90_CLOCKWISE,
    HB_VP_ROTATE_90_COUNTER_CLOCKWISE as HB_VP_ROTATE_90_COUNTER_CLOCKWISE,
    HB_VP_ROTATE_180 as HB_VP_ROTATE_180,
    hbDSPCvFlipParam as hbDSPCvFlipParam,
    hbDSPCvRotateParam as hbDSPCvRotateParam,
    hbDSPCvTransposeParam as hbDSPCvTransposeParam,
)
from hbrt.cv.image import (
    MAX_SIDE as MAX_SIDE,
    CvRuleError as CvRuleError,
    hbVPImage as hbVPImage,
    hbVPImageFormat as hbVPImageFormat,
    hbVPImageType as hbVPImageType,
)
from hbrt.cv.pointwise import (
    HB_VP_THRESH_BINARY as HB_VP_THRESH_BINARY,
    HB_VP_THRESH_BINARY_INV as HB_VP_THRESH_BINARY_INV,
    HB_VP_THRESH_TOZERO as HB_VP_THRESH_TOZERO,
    HB_VP_THRESH_TOZERO_INV as HB_VP_THRESH_TOZERO_INV,
    HB_VP_THRESH_TRUNC as HB_VP_THRESH_TRUNC,
    hbDSPCvCvtColorParam as hbDSPCvCvtColorParam,
    hbDSPCvEqualizeHistParam as hbDSPCvEqualizeHistParam,
    hbDSPCvIntegralParam as hbDSPCvIntegralParam,
    hbDSPCvThresholdParam as hbDSPCvThresholdParam,
)
from hbrt.cv.resize import (
    hbDSPCvPyrDownParam as hbDSPCvPyrDownParam,
    hbDSPCvPyrUpParam as hbDSPCvPyrUpParam,
    hbDSPCvResizeParam as hbDSPCvResizeParam,
    hbDSPCvRoi as hbDSPCvRoi,
    hbDSPCvRoiResizeParam as hbDSPCvRoiResizeParam,
)
from hbrt.cv.rules import (
    HB_VP_BORDER_CONSTANT as HB_VP_BORDER_CONSTANT,
    HB_VP_BORDER_REPLICATE as HB_VP_BORDER_REPLICATE,
    HB_VP_INTER_GAUSSIAN as HB_VP_INTER_GAUSSIAN,
    HB_VP_INTER_LINEAR as HB_VP_INTER_LINEAR,
    HB_VP_INTER_NEAREST as HB_VP_INTER_NEAREST,
    CvParam as CvParam,
    hbVPFilterKernel as hbVPFilterKernel,
)
from hbrt.cv.warps import (
    hbDSPCvRemapParam as hbDSPCvRemapParam,
    hbDSPCvWarpAffineParam as hbDSPCvWarpAffineParam,
    hbDSPCvWarpPerspectiveParam as hbDSPCvWarpPerspectiveParam,
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


# The flat names of the vendor's headers: the same objects as the members.
for _kind in (hbDSPCvCmd, hbVPImageFormat, hbVPImageType):
    globals().update(_kind.__members__)
