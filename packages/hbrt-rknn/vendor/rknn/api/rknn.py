"""The module of the class in the vendor's package: ``from rknn.api.rknn import RKNN``."""

from rknn.api import RKNN

__all__ = ["RKNN"]
