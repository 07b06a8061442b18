"""Memory that a model would need on the chip, modeled. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from onnx import ModelProto, helper

from rknn_api.perf.cost import Chip, native_bytes
from rknn_api.perf.layers import Layer
from rknn_api.planning import rounded


@dataclass(frozen=True)
class Memory:
    """Bytes: of weights; of internal values that are live at the same time; of inputs and outputs."""

    weight: int
    internal: int
    other: int

    def as_dict(self) -> dict[str, int]:
        """As returned by ``eval_memory``."""
        return {
            "weight_memory": self.weight,
            "internal_memory": self.internal,
            "other_memory": self.other,
            "total_memory": self.weight + self.internal + self.other,
        }


def memory_of(model: ModelProto, layers: Sequence[Layer], chip: Chip) -> Memory:
    """The memory of a model.

    Emulator: internal values are the inputs and outputs of one layer, at the maximum over layers.
    """
    weight = sum(
        helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * prod(tensor.dims)
        for tensor in model.graph.initializer
    )
    inside = [layer for layer in layers if layer.target == "NPU"]
    internal = max(
        (sum(rounded(native_bytes(shape, layer, chip)) for shape in (*layer.inputs, layer.output)) for layer in inside),
        default=0,
    )
    edges = [layer for layer in layers if layer.op_type in {"InputOperator", "OutputOperator"}]
    return Memory(weight, internal, sum(rounded(native_bytes(one.output, one, chip)) for one in edges))
