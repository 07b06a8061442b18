"""Command numbers of the CV ops. The range 0x800..0xfff is public; the numbers in it are the emulator's choice."""

from __future__ import annotations

from enum import IntEnum

_PREFIX = "HB_DSP_RPC_CMD_CV_"


class hbDSPCvCmd(IntEnum):
    """The packaged CV ops, in the order in which the manual lists them."""

    HB_DSP_RPC_CMD_CV_BILATERAL_FILTER = 0x800
    HB_DSP_RPC_CMD_CV_BOX_FILTER = 0x801
    HB_DSP_RPC_CMD_CV_CANNY = 0x802
    HB_DSP_RPC_CMD_CV_CORNER_HARRIS = 0x803
    HB_DSP_RPC_CMD_CV_CVT_COLOR = 0x804
    HB_DSP_RPC_CMD_CV_DILATE = 0x805
    HB_DSP_RPC_CMD_CV_EQUALIZE_HIST = 0x806
    HB_DSP_RPC_CMD_CV_ERODE = 0x807
    HB_DSP_RPC_CMD_CV_FILTER2D = 0x808
    HB_DSP_RPC_CMD_CV_FLIP = 0x809
    HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR = 0x80A
    HB_DSP_RPC_CMD_CV_INTEGRAL = 0x80B
    HB_DSP_RPC_CMD_CV_MEDIAN_BLUR = 0x80C
    HB_DSP_RPC_CMD_CV_PYR_DOWN = 0x80D
    HB_DSP_RPC_CMD_CV_PYR_UP = 0x80E
    HB_DSP_RPC_CMD_CV_REMAP = 0x80F
    HB_DSP_RPC_CMD_CV_RESIZE = 0x810
    HB_DSP_RPC_CMD_CV_ROI_RESIZE = 0x811
    HB_DSP_RPC_CMD_CV_ROTATE = 0x812
    HB_DSP_RPC_CMD_CV_SEP_FILTER2D = 0x813
    HB_DSP_RPC_CMD_CV_SOBEL = 0x814
    HB_DSP_RPC_CMD_CV_THRESHOLD = 0x815
    HB_DSP_RPC_CMD_CV_TRANSPOSE = 0x816
    HB_DSP_RPC_CMD_CV_WARP_AFFINE = 0x817
    HB_DSP_RPC_CMD_CV_WARP_PERSPECTIVE = 0x818

    @property
    def op_name(self) -> str:
        """Name of the op: `gaussian_blur` for HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR."""
        return self.name.removeprefix(_PREFIX).lower()
