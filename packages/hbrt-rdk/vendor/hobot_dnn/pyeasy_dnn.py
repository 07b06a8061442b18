"""pyeasy_dnn of RDK boards, emulated by hbrt: docs/rdk.md."""

from arm_client.dnn import Model, Tensor as pyDNNTensor, TensorProperties, load
from hobot_dnn.postprocess import install
from hobot_vio import surroundings

__all__ = ["Model", "TensorProperties", "load", "pyDNNTensor"]

install()
surroundings()
