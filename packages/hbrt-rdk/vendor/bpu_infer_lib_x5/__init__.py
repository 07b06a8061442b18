"""bpu_infer_lib under its name on RDK X5; see docs/rdk.md."""

from bpu_infer_lib import Infer

__all__ = ["Infer"]
