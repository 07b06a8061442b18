from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import NodeProto, TensorProto, helper, numpy_helper

from hbrt.models.run.partition import (
    CyclicGraphError,
    LayerStep,
    Segment,
    inlined,
    op_types,
    partition,
    segment_model,
)
from hbrt.models.spec.graph import Graph, reads

F32 = TensorProto.FLOAT


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs, outputs, **attributes)


def graph_of(
    nodes: Sequence[NodeProto],
    outputs: Sequence[str],
    initializers: Sequence[TensorProto] = (),
    inputs: Sequence[str] = ("x",),
) -> Graph:
    given, wanted = (
        [helper.make_tensor_value_info(name, F32, [2, 3]) for name in names] for names in (inputs, outputs)
    )
    graph = helper.make_graph(list(nodes), "g", given, wanted, list(initializers))
    return Graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))


def layers_of(graph: Graph, op_type: str = "Softmax") -> set[int]:
    return {at for at, one in enumerate(graph.nodes) if one.op_type == op_type}


def shown(graph: Graph, op_type: str = "Softmax") -> list[str]:
    """Steps as text: the op types of a segment, the output of a layer in brackets."""
    return [
        f"[{graph.nodes[step.node].output[0]}]"
        if isinstance(step, LayerStep)
        else " ".join(graph.nodes[at].op_type for at in step.nodes)
        for step in partition(graph, layers_of(graph, op_type))
    ]


def test_without_layers_all_nodes_are_one_segment() -> None:
    graph = graph_of([node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])], ["y"])
    assert partition(graph, ()) == [Segment((0, 1), ("x",), ("y",))]


def test_a_layer_cuts_once_and_what_does_not_wait_for_it_stays_in_the_first_segment() -> None:
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Softmax", ["a"], ["s"]),
        node("Neg", ["s"], ["n"]),
        node("Abs", ["x"], ["b"]),  # after the layer in the file, but not behind it
        node("Add", ["n", "b"], ["y"]),
    ]
    graph = graph_of(nodes, ["y"])
    assert shown(graph) == ["Relu Abs", "[s]", "Neg Add"]
    first, _, last = partition(graph, {1})
    assert first == Segment((0, 3), ("x",), ("a", "b"))
    assert last == Segment((2, 4), ("s", "b"), ("y",))


def test_layers_side_by_side_share_their_segments() -> None:
    nodes = [node("Relu", ["x"], ["a"])]
    nodes += [node("Softmax", ["a"], [f"s{at}"], axis=at) for at in range(2)]
    nodes += [node("Add", ["s0", "s1"], ["y"])]
    assert shown(graph_of(nodes, ["y"])) == ["Relu", "[s0]", "[s1]", "Add"]


def test_layers_in_a_row_and_at_both_ends_need_no_segments() -> None:
    nodes = [node("Softmax", ["x"], ["a"]), node("Softmax", ["a"], ["y"])]
    assert shown(graph_of(nodes, ["y"])) == ["[a]", "[y]"]


def test_what_no_output_needs_is_left_out() -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Softmax", ["x"], ["dead"]), node("Neg", ["dead"], ["deader"])]
    graph = graph_of(nodes, ["y"])
    assert partition(graph, {1}) == [Segment((0,), ("x",), ("y",))]


def test_constants_go_with_whoever_reads_them() -> None:
    value = numpy_helper.from_array(np.ones(3, np.float32))
    nodes = [
        node("Constant", [], ["k"], value=value),
        node("Softmax", ["x"], ["s"]),
        node("Add", ["s", "k"], ["t"]),
        node("Softmax", ["t"], ["u"]),
        node("Mul", ["u", "w"], ["v"]),
        node("Mul", ["v", "k"], ["y"]),
    ]
    graph = graph_of(nodes, ["y"], [numpy_helper.from_array(np.ones(3, np.float32), "w")])
    first, second = (step for step in partition(graph, {1, 3}) if isinstance(step, Segment))
    assert (first.nodes, first.inputs) == ((0, 2), ("s",))
    assert (second.nodes, second.inputs) == ((0, 4, 5), ("u",))
    types = {"u": helper.make_tensor_value_info("u", F32, [2, 3])}
    model = segment_model(graph, second, types)
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]
    assert [value.name for value in model.graph.input] == ["u"]


def test_what_a_body_takes_from_outside_is_an_input_of_its_segment() -> None:
    def branch(name: str, outside: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(name, F32, None)
        return helper.make_graph([node("Neg", [outside], [name])], name, [], [output])

    nodes = [
        node("Softmax", ["x"], ["s"]),
        node("Relu", ["x"], ["a"]),
        node("If", ["go"], ["y"], then_branch=branch("t", "s"), else_branch=branch("e", "a")),
    ]
    graph = graph_of(nodes, ["y"], inputs=["x", "go"])
    assert set(reads(nodes[2])) == {"go", "s", "a"}
    first, layer, last = partition(graph, {0})
    assert (first, layer) == (Segment((1,), ("x",), ("a",)), LayerStep(0))
    assert isinstance(last, Segment)
    assert (last.nodes, set(last.inputs), last.outputs) == ((2,), {"go", "s", "a"}, ("y",))


def test_a_cycle_is_named() -> None:
    nodes = [node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"], name="back")]
    with pytest.raises(CyclicGraphError, match=r"cycle: node 'a' \(Add\)"):
        partition(graph_of(nodes, ["b"]), ())


def test_a_function_is_written_out_when_a_layer_is_for_what_is_in_it() -> None:
    softmax = node("Softmax", ["i"], ["o"])
    inner = helper.make_function("mine", "Inner", ["i"], ["o"], [softmax], [helper.make_opsetid("", 18)])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    outer = helper.make_function(
        "mine", "Outer", ["i"], ["o"], [helper.make_node("Inner", ["i"], ["o"], domain="mine")], imports
    )
    graph = helper.make_graph(
        [helper.make_node("Outer", ["x"], ["y"], domain="mine")],
        "g",
        [helper.make_tensor_value_info("x", F32, [2])],
        [helper.make_tensor_value_info("y", F32, [2])],
    )
    model = helper.make_model(graph, functions=[inner, outer], opset_imports=imports, ir_version=10)
    assert op_types(model) == {("mine", "Outer"), ("mine", "Inner"), ("", "Softmax")}

    def opened(*types: tuple[str, str]) -> list[str]:
        return [one.op_type for one in inlined(model, lambda *name: name in types).graph.node]

    assert opened() == ["Outer"]
    assert opened(("", "Softmax")) == ["Softmax"]
    assert opened(("mine", "Inner")) == ["Inner"]
    assert opened(("mine", "Outer"), ("", "Softmax")) == ["Outer"]


@st.composite
def random_graphs(draw: st.DrawFn) -> tuple[Graph, set[int]]:
    names, nodes = ["x"], []
    for at in range(draw(st.integers(1, 12))):
        operands = [draw(st.sampled_from(names)) for _ in range(draw(st.integers(1, 2)))]
        nodes.append(node(["Neg", "Add"][len(operands) - 1], operands, [f"v{at}"]))
        names.append(f"v{at}")
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, unique=True))
    layers = draw(st.sets(st.integers(0, len(nodes) - 1)))
    order = draw(st.permutations(range(len(nodes))))  # the file need not be in order
    return graph_of([nodes[at] for at in order], outputs), {order.index(at) for at in layers}


@settings(deadline=None, max_examples=150)
@given(random_graphs())
def test_steps_run_in_order_and_make_every_output(case: tuple[Graph, set[int]]) -> None:
    graph, layers = case
    have, ran = {"x"}, set()
    steps = partition(graph, layers)
    for step in steps:
        if isinstance(step, LayerStep):
            assert step.node in layers
            assert have.issuperset(graph.nodes[step.node].input)
            have.update(graph.nodes[step.node].output)
            ran.add(step.node)
            continue
        assert layers.isdisjoint(step.nodes)
        assert have.issuperset(step.inputs)
        inside = set(step.inputs)
        for at in step.nodes:
            assert inside.issuperset(graph.nodes[at].input)
            inside.update(graph.nodes[at].output)
        have.update(step.outputs)
        ran.update(step.nodes)
    assert have.issuperset(graph.outputs)
    assert len(ran) == sum(1 if isinstance(step, LayerStep) else len(step.nodes) for step in steps)
    segments = [step for step in steps if isinstance(step, Segment)]
    assert len(segments) <= longest(graph, layers) + 1


def longest(graph: Graph, layers: set[int]) -> int:
    """The most layers on a way through the graph."""

    def depth(name: str) -> int:
        at = graph.producers.get(name)
        return 0 if at is None else max(map(depth, graph.nodes[at].input)) + (at in layers)

    return max(map(depth, graph.outputs))
