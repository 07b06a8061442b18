"""Models of the vendor's conversion tools on the host, emulated by hbrt: docs/rdk.md."""

from horizon_tc_ui.hb_onnxruntime import HB_ONNXRuntime
from horizon_tc_ui.hb_runtime import HBRuntime

__all__ = ["HBRuntime", "HB_ONNXRuntime"]
