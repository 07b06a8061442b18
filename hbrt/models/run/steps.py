"""Steps of a plan: segments, layers, what an observer receives, and InferShape results."""

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
        processor: "BPU" for a segment, otherwise the layer's own: "DSP" or "CPU".
        ops: Number of nodes per op type.
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
    """A node that a layer runs; ``inputs`` and ``outputs`` have "" for missing ones."""

    info: StepInfo
    node: NodeInfo
    creator: LayerCreator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class LayeredPlan(Protocol):
    """What a workspace needs from a model with layers."""

    graph: Graph
    steps: list[BuiltSegment | BuiltLayer]
    static: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    """Shape and type of values with known size."""

    def new_device(self) -> Device:
        """Create memory for the values next to a new workspace's layers."""

    def layers(self) -> list[Layer]:
        """Create the layers for a new workspace, in step order."""


def said(node: NodeInfo) -> str:
    """Name of a layer in messages."""
    return f"{node.op_type} (node {node.name!r})"
