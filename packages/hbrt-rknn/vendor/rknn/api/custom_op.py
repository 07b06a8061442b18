"""For a program's own ops: ``from rknn.api.custom_op import get_node_attr``."""

from rknn_api.run.custom_ops import get_node_attr

__all__ = ["get_node_attr"]
