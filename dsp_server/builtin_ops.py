"""The packaged ops by command number, named but not imported: a core loads an op when it first runs it."""

from __future__ import annotations

from typing import Final

from hbrt.cv.enums import hbDSPCvCmd

NN_OPS: dict[int, tuple[str, str]] = {
    0x400: ("softmax", "dsp_server.ops.nn.softmax:hb_dsp_softmax"),
    0x401: ("quantize", "dsp_server.ops.nn.quantize:hb_dsp_quantize"),
    0x402: ("dequantize", "dsp_server.ops.nn.quantize:hb_dsp_dequantize"),
    0x403: ("centerpoint", "dsp_server.ops.nn.pointcloud:hb_dsp_centerpoint"),
    0x404: ("pointpillars", "dsp_server.ops.nn.pointcloud:hb_dsp_pointpillars"),
    0x405: ("softmax_rows", "dsp_server.ops.nn.softmax_rows:hb_dsp_softmax_rows"),
}
"""Command number -> (name, "module:function"); registered by HB_DSP_REGISTER_NN_ALL."""

_CV_FILES: Final = {
    "edges": ("canny", "corner_harris", "sobel"),
    "filters": (
        *("bilateral_filter", "box_filter", "dilate", "erode"),
        *("filter2d", "gaussian_blur", "median_blur", "sep_filter2d"),
    ),
    "flip_rotate": ("flip", "rotate", "transpose"),
    "pointwise": ("cvt_color", "equalize_hist", "integral", "threshold"),
    "resize": ("pyr_down", "pyr_up", "resize", "roi_resize"),
    "warps": ("remap", "warp_affine", "warp_perspective"),
}
_CV_FILE_OF: Final = {op: file for file, ops in _CV_FILES.items() for op in ops}

CV_OPS: dict[int, tuple[str, str]] = {
    int(cmd): (cmd.op_name, f"dsp_server.ops.cv.{_CV_FILE_OF[cmd.op_name]}:hb_dsp_{cmd.op_name}") for cmd in hbDSPCvCmd
}
"""Command number -> (name, "module:function"); registered by HB_DSP_REGISTER_CV_ALL. The numbers are hbDSPCvCmd's."""
