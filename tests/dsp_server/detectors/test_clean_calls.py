"""Correct calls have no findings under all checks; ``benchmarks.checks --clean`` makes as many as one wants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import arm_client as hb
from arm_client.client import Board
from benchmarks.checks import SOFTMAX_CMD, clean


def test_correct_calls_have_no_findings() -> None:
    assert clean(200) == []


def test_a_mistake_among_them_is_found() -> None:
    def forgets_to_clean(board: Board, count: int) -> dict[str, Callable[[], object]]:
        x, y = board.empty(count, np.float32, cached=True), board.empty(count, np.float32)

        def call() -> None:
            x[:] = np.arange(count)
            board.call(SOFTMAX_CMD, hb.hbDSPSoftmaxParam(data_size=x.nbytes, input=x.phy_addr), y)

        return {"softmax": call}

    (told,) = clean(3, forgets_to_clean)
    assert told.startswith("unclean-use: softmax (command 0x400)")
