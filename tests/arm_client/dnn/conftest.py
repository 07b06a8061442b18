"""A board, and models on it that are given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from arm_client.client import Board
from tests.arm_client.dnn.nets import Net


@pytest.fixture
def load(dsp_board: Board) -> Iterator[Callable[[bytes], Net]]:
    """``load(model)``: a Net that is closed at the end; every task must have been released by then."""
    nets: list[Net] = []

    def make(data: bytes) -> Net:
        nets.append(Net(data))
        return nets[-1]

    yield make
    for net in nets:
        net.close()
    from arm_client.dnn.capi.runtime import runtime

    assert len(runtime.tasks) == 0, "tasks were left"
    assert len(runtime.models) == len(runtime.packed) == 0, "models were left"
