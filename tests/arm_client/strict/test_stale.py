"""Reads of stale bytes by the CPU, under the check coherence: named when they are read, and only then."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

pytestmark = pytest.mark.dsp_board(check="coherence")
COUNT = 4096  # numbers: four pages


class Softmax:
    """A call of softmax whose output is cached."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.x = board.from_array(np.zeros(COUNT, np.float32))
        self.y = board.empty(COUNT, np.float32, cached=True)

    def run(self) -> None:
        self.board.call(0x400, hb.hbDSPSoftmaxParam(data_size=self.x.nbytes, input=self.x.phy_addr), self.y)

    def flush(self, flag: int, first: int = 0, count: int = COUNT) -> None:
        part = hb.hbSysMem(self.y.phy_addr + 4 * first, self.y.ctypes.data + 4 * first, 4 * count)
        assert hb.hbSysFlushMem(part, flag) == 0

    def found(self) -> list[dict[str, Any]]:
        return [one for one in self.board.status()["findings"] if one["kind"] == "stale-read"]


@pytest.fixture
def softmax(dsp_board: Board) -> Softmax:
    return Softmax(dsp_board)


def forget(board: Board) -> None:
    """The fixture fails a test for findings, which are the point here."""
    board.session.link.request("forget")


def test_a_read_is_named_with_both_lines_and_goes_on_with_the_old_bytes(softmax: Softmax) -> None:
    softmax.run()
    assert float(softmax.y[1500]) == 0
    (found,) = softmax.found()
    assert re.search(r"test_stale\.py:\d+ reads byte 6\d{3} of the cached block", found["text"])
    assert [place["what"] for place in found["places"]] == ["read", "submitted"]
    assert all("test_stale.py:" in place["site"] for place in found["places"])
    assert "HB_SYS_MEM_CACHE_INVALIDATE after the wait" in found["text"]
    forget(softmax.board)


def test_nothing_is_said_of_what_was_invalidated(softmax: Softmax) -> None:
    softmax.run()
    softmax.flush(HB_SYS_MEM_CACHE_INVALIDATE)
    assert np.allclose(softmax.y, 1 / COUNT)
    assert softmax.found() == []


def test_nothing_is_said_of_what_nobody_reads(softmax: Softmax) -> None:
    softmax.run()
    softmax.run()
    assert softmax.found() == []


def test_a_part_that_was_invalidated_is_fresh_and_the_rest_is_not(softmax: Softmax) -> None:
    softmax.run()
    softmax.flush(HB_SYS_MEM_CACHE_INVALIDATE, 0, 2048)
    assert np.allclose(softmax.y[:2048], 1 / COUNT)
    assert softmax.found() == []
    assert float(softmax.y[2048]) == 0
    assert len(softmax.found()) == 1
    forget(softmax.board)


@pytest.mark.parametrize("use", [lambda y: y.sum(), lambda y: bytes(memoryview(y).cast("B")), lambda y: y.copy()])
def test_code_in_c_reads_too(softmax: Softmax, use: Callable[[Any], object]) -> None:
    softmax.run()
    use(softmax.y)
    assert len(softmax.found()) == 1
    forget(softmax.board)


def test_a_block_that_the_cpu_fills_anew_is_no_read(softmax: Softmax) -> None:
    softmax.run()
    softmax.y[:] = 5
    softmax.flush(HB_SYS_MEM_CACHE_CLEAN)
    assert float(softmax.y[0]) == 5
    assert softmax.found() == []


def test_block_is_freed_with_stale_pages(dsp_board: Board) -> None:
    softmax = Softmax(dsp_board)
    softmax.run()
    del softmax
    again = Softmax(dsp_board)
    again.run()
    again.flush(HB_SYS_MEM_CACHE_INVALIDATE)
    assert np.allclose(again.y, 1 / COUNT)
    assert again.found() == []


@pytest.mark.dsp_board(check="coherence,advice")
class TestNeedlessFlush:
    def test_flush_that_moves_nothing_is_advised_against_once_a_line(self, softmax: Softmax) -> None:
        softmax.flush(HB_SYS_MEM_CACHE_INVALIDATE)
        for _ in range(3):
            softmax.flush(HB_SYS_MEM_CACHE_CLEAN)
        told = [one for one in softmax.board.status()["findings"] if one["kind"] == "needless-flush"]
        assert [one["text"].partition("HB_SYS_")[2][:20] for one in told] == ["MEM_CACHE_INVALIDATE"]
        assert "test_stale.py:" in told[0]["text"]
        assert "no task has had the block since the last flush" in told[0]["text"]
        assert told[0]["severity"] == "advice"

    def test_nothing_is_said_of_one_that_moves_a_byte(self, softmax: Softmax) -> None:
        softmax.run()
        softmax.flush(HB_SYS_MEM_CACHE_INVALIDATE)
        softmax.y[7] = 3
        softmax.flush(HB_SYS_MEM_CACHE_CLEAN)
        assert softmax.board.status()["findings"] == []
