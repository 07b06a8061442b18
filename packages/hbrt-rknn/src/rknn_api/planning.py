"""The memory that a model needs: bytes of its weights, and the offsets of its internal tensors. Pure.

Source: RKNN SDK advanced guide (chapter 5), 5.7
Emulator: placement is first fit by lifetime; sizes are rounded up as in published logs; an unquantized model's tensors
are float16.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from onnx import helper, shape_inference

from rknn_api.layouts import native_bytes, native_shape, rounded_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from onnx import ModelProto

ROUND_BYTES: Final = 1024
_WEIGHT_ALIGN: Final = 64
_PAIR: Final = frozenset({"QuantizeLinear", "DequantizeLinear"})


class Lifetime(NamedTuple):
    """A tensor between two layers.

    Attributes:
        name: In the graph.
        size_bytes: As stored by the NPU.
        first: First layer that uses it.
        last: Last one.
        user: Type of the first operator that reads it; "OutputOperator" if none does.
        dtype: As stored, such as "int8".
        shape: In the graph.
        native: As stored.
    """

    name: str
    size_bytes: int
    first: int
    last: int
    user: str = "OutputOperator"
    dtype: str = ""
    shape: tuple[int, ...] = ()
    native: tuple[int, ...] = ()


class Placed(NamedTuple):
    """A tensor with its offset in the arena, in bytes."""

    tensor: Lifetime
    start: int

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.start + self.tensor.size_bytes


def rounded(size: int, step: int = ROUND_BYTES) -> int:
    """A size rounded up; by default to the NPU's tensor alignment."""
    return rounded_bytes(size, step)


def place(tensors: Iterable[Lifetime]) -> list[Placed]:
    """Place tensors in one arena at the lowest gap that fits, so that tensors live at the same time do not overlap."""
    placed: list[Placed] = []
    for tensor in sorted(tensors, key=lambda one: (one.first, -one.size_bytes)):
        taken = sorted(
            (other.start, other.end)
            for other in placed
            if other.tensor.first <= tensor.last and tensor.first <= other.tensor.last
        )
        at = 0
        for start, end in taken:
            if start - at >= tensor.size_bytes:
                break
            at = max(at, end)
        placed.append(Placed(tensor, at))
    return placed


def arena_bytes(placed: Sequence[Placed]) -> int:
    """Size of the arena."""
    return max((one.end for one in placed), default=0)


def weight_bytes(model: ModelProto, align: int = _WEIGHT_ALIGN) -> int:
    """Bytes of a model's constants, each rounded up."""
    return sum(
        rounded(prod(one.dims) * np.dtype(helper.tensor_dtype_to_np_dtype(one.data_type)).itemsize, align)
        for one in model.graph.initializer
    )


def internal_tensors(model: ModelProto, c2: Mapping[str, int], fused: Mapping[str, str]) -> list[Lifetime]:
    """The tensors between the layers of a model whose shapes are known; inputs and outputs belong to the program.

    For a quantized model, they are the stored ones: a layer quantizes and dequantizes internally.

    Args:
        model: The graph.
        c2: The chip's innermost channels, by type.
        fused: Types of merged operators, such as "ConvRelu", by output.
    """
    graph = shape_inference.infer_shapes(model).graph
    edges = {value.name for value in (*graph.input, *graph.output)}
    same = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    users: dict[str, set[str]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, set()).add(node.op_type)
    same |= {
        node.input[0]: node.output[0]
        for node in graph.node
        if node.op_type == "QuantizeLinear" and users[node.input[0]] == {"QuantizeLinear"}
    }
    uses: dict[str, list[int]] = {}
    readers: dict[str, str] = {}
    for at, node in enumerate(graph.node):
        for name in (*node.input, *node.output):
            uses.setdefault(same.get(name, name), []).append(at)
        if node.op_type not in _PAIR:
            for name in node.input:
                readers.setdefault(same.get(name, name), fused.get(node.output[0], node.op_type))
    found = []
    for value in graph.value_info:
        kind = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in kind.shape.dim)
        if value.name not in {*edges, *same} and value.name in uses and kind.elem_type and all(shape):
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
            dtype = np.dtype(np.float16) if dtype == np.float32 else dtype
            size, native = rounded(prod(shape) * dtype.itemsize), shape
            if len(shape) == 4 and c2.get(dtype.name):
                size = native_bytes(shape, c2[dtype.name], dtype.itemsize)
                native = native_shape(shape, c2[dtype.name], dtype.itemsize)
            user = readers.get(value.name, "OutputOperator")
            found.append(
                Lifetime(value.name, size, uses[value.name][0], uses[value.name][-1], user, dtype.name, shape, native)
            )
    return found
