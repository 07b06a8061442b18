"""Tiles on their own pages are the tiles of a core's TCM: the same places, limits and errors."""

from __future__ import annotations

import mmap
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dsp_server.detectors.tiles import PagedTileManager
from dsp_server.hardware.buffers import address_of
from dsp_server.hardware.tcm import TCM_BASES, BadTile
from dsp_server.hardware.tile_manager import TileManager

POOLS = (16 * 1024, 8 * 1024)


def make(freed: list[memoryview] | None = None, pools: tuple[int, int] = POOLS) -> PagedTileManager:
    told: list[memoryview] = [] if freed is None else freed
    return PagedTileManager(pools, told.append, lambda _: None)


def act(tm: TileManager, live: list[Any], step: tuple[int, int, int]) -> str:
    """Allocate, or free one: what comes of it, in words."""
    size_bytes, color, align = step
    try:
        if size_bytes < 0 and live:
            tm.free(live.pop(-size_bytes % len(live)))
        else:
            live.append(tm.allocate(abs(size_bytes) + 1, color, align))
    except Exception as error:  # noqa: BLE001 - both say the same
        return str(error)
    return ""


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-5, 9000), st.sampled_from((0, 1, 255)), st.sampled_from((1, 16, 64, 256)))))
def test_they_have_the_places_that_plain_ones_have(steps: list[tuple[int, int, int]]) -> None:
    plain, paged = TileManager(*POOLS), make()
    tiles: tuple[list[Any], list[Any]] = ([], [])
    for step in steps:
        assert act(plain, tiles[0], step) == act(paged, tiles[1], step)
        places = [[tile._replace(where="") for tile in tm.live()] for tm in (plain, paged)]
        assert places[0] == places[1]
    pages: set[int] = set()
    for number, view in enumerate(tiles[1]):
        address = address_of(view)
        tile = paged.tile_at(address)
        assert tile is not None
        assert (tile.size_bytes, paged.bank_at(address)) == (view.nbytes, tile.bank)
        assert paged.core_address(address) == tile.tcm_addr
        assert address % min(tile.align, 64) == 0
        if paged.is_paged(address):
            own = set(range(address // mmap.PAGESIZE, (address + view.nbytes - 1) // mmap.PAGESIZE + 1))
            assert not own & pages
            pages |= own
        view[:] = bytes([number % 256]) * view.nbytes
    assert all(set(view) == {number % 256} for number, view in enumerate(tiles[1]))


def test_tiles_of_few_bytes_find_room_beside_the_pages() -> None:
    tm = make(pools=(200, 0))
    tiles = [tm.allocate(1, 0, 1) for _ in range(200)]
    assert [tm.core_address(address_of(tile)) for tile in tiles] == list(range(TCM_BASES[0], TCM_BASES[0] + 200))
    assert tm.is_paged(address_of(tiles[0]))
    assert not tm.is_paged(address_of(tiles[-1]))


def test_a_free_is_told_before_it_and_refused_as_ever() -> None:
    freed: list[memoryview] = []
    tm = make(freed)
    tile = tm.allocate(100)
    address = address_of(tile)
    with pytest.raises(BadTile, match="are part of a buffer"):
        tm.free(tile[:50])
    assert freed == []
    tm.free(tile)
    assert len(freed) == 1
    assert tm.tile_at(address) is None
    assert tm.core_address(address + (1 << 40)) is None
