"""Steps of a plan: what runs segments and layers, what an observer gets, what a layer's InferShape returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hbrt.models.run.layer import Device, Layer, LayerCreator
from hbrt.models.spec.graph import Graph, NodeInfo

if TYPE_CHECKING:
    import numpy as np

    from hbrt.models.run.session import Session

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
    session: Session
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

    def new_device(self) -> Device:
        """Memory for the values beside layers of a new workspace."""

    def layers(self) -> list[Layer]:
        """Layers for a new workspace, in the order of the steps."""


def said(node: NodeInfo) -> str:
    """How a message calls a layer."""
    return f"{node.op_type} (node {node.name!r})"
