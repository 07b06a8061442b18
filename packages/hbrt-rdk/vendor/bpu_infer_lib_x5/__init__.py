"""bpu_infer_lib under the name that it has on RDK X5: docs/rdk.md."""

from bpu_infer_lib import Infer

__all__ = ["Infer"]
