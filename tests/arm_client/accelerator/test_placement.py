"""Where a piece of a model runs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from arm_client.accelerator.placement import MIN_SEGMENT_BYTES, runs_on_core

LARGE = MIN_SEGMENT_BYTES // 4


def piece(kind: int, constants: int = 1, *, as_node: bool = False) -> ModelProto:
    """Adds constants of four bytes each to an input, without saying what comes of it, as a segment does."""
    weights = numpy_helper.from_array(np.zeros(constants, np.float32), "w")
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if as_node:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=weights))
    x = helper.make_tensor_value_info("x", kind, [1])
    graph = helper.make_graph(nodes, "g", [x], [], [] if as_node else [weights])
    graph.output.add().name = "y"
    return helper.make_model(graph)


@pytest.mark.parametrize(
    ("proto", "whole", "segment"),
    [
        (piece(TensorProto.FLOAT), True, False),
        (piece(TensorProto.FLOAT, LARGE), True, True),
        (piece(TensorProto.FLOAT, LARGE, as_node=True), True, True),
        (piece(TensorProto.UINT4, LARGE), False, False),
        (piece(TensorProto.STRING, LARGE), False, False),
    ],
    ids=["small", "weights", "weights in a node", "four bits", "strings"],
)
def test_where_a_piece_of_a_model_runs(proto: ModelProto, *, whole: bool, segment: bool) -> None:
    assert runs_on_core(proto, is_segment=False) is whole
    assert runs_on_core(proto, is_segment=True) is segment
