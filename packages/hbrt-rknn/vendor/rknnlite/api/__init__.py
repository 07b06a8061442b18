"""RKNN-Toolkit-Lite2's Python API, emulated by hbrt: ``from rknnlite.api import RKNNLite``."""

from rknn_api.vendors import refuse_beside

refuse_beside("rknn-toolkit-lite2")

from rknn_api.lite import host  # noqa: E402 - not next to the vendor's
from rknn_api.lite.rknn_lite import RKNNLite  # noqa: E402

__all__ = ["RKNNLite"]

host.install()
