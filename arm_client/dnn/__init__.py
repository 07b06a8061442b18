"""The DNN runtime: models on virtual BPU cores, with layers that may run on the DSP.

The C names (hbDNN*) are those of ``arm_client``; ``load`` gives models with Python's habits, and a layer of
a program's own begins with ``Layer`` or ``DspLayer``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from arm_client.lazy_names import load as _load

if TYPE_CHECKING:
    from arm_client.dnn.dsp_layer import DspLayer as DspLayer
    from arm_client.dnn.easy import Model as Model
    from arm_client.dnn.easy import Tensor as Tensor
    from arm_client.dnn.easy import TensorProperties as TensorProperties
    from arm_client.dnn.easy import load as load
    from arm_client.dnn.graph import NodeInfo as NodeInfo
    from arm_client.dnn.layers import Layer as Layer
    from arm_client.dnn.layers import TensorType as TensorType
    from arm_client.dnn.layers import rpc_ctrl as rpc_ctrl
    from arm_client.dnn.ndarray import NDArray as NDArray
    from arm_client.dnn.ndarray import TShape as TShape

__all__ = [
    "DspLayer",
    "Layer",
    "Model",
    "NDArray",
    "NodeInfo",
    "TShape",
    "Tensor",
    "TensorProperties",
    "TensorType",
    "load",
    "rpc_ctrl",
]

# From 1.31 on onnxruntime reports its use to its vendor, and keeps a number of the machine in the user's home. It reads
# this when it is loaded, which is after here; who wants the reports sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_LAZY = {
    "DspLayer": "arm_client.dnn.dsp_layer",
    "NodeInfo": "arm_client.dnn.graph",
    **dict.fromkeys(("Layer", "TensorType", "rpc_ctrl"), "arm_client.dnn.layers"),
    **dict.fromkeys(("NDArray", "TShape"), "arm_client.dnn.ndarray"),
    **dict.fromkeys(("Model", "Tensor", "TensorProperties", "load"), "arm_client.dnn.easy"),
}


def __getattr__(name: str) -> Any:
    """What loads onnxruntime is imported when it is first named."""
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'arm_client.dnn' has no attribute {name!r}")
    return _load(name, module)
