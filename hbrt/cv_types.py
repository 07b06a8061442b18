"""Every public name of the CV ops: commands, image descriptor, parameter structures, enums as flat constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hbrt.cv.edges import (
    hbDSPCvCannyParam as hbDSPCvCannyParam,
    hbDSPCvCornerHarrisParam as hbDSPCvCornerHarrisParam,
    hbDSPCvSobelParam as hbDSPCvSobelParam,
)
from hbrt.cv.enums import *  # noqa: F403 - all of them
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
    hbDSPCvFlipParam as hbDSPCvFlipParam,
    hbDSPCvRotateParam as hbDSPCvRotateParam,
    hbDSPCvTransposeParam as hbDSPCvTransposeParam,
)
from hbrt.cv.image import (
    MAX_SIDE as MAX_SIDE,
    CvRuleError as CvRuleError,
)
from hbrt.cv.pointwise import (
    hbDSPCvCvtColorParam as hbDSPCvCvtColorParam,
    hbDSPCvEqualizeHistParam as hbDSPCvEqualizeHistParam,
    hbDSPCvIntegralParam as hbDSPCvIntegralParam,
    hbDSPCvThresholdParam as hbDSPCvThresholdParam,
)
from hbrt.cv.resize import (
    hbDSPCvPyrDownParam as hbDSPCvPyrDownParam,
    hbDSPCvPyrUpParam as hbDSPCvPyrUpParam,
    hbDSPCvResizeParam as hbDSPCvResizeParam,
    hbDSPCvRoiResizeParam as hbDSPCvRoiResizeParam,
)
from hbrt.cv.rules import (
    CvParam as CvParam,
    CvRules as CvRules,
)
from hbrt.cv.structures import (
    hbDSPCvRoi as hbDSPCvRoi,
    hbVPFilterKernel as hbVPFilterKernel,
    hbVPImage as hbVPImage,
)
from hbrt.cv.warps import (
    hbDSPCvRemapParam as hbDSPCvRemapParam,
    hbDSPCvWarpAffineParam as hbDSPCvWarpAffineParam,
    hbDSPCvWarpPerspectiveParam as hbDSPCvWarpPerspectiveParam,
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...
