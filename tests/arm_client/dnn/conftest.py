"""A board, and models on it that are given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from arm_client.client import Board
from tests.arm_client.dnn.nets import Net


@pytest.fixture(autouse=True, scope="session")
def _no_private_board_is_left() -> Iterator[None]:
    """A model that is loaded with no board starts one, which lives as long as its process."""
    yield
    from arm_client.session.process import process

    process.default = None
    while process.sessions:
        process.sessions.popitem()[1].close()


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
