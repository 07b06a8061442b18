"""pyeasy_dnn of RDK boards, emulated by hbrt: docs/rdk.md."""

from arm_client.dnn import Model, Tensor, TensorProperties, load

__all__ = ["Model", "Tensor", "TensorProperties", "load"]
