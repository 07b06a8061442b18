"""The module in which the vendor's package has the class: ``from rknn.api.rknn import RKNN``."""

from rknn.api import RKNN

__all__ = ["RKNN"]
