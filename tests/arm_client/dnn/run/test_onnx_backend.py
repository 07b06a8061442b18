"""Cases of the ONNX project's backend suite through hbDNN and RKNN; benchmarks/onnx_backend.py runs all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from arm_client.client import Board
from benchmarks import onnx_backend
from benchmarks._onnx_cases import Case, cases, node_cases, on_board

FAMILIES = ("add", "conv", "gather", "if_", "loop", "lstm", "gemm", "nonzero", "reshape", "softmax", "topk", "where")


HBDNN, RKNN = onnx_backend.APIS["hbdnn"], onnx_backend.APIS["rknn"]


def behind(found: Sequence[Case], api: onnx_backend.Api = HBDNN) -> tuple[list[str], onnx_backend.Tally]:
    """Cases that bare onnxruntime passes and an API does not; and the counts."""
    tally = onnx_backend.Tally()
    for case in found:
        onnx_backend.judge(case, tally, api)
    return [line for line in tally.differs if f"{api.name} fails" in line], tally


@pytest.mark.long
@pytest.mark.dsp_board(profile="rk3588")
def test_a_slice_of_the_node_cases_by_rknn(dsp_board: Board) -> None:
    missing, tally = behind(list(node_cases(FAMILIES)), RKNN)
    assert missing == []
    assert tally.bare > 40
    assert tally.board >= tally.bare


def test_a_slice_of_the_node_cases(dsp_board: Board) -> None:
    missing, tally = behind(list(node_cases(FAMILIES)))
    assert missing == []
    assert tally.bare > 40
    assert tally.board >= tally.bare


@pytest.mark.long
@pytest.mark.parametrize("kind", ["simple", "pytorch-operator"])
def test_the_small_kinds_whole(dsp_board: Board, kind: str) -> None:
    missing, tally = behind(list(cases([kind])))
    assert missing == []
    assert tally.bare > 10


def test_a_net_gives_onnxruntimes_numbers_with_random_weights_and_input(dsp_board: Board) -> None:
    net = next(case for case in cases(["light"]) if case.name == "test_shufflenet")
    net.check(on_board(net.model))
    onnx_backend.compare_on_random(net, HBDNN)
