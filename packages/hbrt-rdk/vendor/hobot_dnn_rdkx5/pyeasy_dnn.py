"""pyeasy_dnn of RDK X5, the same as on the other boards; see docs/rdk.md."""

from hobot_dnn.pyeasy_dnn import Model, TensorProperties, load, pyDNNTensor

__all__ = ["Model", "TensorProperties", "load", "pyDNNTensor"]
