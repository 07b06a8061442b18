"""Lossless pruning: removes channels with all-zero weights and bias, and the matching weights of their readers.

A zero channel is followed through operators that keep zeros, and through depthwise convolutions with zero bias at that
channel, to the convolution that reads it. Every value on the path has a single reader.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from hbrt.models.spec.graph import Graph, bodies

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEEP_ZEROS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LeakyRelu", "MaxPool", "Relu"})


class Pruned(NamedTuple):
    """A pruned model; ``saved`` and ``before`` count the weight elements removed and in total."""

    model: ModelProto
    saved: int
    before: int


def pruned(model: ModelProto) -> Pruned:
    """The model without all-zero channels; the same object if there are none.

    Args:
        model: Its batch norms must already be folded into its convolutions. Not changed.

    Source: RKNN SDK advanced guide (chapter 5), 5.8
    Emulator: the choice of channels, since the vendor's rule is not public.
    """
    before = sum(prod(tensor.dims) for tensor in model.graph.initializer)
    if any(any(bodies(node)) for node in model.graph.node):
        return Pruned(model, 0, before)
    copy = ModelProto()
    copy.CopyFrom(model)
    edit = _Edit(copy)
    for node in copy.graph.node:
        if edit.is_convolution(node) and edit.group(node) == 1:
            edit.prune(node)
    after = sum(prod(tensor.dims) for tensor in copy.graph.initializer)
    if after == before:
        return Pruned(model, 0, before)
    copy.graph.ClearField("value_info")
    return Pruned(copy, before - after, before)


class _Edit:
    """A model whose weights are pruned in place."""

    def __init__(self, model: ModelProto) -> None:
        self._graph = Graph(model)
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}

    def is_convolution(self, node: NodeProto) -> bool:
        """Whether a node is a convolution whose weights are its own constants."""
        return node.op_type == "Conv" and all(
            name in self._tensors and len(self._graph.consumers[name]) == 1 for name in node.input[1:] if name
        )

    def group(self, node: NodeProto) -> int:
        """Groups of a convolution."""
        return next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)

    def prune(self, node: NodeProto) -> None:
        """Remove the zero channels of a convolution, with everything that depends on them."""
        zero = ~self._weights(node.input[1]).reshape(self._tensors[node.input[1]].dims[0], -1).any(1)
        zero &= self._zero_bias(node)
        passed = []
        reader = self._only_reader(node)
        while reader is not None and not (self.is_convolution(reader) and self.group(reader) == 1):
            if (
                self.is_convolution(reader)
                and self.group(reader) == len(zero) == self._tensors[reader.input[1]].dims[0]
            ):
                zero &= self._zero_bias(reader)
                passed.append(reader)
            elif not self._keeps_zeros(reader):
                return
            reader = self._only_reader(reader)
        if reader is None or not zero.any():
            return
        keep = ~zero
        keep[0] |= not keep.any()  # a convolution has a channel
        for one in (node, *passed):
            for name in one.input[1:]:
                if name:
                    self._cut(name, keep, 0)
        for one in passed:
            next(attribute for attribute in one.attribute if attribute.name == "group").i = int(keep.sum())
        self._cut(reader.input[1], keep, 1)

    def _zero_bias(self, node: NodeProto) -> NDArray[np.bool_]:
        channels = self._tensors[node.input[1]].dims[0]
        has_bias = len(node.input) > 2 and node.input[2]
        return self._weights(node.input[2]) == 0 if has_bias else np.ones(channels, np.bool_)

    def _keeps_zeros(self, node: NodeProto) -> bool:
        if node.op_type == "Clip":
            limits = [self._graph.constant(name) if name else None for name in node.input[1:]]
            known = len(limits) == 2 and all(one is not None for one in limits)
            return known and bool(limits[0] <= 0 <= limits[1])  # type: ignore[operator]  # neither is None
        if node.op_type == "PRelu":  # its slopes have the channels, too
            return (slope := self._graph.constant(node.input[1])) is not None and slope.size == 1
        return node.op_type in _KEEP_ZEROS

    def _only_reader(self, node: NodeProto) -> NodeProto | None:
        """The only reader of a node's outputs; None if there are several, or if one is an output of the model."""
        readers = self._graph.consumers.get(node.output[0], [])
        is_alone = len(readers) == 1 and len(node.output) == 1 and node.output[0] not in self._graph.outputs
        return self._graph.nodes[readers[0]] if is_alone else None

    def _weights(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self._tensors[name])

    def _cut(self, name: str, keep: NDArray[np.bool_], axis: int) -> None:
        self._tensors[name].CopyFrom(numpy_helper.from_array(self._weights(name).compress(keep, axis), name))
