"""TCM, the core's local memory: two banks, each with its own allocator, and the vendor's calls on top.

`xvAllocateBuffer` and its relatives follow C's conventions: they return an error value and leave a message for
`xvGetErrorInfo`. `TileManager.allocate`, `free` and `tile` raise exceptions instead. Both act on the same buffers.
A buffer is a writable memoryview of its bank, so an op cannot write past it; after `free` it is released, and any
later access raises.

Source: DSP development guide (J5 OE), 10.2.3.3.5, for the calls' signatures and the colors' names,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
Emulator: error values and the colors' numbers are its choice. A new buffer contains what the previous user left there,
as on the chip.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal

from dsp_server.hardware.buffers import address_of, bytes_view, caller_line
from dsp_server.hardware.tcm import (
    BANK_RAW_BYTES,
    BANK_USABLE_BYTES,
    DEFAULT_ALIGN,
    TCM_BASES,
    BadTile,
    Bank,
    OutOfTcm,
    TcmError,
    Tile,
    checked,
)

if TYPE_CHECKING:
    from dsp_server.hardware.buffers import BufferLike
    from dsp_server.hardware.engine_trace import EngineTrace


XV_MEM_BANK_COLOR_0: Final = 0
XV_MEM_BANK_COLOR_1: Final = 1
XV_MEM_BANK_COLOR_ANY: Final = 0xFF

XVTM_SUCCESS: Final = 0
XVTM_FREE_ERROR: Final = -1

FREED_HISTORY: Final = 32


class XvtmError(Enum):
    """The error value of `xvAllocateBuffer`: a single object that is false, so `if not buffer:` reads like C."""

    ERROR = 0

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "XVTM_ERROR"


XVTM_ERROR: Final = XvtmError.ERROR


class TileManager:
    """A core's two TCM banks.

    Args:
        pool0_bytes: Usable bytes of bank 0, at most 128 KiB.
        pool1_bytes: Usable bytes of bank 1, at most 128 KiB.
        memories: The bytes of each bank, of these sizes; None allocates new ones.

    Raises:
        BadTile: a pool is negative, or larger than its bank.
    """

    def __init__(
        self,
        pool0_bytes: int = BANK_USABLE_BYTES,
        pool1_bytes: int = BANK_USABLE_BYTES,
        memories: tuple[memoryview | None, memoryview | None] = (None, None),
    ) -> None:
        for bank, size_bytes in enumerate((pool0_bytes, pool1_bytes)):
            if not 0 <= size_bytes <= BANK_RAW_BYTES:
                raise BadTile(
                    f"A pool of {size_bytes} bytes does not fit in TCM bank {bank}: use 0 to {BANK_RAW_BYTES} bytes."
                )
        self._banks: tuple[Bank, Bank] = (Bank(pool0_bytes, memories[0]), Bank(pool1_bytes, memories[1]))
        self._freed: deque[Tile] = deque(maxlen=FREED_HISTORY)
        self.live_count = 0  # number of live buffers; the core reads it after every op
        self.peak_bytes: int | None = None  # most bytes in use since it was set to a number; None: not measured
        self.last_error = ""
        self.trace: EngineTrace | None = None
        self.bank_conflicts = [0, 0]
        """Per bank: transfers found in flight while the op computed in it (see `Idma.note_compute`)."""

    def allocate(self, size_bytes: int, color: int = XV_MEM_BANK_COLOR_ANY, align: int = DEFAULT_ALIGN) -> memoryview:
        """Return a writable view of `size_bytes` in the bank selected by `color`, at the first place that fits.

        Args:
            size_bytes: Size of the view, at least 1.
            color: XV_MEM_BANK_COLOR_0, _1, or _ANY: bank 0 if it has room, else bank 1.
            align: A power of two; the address on the core is a multiple of it.

        Raises:
            OutOfTcm: no free range is large enough; says how much was requested, in which bank, and what is free.
            BadTile: an argument is invalid.
        """
        size_bytes, align = checked(size_bytes, align)
        for bank in self._banks_of(color):
            for offset_bytes, free_bytes in self._banks[bank].gaps(align):
                if size_bytes <= free_bytes:
                    tile = Tile(bank, offset_bytes, size_bytes, align, caller_line())
                    self.live_count += 1
                    view = self._banks[bank].add(tile)
                    if self.peak_bytes is not None:
                        self.peak_bytes = max(self.peak_bytes, sum(self.used_bytes))
                    if self.trace is not None:
                        self.trace.note_use(self.used_bytes)
                    return view
        asked_of = [self._banks[bank] for bank in self._banks_of(color)]
        raise OutOfTcm(
            size_bytes,
            color if len(asked_of) == 1 else None,
            sum(bank.memory.nbytes - bank.used_bytes for bank in asked_of),
            max(bank.largest_free_bytes(align) for bank in asked_of),
        )

    def free(self, buffer: BufferLike) -> None:
        """Free a whole buffer, given the view or an array over all of it.

        Raises:
            BadTile: already freed, part of a buffer, or not in TCM; says which.
        """
        try:
            view = bytes_view(buffer)
        except ValueError:
            raise BadTile("This TCM buffer was already freed: free each buffer only once.") from None
        except TypeError as error:
            raise BadTile(f"{type(buffer).__name__} is not a TCM buffer: {error}.") from None
        address, size_bytes = address_of(view), view.nbytes
        del view
        self.free_at(address, size_bytes)

    def free_at(self, address: int, size_bytes: int | None = None) -> None:
        """Free the buffer that starts at an address of this process.

        Args:
            address: Address of its first byte.
            size_bytes: Its size, which must be the whole buffer's; None if the caller has only the address.

        Raises:
            BadTile: see ``free``.
        """
        bank, offset_bytes = self._place_of(address, size_bytes)
        live = self._banks[bank].live.get(offset_bytes)
        if live is None or size_bytes not in {None, live[0].size_bytes}:
            raise BadTile(self._why_not_live(bank, offset_bytes, size_bytes))
        self._remove(bank, offset_bytes)

    @contextmanager
    def tile(
        self, size_bytes: int, color: int = XV_MEM_BANK_COLOR_ANY, align: int = DEFAULT_ALIGN
    ) -> Iterator[memoryview]:
        """Do what `allocate` does, and free the buffer at the end of the `with` block."""
        view = self.allocate(size_bytes, color, align)
        try:
            yield view
        finally:
            self.free(view)

    def live(self) -> list[Tile]:
        """All live buffers, sorted by bank and offset."""
        return [tile for bank in self._banks for tile, _ in bank.live.values()]

    def reset(self) -> list[Tile]:
        """Free everything and return what was still live: after an op, its leaks. Peaks are kept."""
        leaked = self.live()
        for tile in leaked:
            self._freed.append(self._banks[tile.bank].remove(tile.offset_bytes))
        self.live_count = 0
        if self.trace is not None:
            self.trace.note_use(self.used_bytes)
        return leaked

    def resume(self, live: Iterable[Tile], freed: Iterable[Tile]) -> None:
        """Take over from C: its live buffers, which this manager does not have yet, and those that were freed there."""
        self._freed.extend(freed)
        for tile in live:
            self._banks[tile.bank].add(tile)
            self.live_count += 1

    @property
    def is_plain(self) -> bool:
        """Whether a new buffer contains what the previous user left there."""
        return all(bank.is_plain for bank in self._banks)

    @property
    def bank_places(self) -> list[tuple[int, int]]:
        """Return address in this process, and usable bytes, of each bank."""
        return [(bank.address, bank.memory.nbytes) for bank in self._banks]

    def largest_free_bytes(self, bank: int, align: int = DEFAULT_ALIGN) -> int:
        """Return the size of the largest buffer with that alignment that the bank could provide now."""
        return self._banks[bank].largest_free_bytes(align)

    @property
    def pool_bytes(self) -> tuple[int, int]:
        """Usable bytes per bank."""
        return self._banks[0].memory.nbytes, self._banks[1].memory.nbytes

    @property
    def used_bytes(self) -> tuple[int, int]:
        """Bytes of live buffers per bank."""
        return self._banks[0].used_bytes, self._banks[1].used_bytes

    def tile_at(self, address: int) -> Tile | None:
        """Return the live buffer that contains an address of this process."""
        for bank in self._banks:
            offset = bank.offset_of(address)
            if offset is not None:
                live = (tile for tile, _ in bank.live.values())
                return next((tile for tile in live if 0 <= offset - tile.offset_bytes < tile.size_bytes), None)
        return None

    def bytes_from(self, address: int) -> memoryview | None:
        """Return a live buffer's bytes from an address of this process to its end; None if there is none."""
        tile = self.tile_at(address)
        if tile is None:
            return None
        _, view = self._banks[tile.bank].live[tile.offset_bytes]
        return view[address - address_of(view) :]

    def bank_at(self, address: int) -> int | None:
        """Return the bank that contains an address of this process (`address_of` a view); None for DDR."""
        for bank, pool in enumerate(self._banks):
            if pool.offset_of(address) is not None:
                return bank
        return None

    def _remove(self, bank: int, offset_bytes: int) -> None:
        self._freed.append(self._banks[bank].remove(offset_bytes))
        self.live_count -= 1
        if self.trace is not None:
            self.trace.note_use(self.used_bytes)

    def _banks_of(self, color: int) -> tuple[int, ...]:
        if color == XV_MEM_BANK_COLOR_ANY:
            return 0, 1
        if color in (XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1):
            return (color,)
        raise BadTile(f"{color!r} is not a bank color: use XV_MEM_BANK_COLOR_0, _1 or _ANY.")

    def _place_of(self, address: int, size_bytes: int | None) -> tuple[int, int]:
        for bank, pool in enumerate(self._banks):
            if (offset_bytes := pool.offset_of(address)) is not None:
                return bank, offset_bytes
        if size_bytes is None:
            raise BadTile(
                f"{f'{address:#x}' if address else 'NULL'} is not in TCM: free what xvAllocateBuffer returned."
            )
        raise BadTile(f"Cannot free a buffer of {size_bytes} bytes that is not in TCM.")

    def _why_not_live(self, bank: int, offset_bytes: int, size_bytes: int | None) -> str:
        what = f"{_count(size_bytes)} at 0x{TCM_BASES[bank] + offset_bytes:x} in TCM bank {bank}"
        for tile in self.live():
            if tile.bank == bank and 0 <= offset_bytes - tile.offset_bytes < tile.size_bytes:
                return f"{what} are part of a buffer ({tile}): free the whole buffer."
        for tile in reversed(self._freed):
            if tile.bank == bank and 0 <= offset_bytes - tile.offset_bytes < tile.size_bytes:
                return f"{what} were already freed (they were {tile}): free each buffer only once."
        return f"{what} were never allocated: free what xvAllocateBuffer returned."


def _count(size_bytes: int | None) -> str:
    return "some bytes" if size_bytes is None else f"{size_bytes} bytes"


def xvAllocateBuffer(tm: TileManager, size: int, color: int, align: int) -> memoryview | XvtmError:
    """Return a writable view of `size` bytes of TCM, or XVTM_ERROR; then `xvGetErrorInfo` says why."""
    try:
        return tm.allocate(size, color, align)
    except TcmError as error:
        tm.last_error = str(error)
        return XVTM_ERROR


def xvFreeBuffer(tm: TileManager, buffer: BufferLike) -> int:
    """Free a buffer: return 0, or XVTM_FREE_ERROR; then `xvGetErrorInfo` says why."""
    try:
        tm.free(buffer)
    except TcmError as error:
        tm.last_error = str(error)
        return XVTM_FREE_ERROR
    return XVTM_SUCCESS


def xvGetErrorInfo(tm: TileManager) -> str:
    """Return the message of the last call that failed; empty if none has."""
    return tm.last_error
