"""bpu_infer_lib under its name on RDK X3; see docs/rdk.md."""

from bpu_infer_lib import Infer

__all__ = ["Infer"]
