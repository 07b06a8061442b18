"""A network layer as an accelerator runs it."""

from __future__ import annotations

from typing import Final, NamedTuple

CONV, DEPTHWISE, MATMUL, MOVE, POINTWISE = "conv", "depthwise", "matmul", "move", "pointwise"
"""Kinds: multiplication by weights, by per-channel weights, of two tensors; moving or pooling; elementwise tables or
functions, such as SiLU, Softmax and LayerNorm."""
CHEAP: Final = frozenset({"", "relu", "clip", "leaky"})
"""Activations that are free after a convolution."""


class Tensor(NamedTuple):
    """Sizes of a tensor: channels, height, width."""

    channels: int
    height: int = 1
    width: int = 1

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.channels * self.height * self.width


class Layer(NamedTuple):
    """One layer after fusion.

    Attributes:
        name: Name for display.
        kind: CONV, DEPTHWISE, MATMUL, MOVE or POINTWISE.
        inputs: Elements read, without weights.
        output: Elements written.
        macs: Number of multiplications.
        weights: Number of weights.
        channels: Input channels per group.
        groups: Number of channel groups.
        activation: Fused activation; "" for none.
        feature_bits: Bits per number read or written.
        weight_bits: Bits per weight.
    """

    name: str
    kind: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    macs: int = 0
    weights: int = 0
    channels: int = 0
    groups: int = 1
    activation: str = ""
    feature_bits: int = 8
    weight_bits: int = 8

    @property
    def feature_bytes(self) -> float:
        """Bytes read and written, without weights."""
        return (sum(one.elements for one in self.inputs) + self.output.elements) * self.feature_bits / 8

    @property
    def weight_bytes(self) -> float:
        """Bytes of its weights."""
        return self.weights * self.weight_bits / 8

    @property
    def precision(self) -> str:
        """Its number format: int8, or e.g. w8a16 for the bits of weights and activations."""
        is_int8 = self.weight_bits == self.feature_bits == 8
        return "int8" if is_int8 else f"w{self.weight_bits}a{self.feature_bits}"
