"""CV ops by command number, named and not imported, as dsp_server.ops.nn does for the NN ops."""

from __future__ import annotations

CV_OPS: dict[int, tuple[str, str]] = {}
"""Command number -> (name, "module:function"), what HB_DSP_REGISTER_CV_ALL registers. No CV op is packaged yet."""
