"""pyeasy_dnn of RDK X5, as of the other boards: docs/rdk.md."""

from hobot_dnn.pyeasy_dnn import Model, TensorProperties, load, pyDNNTensor

__all__ = ["Model", "TensorProperties", "load", "pyDNNTensor"]
