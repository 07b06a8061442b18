"""TCM with tiles on pages of their own: a tile keeps its address on the core but has another in this process."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Final

from dsp_server.hardware.buffers import address_of
from dsp_server.hardware.tcm import DEFAULT_ALIGN, TCM_BASES, Bank, Tile
from dsp_server.hardware.tile_manager import TileManager

_PAGE: Final = mmap.PAGESIZE


class PagedBank(Bank):
    """A bank with one page per tile of default alignment that fits in it; smaller tiles share pages."""

    def __init__(self, size_bytes: int, on_tile: Callable[[Tile], None]) -> None:
        super().__init__(size_bytes)
        self._on_tile = on_tile
        pages = size_bytes // DEFAULT_ALIGN + size_bytes // _PAGE + 1
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._arena = memoryview(mmap.mmap(-1, pages * _PAGE, flags=flags))
        self._arena_address = address_of(self._arena)
        self._places: dict[int, range] = {}  # offset of a live tile -> its pages, in page order
        self._model: dict[int, int] = {}  # page -> its addresses minus the offsets in the bank

    def place(self, tile: Tile) -> memoryview:
        """Return the first free pages that can hold a tile, with the alignment of its address on the core."""
        self._on_tile(tile)
        inset = tile.offset_bytes % DEFAULT_ALIGN
        count, first = -(-(inset + tile.size_bytes) // _PAGE), 0
        for pages in self._places.values():
            if first + count <= pages.start:
                break
            first = pages.stop
        if (first + count) * _PAGE > self._arena.nbytes:
            return super().place(tile)
        self._places[tile.offset_bytes] = pages = range(first, first + count)
        self._places = dict(sorted(self._places.items(), key=lambda one: one[1].start))
        start = first * _PAGE + inset
        self._model.update(dict.fromkeys(pages, self._arena_address + start - tile.offset_bytes))
        return self._arena[start : start + tile.size_bytes]

    def remove(self, offset_bytes: int) -> Tile:
        """Do what ``Bank.remove`` does; also free the pages."""
        self._places.pop(offset_bytes, None)
        return super().remove(offset_bytes)

    def is_paged(self, address: int) -> bool:
        """Whether an address's page holds, or has held, a tile."""
        return (address - self._arena_address) // _PAGE in self._model

    def offset_of(self, address: int) -> int | None:
        """Do what ``Bank.offset_of`` does, for the tile that is or was on the page."""
        page = (address - self._arena_address) // _PAGE
        return address - self._model[page] if page in self._model else super().offset_of(address)


class PagedTileManager(TileManager):
    """A core's TCM, for an op that is being watched.

    Args:
        pool_bytes: See TileManager.
        before_free: Called with each tile that the op frees.
        on_tile: Called with each tile that the op allocates.
    """

    def __init__(
        self,
        pool_bytes: tuple[int, int],
        before_free: Callable[[memoryview], None],
        on_tile: Callable[[Tile], None],
    ) -> None:
        super().__init__(*pool_bytes)
        self._banks = (PagedBank(pool_bytes[0], on_tile), PagedBank(pool_bytes[1], on_tile))
        self._before_free = before_free

    def tiles_in(self, bank: int) -> list[tuple[Tile, memoryview]]:
        """Return a bank's live tiles and their bytes."""
        return list(self._banks[bank].live.values())

    def core_address(self, address: int) -> int | None:
        """Return the core's address of a byte of TCM; None if an address of this process is not in TCM."""
        for base, bank in zip(TCM_BASES, self._banks, strict=True):
            offset = bank.offset_of(address)
            if offset is not None:
                return base + offset
        return None

    def is_paged(self, address: int) -> bool:
        """Whether a byte is on pages that a tile does not share."""
        return any(isinstance(bank, PagedBank) and bank.is_paged(address) for bank in self._banks)

    def _remove(self, bank: int, offset_bytes: int) -> None:
        self._before_free(self._banks[bank].live[offset_bytes][1])
        super()._remove(bank, offset_bytes)
