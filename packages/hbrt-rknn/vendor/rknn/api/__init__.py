"""RKNN-Toolkit2's Python API, emulated by hbrt: ``from rknn.api import RKNN``."""

from rknn_api.vendors import refuse_beside

refuse_beside("rknn-toolkit2")

from rknn_api.toolkit.rknn import RKNN  # noqa: E402 - not next to the vendor's

__all__ = ["RKNN"]
