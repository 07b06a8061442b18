"""Steps of a plan: what runs segments and layers, what an observer gets, what a layer's InferShape returns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from arm_client.dnn.errors import ModelError, one_line
from arm_client.dnn.layers.layer import Layer, LayerCreator, TensorType
from arm_client.dnn.spec.graph import Graph, NodeInfo
from hbrt.status import Status

if TYPE_CHECKING:
    import onnxruntime as ort

Observer = Callable[["StepTime"], None]


class StepInfo(NamedTuple):
    """One step of a plan.

    Attributes:
        name: ``segment_0``, or the node that a layer runs.
        processor: "BPU" for a segment, else what the layer says: "DSP" or "CPU".
        ops: How many nodes of each op type it runs.
    """

    name: str
    processor: str
    ops: dict[str, int]


class StepTime(NamedTuple):
    """When a step ran: nanoseconds of ``time.perf_counter_ns``."""

    name: str
    processor: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, eq=False)
class BuiltSegment:
    """A segment and its session."""

    info: StepInfo
    session: ort.InferenceSession
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class BuiltLayer:
    """A node that a layer runs; ``inputs`` and ``outputs`` have "" for what is left out."""

    info: StepInfo
    node: NodeInfo
    creator: LayerCreator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class LayeredPlan(Protocol):
    """What a workspace needs of a model with layers."""

    graph: Graph
    steps: list[BuiltSegment | BuiltLayer]
    static: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    """Values of known size: shape and type."""

    def layers(self) -> list[Layer]:
        """Layers for a new workspace, in the order of the steps."""


def said(node: NodeInfo) -> str:
    """How a message calls a layer."""
    return f"{node.op_type} (node {node.name!r})"


def infer_shape(layer: Layer, bottom: list[TensorType | None], node: NodeInfo) -> list[TensorType]:
    """What a layer's InferShape says.

    Raises:
        ModelError: INCOMPATIBLE_MODEL: it fails, or says something else than TensorTypes.
    """
    returned = call_layer(lambda: layer.InferShape(bottom), node, f"InferShape({bottom})")
    return list(call_layer(lambda: _tensor_types(returned), node, "InferShape"))


def _tensor_types(returned: object) -> list[TensorType]:
    if isinstance(returned, TensorType) or not isinstance(returned, Iterable):
        raise TypeError(f"it gave {returned!r}; give a list with a TensorType(shape, dtype) for each output")
    types = []
    for one in returned:
        if not isinstance(one, TensorType):
            raise TypeError(f"it gave {one!r} in its list, which is no TensorType(shape, dtype)")
        shape = None if one.shape is None else tuple(operator.index(size) for size in one.shape)
        types.append(TensorType(shape, np.dtype(one.dtype)))
    return types


def call_layer(function: Callable[[], Any], node: NodeInfo, what: str) -> Any:
    """Call a program's own code of a layer.

    Raises:
        ModelError: INCOMPATIBLE_MODEL: it raised anything; says what, and in which node.
    """
    try:
        return function()
    except ModelError:
        raise
    except (Exception, SystemExit) as error:  # a program's own code raises anything, and may not end the program
        raise ModelError(
            Status.HB_DNN_INCOMPATIBLE_MODEL,
            f"The {what} of the layer {said(node)} raised {type(error).__name__}: {one_line(error)}",
        ) from error
