"""Models of the vendor's conversion tools on the host, emulated by hbrt: docs/rdk.md."""

from horizon_tc_ui.hb_onnxruntime import HB_ONNXRuntime

__all__ = ["HB_ONNXRuntime"]
