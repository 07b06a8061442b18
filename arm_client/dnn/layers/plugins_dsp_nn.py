"""The shipped plugin, replacing the board's libhb_dsp_nn_plugin.so: Softmax, QuantizeLinear, DequantizeLinear.

The NN ops of the board's DSP (0x400 to 0x402) compute their nodes. Nodes that an op cannot compute stay in onnxruntime,
with the reason.
"""

from __future__ import annotations

from arm_client.dnn.layers.dsp_quanti import DspDequantizeLinear, DspQuantizeLinear
from arm_client.dnn.layers.dsp_softmax import DspSoftmax
from arm_client.dnn.layers.layer import registry

__all__ = ["LAYERS", "DspDequantizeLinear", "DspQuantizeLinear", "DspSoftmax", "register"]

LAYERS = {
    "Softmax": DspSoftmax,
    "QuantizeLinear": DspQuantizeLinear,
    "DequantizeLinear": DspDequantizeLinear,
}


def register() -> None:
    """Make the DSP run the three op types."""
    for name, creator in LAYERS.items():
        registry.register(name, creator)
