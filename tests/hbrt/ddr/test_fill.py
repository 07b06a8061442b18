"""What new blocks and tiles hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arm_client as hb
from dsp_server.hardware.tile_manager import TileManager
from hbrt import settings
from hbrt.ddr.fill import new_memory


def test_zeros_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HBRT_FILL", raising=False)
    assert new_memory() is None


@pytest.mark.parametrize("value", ["", "random:", "random:x", "random:-1", "Zeros", "pattern:3"])
def test_anything_else_is_refused_or_the_default(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HBRT_FILL", value)
    if not value:
        assert new_memory() is None
        return
    with pytest.raises(settings.BadSettingError, match="must be zeros, pattern or random:SEED"):
        settings.check()


def test_tiles_of_tcm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_FILL", "random:7")
    first = bytes(TileManager().allocate(100))
    assert first == bytes(TileManager().allocate(100)) != bytes(100)
    monkeypatch.setenv("HBRT_FILL", "pattern")
    tiles = TileManager()
    tile = tiles.allocate(100)
    assert bytes(tile) == b"\xcd" * 100
    tile[:] = bytes(100)
    tiles.free(tile)
    assert bytes(tiles.allocate(100)) == b"\xcd" * 100


@pytest.mark.parametrize("cache", ["coherent", "strict"])
@pytest.mark.parametrize("alloc", [hb.hbSysAllocMem, hb.hbSysAllocCachedMem])
def test_blocks_of_a_board(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, cache: str, alloc: Callable[..., int]
) -> None:
    monkeypatch.setenv("HBRT_FILL", "pattern")
    monkeypatch.setenv("HBRT_CACHE", cache)
    board = request.getfixturevalue("dsp_board")
    mem = hb.hbSysMem()
    for _ in range(2):
        assert alloc(mem, 5000) == 0
        assert bytes(mem.view()) == b"\xcd" * 5000
        mem.view()[:] = bytes(5000)
        assert hb.hbSysFreeMem(mem) == 0
    assert board.status()["findings"] == []  # what a board writes behind no block is no overrun
    for cached in (False, True):  # Python's own habit: an array of the board's is zeros
        assert not board.empty(2048, np.float32, cached=cached).any()
