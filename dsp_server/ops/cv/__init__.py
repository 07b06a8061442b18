"""CV ops by command number, named and not imported: OpenCV loads when a core runs its first CV op."""

from __future__ import annotations

from hbrt.cv.commands import hbDSPCvCmd

CV_OPS: dict[int, tuple[str, str]] = {
    int(cmd): (cmd.op_name, f"dsp_server.ops.cv.{cmd.op_name}:hb_dsp_{cmd.op_name}") for cmd in hbDSPCvCmd
}
"""Command number -> (name, "module:function"), what HB_DSP_REGISTER_CV_ALL registers. The numbers are hbDSPCvCmd's."""
