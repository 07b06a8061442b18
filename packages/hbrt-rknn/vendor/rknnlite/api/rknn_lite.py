"""The module of the class in the vendor's package: ``from rknnlite.api.rknn_lite import RKNNLite``."""

from rknnlite.api import RKNNLite

__all__ = ["RKNNLite"]
