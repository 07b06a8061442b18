"""Tools of RKNN-Toolkit2, emulated by hbrt: ``from rknn.utils import onnx_edit``."""

from rknn_api.vendors import refuse_beside

refuse_beside("rknn-toolkit2")

from rknn_api.onnx_edit.command import onnx_edit  # noqa: E402 - not next to the vendor's

__all__ = ["onnx_edit"]
