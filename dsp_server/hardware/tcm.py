"""One bank of TCM: first-fit allocation, its live buffers, and its errors.

Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.3, for two banks of 128 KiB, about 103 KiB of each usable;
DSP development guide (J5 OE), 10.2.3.3.3, for DRAM0 and DRAM1,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
Emulator: the banks' addresses, the default alignment of 64 bytes and first fit are its choice.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import index
from typing import Final, NamedTuple

from dsp_server.hardware.buffers import address_of
from hbrt.ddr.fill import new_memory
from hbrt.ddr.layout import TCM_UNIT_BYTES
from hbrt.findings.text import counted
from hbrt.profiles.profile import active

BANK_RAW_BYTES: Final = active().dsp_whole("tcm.bank_bytes")
BANK_USABLE_BYTES: Final = min(active().dsp_whole("tcm.usable_bytes"), BANK_RAW_BYTES)
TCM_BASES: Final = (0x3FFC_0000, 0x3FFE_0000)
"""The addresses of DRAM0 and DRAM1 in the core's address space; alignment is relative to these."""
DEFAULT_ALIGN: Final = 64


class Tile(NamedTuple):
    """A buffer in TCM: bank, offset, size, alignment, and the line of code that allocated it."""

    bank: int
    offset_bytes: int
    size_bytes: int
    align: int
    where: str

    @property
    def tcm_addr(self) -> int:
        """Its address on the core."""
        return TCM_BASES[self.bank] + self.offset_bytes

    def __str__(self) -> str:
        return f"{counted(self.size_bytes, 'byte')} at 0x{self.tcm_addr:x} in bank {self.bank} from {self.where}"


def bits_in_use(tiles: Iterable[Tile], bank: int) -> int:
    """Return which units of a bank, TCM_UNIT_BYTES each, contain bytes of these buffers: bit 0 is the first unit."""
    found = 0
    for tile in tiles:
        if tile.bank == bank:
            first, last = (at // TCM_UNIT_BYTES for at in (tile.offset_bytes, tile.offset_bytes + tile.size_bytes - 1))
            found |= (1 << last + 1) - (1 << first)
    return found


def as_text(bits: int) -> str:
    """Draw a bank's usable units: * for one in use, . for a free one."""
    return "".join("*" if bits >> unit & 1 else "." for unit in range(-(-BANK_USABLE_BYTES // TCM_UNIT_BYTES)))


class TcmError(Exception):
    """Base class of the tile manager's refusals."""


class BadTile(TcmError, ValueError):
    """A size, color or alignment that buffers cannot have, or a buffer that the tile manager does not own."""


class OutOfTcm(TcmError):
    """The bank has no room. Has `asked_bytes`, `bank` (None: any), `free_bytes`, `largest_free_bytes`."""

    def __init__(self, asked_bytes: int, bank: int | None, free_bytes: int, largest_free_bytes: int) -> None:
        self.asked_bytes, self.bank = asked_bytes, bank
        self.free_bytes, self.largest_free_bytes = free_bytes, largest_free_bytes
        place = "either TCM bank" if bank is None else f"TCM bank {bank}"
        super().__init__(
            f"{asked_bytes} bytes do not fit in {place}: {free_bytes} are free, {largest_free_bytes} in one "
            "piece. Use smaller tiles, or free a buffer first."
        )


class Bank:
    """One bank's bytes, and its live buffers by offset.

    Args:
        size_bytes: Size of the bank.
        memory: The bank's bytes, of that size; None allocates new ones, starting on a page.
    """

    def __init__(self, size_bytes: int, memory: memoryview | None = None) -> None:
        self._new_memory = new_memory()
        self.memory = memoryview(mmap.mmap(-1, size_bytes or 1))[:size_bytes] if memory is None else memory
        self.address = address_of(self.memory)
        self.live: dict[int, tuple[Tile, memoryview]] = {}  # sorted by offset
        self.used_bytes = 0

    @property
    def is_plain(self) -> bool:
        """Whether a new buffer contains what the previous user left there."""
        return self._new_memory is None

    def gaps(self, align: int) -> Iterator[tuple[int, int]]:
        """Yield free (offset, size) pairs with aligned offsets, lowest first."""
        start = 0
        for tile, _ in self.live.values():
            if start < tile.offset_bytes:
                yield start, tile.offset_bytes - start
            start = -(-(tile.offset_bytes + tile.size_bytes) // align) * align
        if start < self.memory.nbytes:
            yield start, self.memory.nbytes - start

    def largest_free_bytes(self, align: int = DEFAULT_ALIGN) -> int:
        """Return the size of the largest buffer with that alignment that would fit."""
        return max((size for _, size in self.gaps(align)), default=0)

    def place(self, tile: Tile) -> memoryview:
        """Return the bytes of a tile."""
        return self.memory[tile.offset_bytes : tile.offset_bytes + tile.size_bytes]

    def offset_of(self, address: int) -> int | None:
        """Return the offset in the bank of an address of this process; None if it is not in the bank."""
        offset_bytes = address - self.address
        return offset_bytes if 0 <= offset_bytes < self.memory.nbytes else None

    def add(self, tile: Tile) -> memoryview:
        """Record a buffer in a gap and return its bytes."""
        view = self.place(tile)
        is_last = not self.live or next(reversed(self.live)) < tile.offset_bytes
        self.live[tile.offset_bytes] = (tile, view)
        if not is_last:
            self.live = dict(sorted(self.live.items()))
        self.used_bytes += tile.size_bytes
        if self._new_memory is not None:
            view[:] = self._new_memory(tile.size_bytes)
        return view

    def remove(self, offset_bytes: int) -> Tile:
        """Forget a buffer and release its view, so that using it after freeing it raises."""
        tile, view = self.live.pop(offset_bytes)
        self.used_bytes -= tile.size_bytes
        with suppress(BufferError):  # a numpy array over it is still alive, and keeps reading these bytes
            view.release()
        return tile


def checked(size_bytes: int, align: int) -> tuple[int, int]:
    """Convert size and alignment to int. Raises BadTile if no buffer can have them."""
    try:
        size_bytes, align = index(size_bytes), index(align)
    except TypeError:
        raise BadTile(f"Size {size_bytes!r} and alignment {align!r} must be integers, in bytes.") from None
    if size_bytes <= 0:
        raise BadTile(f"Cannot allocate a TCM buffer of {size_bytes} bytes: the minimum is 1.")
    if align <= 0 or align & (align - 1):
        raise BadTile(f"Alignment {align} must be a power of two, such as {DEFAULT_ALIGN}.")
    return size_bytes, align
