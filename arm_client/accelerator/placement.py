"""Where a piece of a model runs: on the board's accelerator cores, or in the program. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import TensorProto

from hbrt.models.spec.dtypes import NUMPY_TYPES
from hbrt.models.spec.graph_edits import graph_inputs

if TYPE_CHECKING:
    from onnx import ModelProto

MIN_SEGMENT_BYTES = 64 << 10
"""Minimum bytes of constants for a segment to run on a core."""
FOUR_BITS = frozenset({TensorProto.INT4, TensorProto.UINT4})


def runs_on_core(proto: ModelProto, *, is_segment: bool) -> bool:
    """Return whether a core, if the board has one, runs a piece of a model.

    A core moves numeric tensors with whole-byte elements. A whole model always goes there: its tasks are ordered among
    those of all programs. A segment between layers goes there only if it has weights: without them it takes less time
    than the transfer, and a real runtime keeps it on the CPU.

    Args:
        proto: The piece.
        is_segment: Whether it is the part of a model not run by layers.
    """
    for value in (*graph_inputs(proto.graph), *proto.graph.output):
        kind = value.type.tensor_type
        is_open = value.type.WhichOneof("value") is None  # an output of a segment: its session knows
        if not is_open and (kind.elem_type not in NUMPY_TYPES or kind.elem_type in FOUR_BITS):
            return False
    return not is_segment or _constant_bytes(proto) >= MIN_SEGMENT_BYTES


def _constant_bytes(proto: ModelProto) -> int:
    attributes = (attribute for node in proto.graph.node if node.op_type == "Constant" for attribute in node.attribute)
    tensors = (*proto.graph.initializer, *proto.graph.sparse_initializer, *(attribute.t for attribute in attributes))
    sizes: list[int] = [tensor.ByteSize() for tensor in tensors]
    return sum(sizes)
