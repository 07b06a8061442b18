"""The packaged NN ops as Python calls: numpy or board arrays in, board arrays out."""

from __future__ import annotations

from arm_client.nn.quanti import dequantize, dequantize_shift, quantize, quantize_shift
from arm_client.nn.rows import softmax

__all__ = ["dequantize", "dequantize_shift", "quantize", "quantize_shift", "softmax"]
