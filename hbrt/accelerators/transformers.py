"""Layers of CLIP, from its public description. Weight values are not needed.

Sources: the configuration of clip-vit-base-patch32.
"""

from __future__ import annotations

from typing import Final

from hbrt.accelerators.layer import Net, Tensor

_DEPTH: Final = 12
_JOINT: Final = 512
"""Size of an embedding, the same for images and texts."""


def _encoder(net: Net, x: Tensor, heads: int) -> Net:
    """Blocks of attention and two linear layers over tokens, and the embedding of one token."""
    width, tokens = x.channels, x.height
    for _ in range(_DEPTH):
        y = net.pointwise(x)
        query, _, value = (net.linear(y, width, act="") for _ in range(3))
        scores = net.pointwise(net.matmul(query, query, Tensor(heads, tokens, tokens), width // heads))
        x = net.add(x, net.linear(net.matmul(value, scores, value, tokens), width, act=""))
        x = net.add(x, net.linear(net.linear(net.pointwise(x), 4 * width, act="gelu"), width, act=""))
    net.linear(net.pointwise(Tensor(width)), _JOINT, act="")
    return net


def clip_text(tokens: int) -> Net:
    """The text encoder; its word table is only a lookup."""
    return _encoder(Net(), Tensor(512, tokens), 8)


def clip_images(size: int = 224, patch: int = 32) -> Net:
    """The image encoder: one convolution per patch, and one extra token."""
    net = Net()
    patches = net.conv(Tensor(3, size, size), 768, patch, patch, act="")
    return _encoder(net, net.pointwise(Tensor(768, patches.height * patches.width + 1)), 12)
