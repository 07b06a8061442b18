"""Partitions a model's graph into segments for onnxruntime and the layers between them. Pure.

A node's depth is the largest number of layers on any path to it from an input. All nodes of equal depth form one
segment, which minimizes the number of segments: at most one more than the layers on the longest path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import onnx.inliner
from onnx import FunctionProto, ModelProto, NodeProto, ValueInfoProto

from hbrt.models.spec.graph import Graph, bodies, name_of, reads


class CyclicGraphError(ValueError):
    """The graph has no execution order."""


@dataclass(frozen=True)
class Segment:
    """Nodes that onnxruntime runs as a unit.

    Attributes:
        nodes: Indices in the graph, in execution order.
        inputs: Values from the model, from layers or earlier segments; not constants.
        outputs: Values that are model outputs, or that layers or later segments read.
    """

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class LayerStep:
    """One node that a layer runs: its index in the graph."""

    node: int


Step = Segment | LayerStep


def partition(graph: Graph, is_layer: Collection[int]) -> list[Step]:
    """Return the steps of a graph in execution order, without nodes that no output needs.

    Args:
        graph: The model's graph.
        is_layer: Indices of the nodes that layers run.

    Raises:
        CyclicGraphError: the graph has no such order; names a node of the cycle.
    """
    needed = _needed(graph)
    order = [at for at in _sorted(graph) if at in needed]
    depths: dict[int, int] = {}
    for at in order:
        before = [graph.producers[name] for name in reads(graph.nodes[at]) if name in graph.producers]
        depths[at] = max((depths[other] + (other in is_layer) for other in before), default=0)
    # A constant belongs to the segment or layer that reads it, whatever its depth.
    constants = {at for at in order if _is_constant(graph.nodes[at])}
    steps: list[Step] = []
    for depth in range(max(depths.values(), default=-1) + 1):
        here = [at for at in order if depths[at] == depth]
        plain = [at for at in here if at not in is_layer and at not in constants]
        if plain:
            steps.append(_segment(graph, plain, constants, needed))
        steps += [LayerStep(at) for at in here if at in is_layer]
    return steps


def segment_model(graph: Graph, segment: Segment, types: Mapping[str, ValueInfoProto]) -> ModelProto:
    """Return a segment as a model of its own.

    Args:
        graph: The whole graph.
        segment: One of its segments.
        types: Types of the segment's inputs. onnxruntime infers the outputs'.
    """
    source = graph.model
    nodes = [graph.nodes[at] for at in segment.nodes]
    wanted = {name for node in nodes for name in reads(node)}
    model = ModelProto(ir_version=source.ir_version, functions=source.functions, metadata_props=source.metadata_props)
    used = _domains(nodes) | {domain for function in source.functions for domain in _function_domains(function)}
    model.opset_import.extend(entry for entry in source.opset_import if entry.domain in used | {"", "ai.onnx"})
    model.graph.name = source.graph.name
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(tensor for name, tensor in graph.tensors.items() if name in wanted)
    model.graph.sparse_initializer.extend(tensor for name, tensor in graph.sparse.items() if name in wanted)
    for name in segment.inputs:
        entry = model.graph.input.add()
        entry.CopyFrom(types[name])
        entry.name = name
    model.graph.output.extend(ValueInfoProto(name=name) for name in segment.outputs)
    return model


def op_types(model: ModelProto) -> set[tuple[str, str]]:
    """Return (domain, op type) of every node of a model, including bodies and functions."""
    found: set[tuple[str, str]] = set()
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        _collect(nodes, found)
    return found


def inlined(model: ModelProto, is_layer: Callable[[str, str], bool]) -> ModelProto:
    """Inline the model's functions whose bodies have nodes for layers.

    A function replaced by a layer remains a node.

    Args:
        model: Not modified.
        is_layer: Whether a layer takes (domain, op type).
    """
    by_name = {(function.domain, function.name): function for function in model.functions}
    opened: set[tuple[str, str]] = set()
    while True:  # functions may call functions
        more = {
            name
            for name, function in by_name.items()
            if name not in opened and not is_layer(*name) and _has(function, is_layer, opened)
        }
        if not more:
            break
        opened |= more
    return onnx.inliner.inline_selected_functions(model, sorted(opened)) if opened else model


def _has(function: FunctionProto, is_layer: Callable[[str, str], bool], opened: set[tuple[str, str]]) -> bool:
    found: set[tuple[str, str]] = set()
    _collect(function.node, found)
    return any(is_layer(*name) or name in opened for name in found)


def _collect(nodes: Iterable[NodeProto], found: set[tuple[str, str]]) -> None:
    for node in nodes:
        found.add((node.domain, node.op_type))
        for body in bodies(node):
            _collect(body.node, found)


def _sorted(graph: Graph) -> list[int]:
    """Return node indices in topological order, keeping the graph's order where possible."""
    after: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    for at, node in enumerate(graph.nodes):
        before = {graph.producers[name] for name in reads(node) if name in graph.producers}
        missing[at] = len(before)
        for other in before:
            after.setdefault(other, []).append(at)
    ready = deque(at for at, count in missing.items() if not count)
    order: list[int] = []
    while ready:
        at = ready.popleft()
        order.append(at)
        for other in after.get(at, ()):
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    if len(order) < len(graph.nodes):
        stuck = next(at for at, count in missing.items() if count)
        raise CyclicGraphError(
            f"The graph has a cycle: node {name_of(graph.nodes[stuck])!r} ({graph.nodes[stuck].op_type}) needs its "
            "own result."
        )
    return order


def _needed(graph: Graph) -> set[int]:
    """Return the indices of nodes that the model's outputs need."""
    todo = [graph.producers[name] for name in graph.outputs if name in graph.producers]
    needed = set(todo)
    while todo:
        for name in reads(graph.nodes[todo.pop()]):
            at = graph.producers.get(name)
            if at is not None and at not in needed:
                needed.add(at)
                todo.append(at)
    return needed


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in {"", "ai.onnx"}


def _segment(graph: Graph, plain: list[int], constants: set[int], needed: set[int]) -> Segment:
    inside = set(plain)
    outside = needed - inside
    given: dict[str, None] = {}
    copied: dict[int, None] = {}
    for at in plain:
        for name in reads(graph.nodes[at]):
            made_by = graph.producers.get(name)
            if made_by in constants and made_by is not None:
                copied[made_by] = None
            elif made_by not in inside and name not in graph.tensors and name not in graph.sparse:
                given[name] = None
    outputs = [
        name
        for at in plain
        for name in graph.nodes[at].output
        if name and (name in graph.outputs or any(other in outside for other in graph.consumers.get(name, ())))
    ]
    return Segment((*copied, *plain), tuple(given), tuple(outputs))


def _domains(nodes: Iterable[NodeProto]) -> set[str]:
    found: set[tuple[str, str]] = set()
    _collect(nodes, found)
    return {domain for domain, _ in found}


def _function_domains(function: FunctionProto) -> set[str]:
    return {function.domain, *(entry.domain for entry in function.opset_import)}
