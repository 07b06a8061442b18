"""The DNN runtime: models on virtual BPU cores, with layers that may run on the DSP.

The C names (hbDNN*) are those of ``arm_client``; ``load`` gives models with Python's habits.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arm_client.dnn.easy import Model as Model
    from arm_client.dnn.easy import Tensor as Tensor
    from arm_client.dnn.easy import TensorProperties as TensorProperties
    from arm_client.dnn.easy import load as load

__all__ = ["Model", "Tensor", "TensorProperties", "load"]


def __getattr__(name: str) -> Any:
    """What loads onnxruntime is imported when it is first named."""
    if name not in __all__:
        raise AttributeError(f"module 'arm_client.dnn' has no attribute {name!r}")
    return getattr(import_module("arm_client.dnn.easy"), name)
