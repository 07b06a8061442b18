"""A network layer as an accelerator runs it, and a builder of a network's layers from its description."""

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


class Net:
    """Builds the layers of a network, one per call; each call returns the layer's output."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []

    def conv(
        self, x: Tensor, channels: int, kernel: int = 1, stride: int = 1, groups: int = 1, act: str = "silu"
    ) -> Tensor:
        """Convolve, padded by half the kernel, and apply the activation."""
        y = Tensor(channels, -(-x.height // stride), -(-x.width // stride))
        inner = x.channels // groups
        weights = channels * inner * kernel * kernel
        kind = DEPTHWISE if groups > 1 and inner == 1 else CONV
        self._add(kind, (x,), y, weights * y.height * y.width, weights, inner, groups, act)
        return y

    def sided(self, x: Tensor, channels: int, kernel: int, act: str = "") -> Tensor:
        """Convolve with a kernel of 1 x n or n x 1."""
        y = Tensor(channels, x.height, x.width)
        weights = channels * x.channels * kernel
        self._add(CONV, (x,), y, weights * y.height * y.width, weights, x.channels, 1, act)
        return y

    def transposed(self, x: Tensor, channels: int, kernel: int, stride: int, act: str = "") -> Tensor:
        """Transposed convolution: each input produces kernel x kernel outputs."""
        y = Tensor(channels, x.height * stride, x.width * stride)
        weights = channels * x.channels * kernel * kernel
        self._add(CONV, (x,), y, weights * x.height * x.width, weights, x.channels, 1, act)
        return y

    def linear(self, x: Tensor, features: int, act: str = "") -> Tensor:
        """Multiply the channels at each position by a matrix."""
        return self.conv(x, features, act=act)

    def matmul(self, x: Tensor, y: Tensor, output: Tensor, inner: int) -> Tensor:
        """Multiply two tensors; ``inner`` is the length of the sums."""
        self._add(MATMUL, (x, y), output, output.elements * inner, 0, inner)
        return output

    def move(self, *inputs: Tensor, output: Tensor) -> Tensor:
        """Copy, pool, resize or add."""
        self._add(MOVE, inputs, output)
        return output

    def pool(self, x: Tensor, stride: int = 1) -> Tensor:
        """Pool windows."""
        return self.move(x, output=Tensor(x.channels, -(-x.height // stride), -(-x.width // stride)))

    def mean(self, x: Tensor) -> Tensor:
        """Pool globally."""
        return self.move(x, output=Tensor(x.channels))

    def up(self, x: Tensor, factor: int = 2) -> Tensor:
        """Resize."""
        return self.move(x, output=Tensor(x.channels, x.height * factor, x.width * factor))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Add two tensors, or multiply them."""
        return self.move(x, y, output=x)

    def concat(self, *inputs: Tensor) -> Tensor:
        """Concatenate channels."""
        first = inputs[0]
        return self.move(*inputs, output=Tensor(sum(one.channels for one in inputs), first.height, first.width))

    def pointwise(self, x: Tensor) -> Tensor:
        """Apply a function that is not fused, such as Softmax, LayerNorm or GELU."""
        self._add(POINTWISE, (x,), x)
        return x

    def _add(
        self,
        kind: str,
        inputs: tuple[Tensor, ...],
        output: Tensor,
        macs: int = 0,
        weights: int = 0,
        channels: int = 0,
        groups: int = 1,
        activation: str = "",
    ) -> None:
        name = f"{kind}_{len(self.layers)}"
        self.layers.append(Layer(name, kind, inputs, output, macs, weights, channels, groups, activation))
