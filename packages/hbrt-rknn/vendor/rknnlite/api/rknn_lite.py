"""The module in which the vendor's package has the class: ``from rknnlite.api.rknn_lite import RKNNLite``."""

from rknnlite.api import RKNNLite

__all__ = ["RKNNLite"]
