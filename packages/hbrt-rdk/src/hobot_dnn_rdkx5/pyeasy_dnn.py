"""pyeasy_dnn of RDK X5, emulated by hbrt: docs/rdk.md."""

from arm_client.dnn import Model, Tensor, TensorProperties, load

__all__ = ["Model", "Tensor", "TensorProperties", "load"]
