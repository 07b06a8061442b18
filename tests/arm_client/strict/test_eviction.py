"""A strict cache that writes lines back by itself: repeatably, some of the dirty ones, and no finding is lost by it."""

from __future__ import annotations

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from arm_client.strict.eviction import CHANCE
from hbrt.mailbox.dirty_ranges import LINE_BYTES

COUNT = 64 * LINE_BYTES // 4  # numbers: 64 lines


def seen_by_the_dsp(board: Board) -> list[float]:
    """Of each line that the CPU filled and did not clean, 1 when softmax saw it, and 0 when it saw what was before."""
    x = board.empty(COUNT, np.float32, cached=True)
    y = board.empty(COUNT, np.float32)
    x[:] = 100
    board.call(0x400, hb.hbDSPSoftmaxParam(data_size=x.nbytes, input=x.phy_addr), y)
    return [float(one) for one in y[:: LINE_BYTES // 4] > 0]


def findings(board: Board) -> list[str]:
    return [one["kind"] for one in board.status()["findings"]]


@pytest.fixture
def evicting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_CACHE", "evicting:7")


@pytest.mark.usefixtures("evicting")
class TestEviction:
    def test_about_half_of_the_dirty_lines_reach_memory_the_same_in_each_run(self, dsp_board_factory: object) -> None:
        seen = []
        for _ in range(2):
            with dsp_board_factory(fresh=True) as board:  # type: ignore[operator]
                seen.append(seen_by_the_dsp(board))
                assert findings(board) == ["missing-clean"]
        assert seen[0] == seen[1]
        assert CHANCE / 2 < np.mean(seen[0]) < (1 + CHANCE) / 2

    def test_clean_program_has_the_results_that_it_has_without(self, dsp_board: Board) -> None:
        x = dsp_board.from_array(np.arange(COUNT, dtype=np.float32), cached=True)
        buffer = dsp_board.alloc(x.nbytes, cached=True)
        for _ in range(5):
            dsp_board.call(0x400, hb.hbDSPSoftmaxParam(data_size=x.nbytes, input=x.phy_addr), buffer)
            buffer.invalidate()
            assert np.isclose(buffer.array(np.float32, COUNT).sum(), 1)
        assert findings(dsp_board) == []
