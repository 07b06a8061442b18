"""A model with some nodes run by layers: built once, with its segments as onnxruntime sessions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from hbrt.models.errors import GraphError, incompatible
from hbrt.models.run.layer import Device, Layer, LayerCreator, TensorType
from hbrt.models.run.partition import LayerStep, inlined, partition, segment_model
from hbrt.models.run.session import Session, Sessions
from hbrt.models.run.steps import BuiltLayer, BuiltSegment, Observer, StepInfo, said
from hbrt.models.run.stop import Stop
from hbrt.models.run.workspace import Workspace
from hbrt.models.spec.graph import Graph, NodeInfo, described
from hbrt.models.spec.spec import DYNAMIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

Creators = Mapping[tuple[str, str], LayerCreator]


class Layered:
    """Steps of a model with layers. Thread-safe: each thread has its own workspace."""

    def __init__(
        self,
        proto: ModelProto,
        label: str,
        creators: Creators,
        device: Callable[[], Device],
        threads: int | None,
        sessions: Sessions,
    ) -> None:
        """Build.

        Args:
            proto: A checked model; not modified.
            label: What to call it in a message.
            creators: Layer creators by (domain, op type).
            device: Allocates memory for the values next to layers.
            threads: Threads per session.
            sessions: Loads the segments.

        Raises:
            GraphError: INVALID or INCOMPATIBLE: onnxruntime or a layer refuses a part, says why.
        """
        self.new_device = device
        self._label = label
        self._threads, self._sessions = threads, sessions
        self.graph = Graph(inlined(proto, lambda domain, op_type: (domain, op_type) in creators))
        self.notes: list[str] = []
        self._declined: list[tuple[str, str]] = []  # op type, and its line in the notes
        chosen = self._choose(creators)
        self.types: dict[str, ValueInfoProto] = dict(self.graph.inputs)
        self.steps: list[BuiltSegment | BuiltLayer] = []
        self.first_layers: dict[int, Layer] = {}  # for the first workspace; others create theirs
        segments = 0
        for step in partition(self.graph, chosen):
            if isinstance(step, LayerStep):
                self._add_layer(step.node, *chosen[step.node])
                continue
            part = f"{label}, segment {segments}"
            name, segments = f"segment_{segments}", segments + 1
            content = segment_model(self.graph, step, self.types)
            session = self._session(content, part, {self.graph.nodes[at].op_type for at in step.nodes})
            self.types.update(self._known(session.output_types()))
            ops = Counter(self.graph.nodes[at].op_type for at in step.nodes)
            self.steps.append(BuiltSegment(StepInfo(name, "BPU", dict(ops)), session, step.inputs, step.outputs))
        self.is_elsewhere = any(isinstance(step, BuiltSegment) and step.session.is_elsewhere for step in self.steps)
        self.static = self._static()
        self._idle: list[Workspace] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def run(
        self,
        feeds: dict[str, NDArray[Any]],
        outputs: dict[str, NDArray[Any] | None],
        stop: Stop,
        ctrl: Any,
        observer: Observer | None,
    ) -> dict[str, NDArray[Any]]:
        """See ``Plan.run``."""
        workspace = self._take()
        try:
            return workspace.run(feeds, outputs, stop, ctrl, observer)
        finally:
            self._release(workspace)

    def close(self) -> None:
        """Free the memory of all layers; nothing may be running."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for workspace in idle:
            workspace.close()
        for layer in self.first_layers.values():  # for a plan that never ran
            layer.tear_down()
        self.first_layers.clear()
        for step in self.steps:
            if isinstance(step, BuiltSegment):
                step.session.close()

    def layers(self) -> list[Layer]:
        """Create the layers for a new workspace, in step order.

        Raises:
            GraphError: RUN_FAILED: a creator or SetUp fails that did not fail at load.
        """
        made = []
        for at, step in enumerate(self.steps):
            if isinstance(step, BuiltLayer):
                layer = self.first_layers.pop(at, None)
                made.append(layer if layer is not None else _set_up(step.creator, step.node))
        return made

    def _take(self) -> Workspace:
        while True:
            with self._lock:
                workspace = self._idle.pop() if self._idle else None
            if workspace is None:
                return Workspace(self)
            if workspace.device.is_usable:
                return workspace
            workspace.close()  # its board is gone, or belongs to the parent

    def _release(self, workspace: Workspace) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(workspace)
                return
        workspace.close()

    def _choose(self, creators: Creators) -> dict[int, tuple[LayerCreator, Layer]]:
        """Return the nodes that layers run, with their creators and the first layer of each."""
        chosen: dict[int, tuple[LayerCreator, Layer]] = {}
        declined: Counter[tuple[str, str]] = Counter()
        for at, node in enumerate(self.graph.nodes):
            creator = creators.get((node.domain, node.op_type))
            if creator is None:
                continue
            info = self.graph.info(at)
            layer = creator(info)
            if reason := layer.decline():
                declined[node.op_type, reason] += 1
            else:
                chosen[at] = (creator, layer)
        for info in self.graph.nested():
            creator = creators.get((info.domain, info.op_type))
            if creator is None:
                continue
            reason = creator(info).decline()
            if not reason:
                raise incompatible(
                    f"{self._label}: the node {info.name!r} of type {info.op_type} is in the body of an If, Loop "
                    "or Scan, where layers cannot run. Unregister it, or make it decline such nodes (is_nested), "
                    "which leaves them to onnxruntime."
                )
            declined[info.op_type, reason] += 1
        totals = Counter(node.op_type for node in self.graph.nodes)
        for (op_type, reason), count in declined.items():
            note = f"{count} of {max(totals[op_type], count)} {op_type} nodes stay in onnxruntime: {reason}"
            self.notes.append(note)
            self._declined.append((op_type, note))
        return chosen

    def _session(self, content: ModelProto, label: str, op_types: set[str]) -> Session:
        """Create a segment's session; a refusal lists the segment's nodes that layers declined, and why."""
        try:
            return self._sessions(content, label, self._threads, is_segment=True)
        except GraphError as error:
            notes = "; ".join(note for op_type, note in self._declined if op_type in op_types)
            if not notes:
                raise
            raise GraphError(error.reason, f"{error} Layers declined nodes of it: {notes}.") from None

    def _add_layer(self, at: int, creator: LayerCreator, layer: Layer) -> None:
        node, info = self.graph.nodes[at], self.graph.info(at)
        layer.set_up()
        bottom = [self._tensor_type(name, info) if name else None for name in node.input]
        tops = layer.infer_shape(bottom)
        if len(tops) < len(node.output):
            raise incompatible(
                f"The layer {said(info)} has {len(node.output)} outputs, but it returned {len(tops)} shapes."
            )
        for name, top in zip(node.output, tops, strict=False):
            if name:
                self.types[name] = self._declared(name, top, info)
        step = StepInfo(info.name, layer.processor, {node.op_type: 1})
        self.first_layers[len(self.steps)] = layer
        self.steps.append(BuiltLayer(step, info, creator, tuple(node.input), tuple(node.output)))

    def _tensor_type(self, name: str, info: NodeInfo) -> TensorType:
        constant = self.graph.constant(name)
        if constant is not None:
            return TensorType(constant.shape, constant.dtype)
        dtype, shape = described(self.types[name]) if name in self.types else (None, None)
        if dtype is None:
            raise incompatible(f"The layer {said(info)} reads {name!r}, which is not a numeric tensor.")
        return TensorType(shape, dtype)

    def _known(self, types: dict[str, ValueInfoProto]) -> dict[str, ValueInfoProto]:
        """Return types with the shapes onnxruntime omits: it reports scalars and unknown ranks alike."""
        for name, entry in types.items():
            kind = entry.type.tensor_type
            known = self.graph.known.get(name)
            if kind.elem_type and not kind.HasField("shape") and known is not None:
                other = known.type.tensor_type
                if other.elem_type == kind.elem_type and other.HasField("shape"):
                    kind.shape.CopyFrom(other.shape)
        return types

    def _declared(self, name: str, top: TensorType, info: NodeInfo) -> ValueInfoProto:
        """Return the type of a layer's output, which must match the model's declaration, if any."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(top.dtype))
        sizes = None if top.shape is None else [None if size == DYNAMIC else int(size) for size in top.shape]
        made = helper.make_tensor_value_info(name, element, sizes)
        declared = self.graph.outputs.get(name)
        if declared is None:
            return made
        dtype, shape = described(declared)
        fits = dtype in {None, np.dtype(top.dtype)} and (
            shape is None
            or top.shape is None
            or (
                len(shape) == len(top.shape)
                and all(one == other or DYNAMIC in {one, other} for one, other in zip(shape, top.shape, strict=True))
            )
        )
        if not fits:
            raise incompatible(
                f"The layer {said(info)} made {name!r} with type {np.dtype(top.dtype)} and shape {top.shape}, but the "
                f"model declares {dtype} and {shape}."
            )
        return made

    def _static(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Return shape and type of values between steps with known sizes; the model's outputs belong to the caller."""
        inside = {name for step in self.steps for name in step.outputs if name and name not in self.graph.outputs}
        found = {}
        for name in inside:
            dtype, shape = described(self.types[name])
            # onnxruntime keeps types that numpy knows only through ml_dtypes, such as bfloat16.
            if dtype is not None and dtype.kind != "V" and shape is not None and DYNAMIC not in shape:
                found[name] = (shape, dtype)
        return found


def _set_up(creator: LayerCreator, node: NodeInfo) -> Layer:
    layer = creator(node)
    layer.set_up()
    return layer
