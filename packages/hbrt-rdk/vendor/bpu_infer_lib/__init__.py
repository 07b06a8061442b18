"""bpu_infer_lib of RDK X3 and X5, emulated by hbrt: docs/rdk.md."""

from bpu_infer_lib.infer import Infer
from hobot_vio import surroundings

__all__ = ["Infer"]

surroundings()
