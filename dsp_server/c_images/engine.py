"""The iDMA engine, tiles and mappings of an op in C, as C keeps them until something happens that needs Python."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from dsp_server import runtime
from dsp_server.hardware import cycles
from dsp_server.hardware.descriptors import Descriptor, Idma
from dsp_server.hardware.tcm import Tile
from dsp_server.hardware.transfers import Shape
from hbrt.ddr.private_pages import bytes_at

if TYPE_CHECKING:
    from dsp_server.hardware.engines import Engines
    from hbrt.ddr.file import Ddr
    from hbrt.trace.ring import Ring, RingFile

_u64, _i64, _text = ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p
_COPIES, _TILES, _MAPPINGS, _FREED = 64, 64, 64, 32


def _words(kind: type[ctypes.c_uint64 | ctypes.c_int64], names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


class _Copy(ctypes.Structure):
    """``struct hbrt_dsp_copy`` of native/dsp/engine.h."""

    _fields_ = (*_words(_u64, "dst src row_bytes rows src_pitch dst_pitch end_cycle"), ("site", _text))


class _Tile(ctypes.Structure):
    """``struct hbrt_dsp_tile``."""

    _fields_ = (*_words(_u64, "bank offset size align"), ("site", _text))


class _Mapping(ctypes.Structure):
    """``struct hbrt_dsp_mapping``."""

    _fields_ = (*_words(_u64, "phy_addr size"), ("site", _text))


class _Engine(ctypes.Structure):
    """``struct hbrt_dsp_engine``."""

    _fields_ = (
        *_words(_u64, "is_on serves is_called depth issue_cycles setup_cycles row_cycles bytes_per_cycle poll_cycles"),
        ("bank_start", _u64 * 2),
        ("bank_bytes", _u64 * 2),
        *_words(_u64, "start_cycle now busy_until"),
        *_words(_i64, "first_handle last_handle polled"),
        *_words(_u64, "copy_count tile_count mapping_count freed_count"),
        ("copies", _Copy * _COPIES),
        ("tiles", _Tile * _TILES),
        ("mappings", _Mapping * _MAPPINGS),
        ("freed", _Tile * _FREED),
    )


_COSTS: Final = {
    "issue_cycles": cycles.IDMA_ISSUE_CYCLES,
    "setup_cycles": cycles.IDMA_SETUP_CYCLES,
    "row_cycles": cycles.IDMA_ROW_CYCLES,
    "bytes_per_cycle": cycles.IDMA_BYTES_PER_CYCLE,
    "poll_cycles": cycles.IDMA_POLL_CYCLES,
}


class OpEngine:
    """What C keeps for the running op in C, on top of its core's engines.

    Args:
        library: The library that images link to.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._state = _Engine.in_dll(library, "hbrt_dsp_engine")
        self._engines: Engines | None = None
        self._is_serving = False
        self._notes: RingFile | None = None  # written by C
        self._is_handed_over = False  # whether the last op was handed over
        self._freed_count = 0  # number of tiles that C had freed when Python last took over

    def open(self, engines: Engines, ddr: Ddr, core_count: int) -> None:
        """Have C serve a core's ops if its engines do what C does; otherwise Python serves each call.

        Args:
            engines: The core's engines.
            ddr: The board's DDR.
            core_count: Number of cores on the board.
        """
        tm, state = engines.tile_manager, self._state
        self._engines = engines if tm.is_plain else None
        if self._engines is None:
            self.close()
            return
        for bank, (start, size_bytes) in enumerate(tm.bank_places):
            state.bank_start[bank], state.bank_bytes[bank] = start, size_bytes
        state.depth = min(engines.idma.depth, _COPIES)
        for name, cost in _COSTS.items():
            setattr(state, name, cost)
        header = ddr.layout._replace(core_count=core_count).pack_header()
        if not self._library.hbrt_dsp_engine_open(ctypes.c_void_p(ddr.address), _u64(ddr.layout.file_bytes), header):
            self.close()
        self._freed_count = state.freed_count

    def close(self) -> None:
        """From now on have Python serve each call."""
        self._engines, self._is_serving = None, False
        self._library.hbrt_dsp_engine_open(None, _u64(0), None)

    def follow_trace(self, ring: Ring | None) -> None:
        """Have C trace what it does to a file next to a ring from now on; None stops it. Call only between ops."""
        file = None
        with suppress(OSError):  # no space: the op carries on
            file = None if ring is None else ring.beside("engine")
        self._library.hbrt_dsp_engine_note(
            None if file is None else ctypes.byref(ctypes.c_char.from_buffer(file.map, file.start)),
            ctypes.c_uint32(0 if file is None else file.records),
        )
        self._notes = file

    def give(self) -> None:
        """Before C continues, tell it the core's cycle and last handle, which Python ops may have changed.

        An engine that does more, such as one that randomizes the order of copies, has a different class.
        """
        if self._engines is not None:
            _, counter, idma = self._engines
            state = self._state
            is_noted = idma.trace is None or self._notes is not None  # C records the same as that class
            state.serves = self._is_serving = type(idma) is Idma and is_noted
            state.now, state.last_handle = counter.cycles, idma.last_handle
            self._is_handed_over = False

    def take(self) -> None:
        """After C has run, learn the last handle, which ops in C may have changed."""
        if self._engines is not None and self._is_serving and not self._is_handed_over:
            self._engines.idma.last_handle = self._state.last_handle

    def call(self) -> None:
        """Have C call Python at the running op's next call. May be called from any thread."""
        self._state.is_called = 1

    @property
    def is_on(self) -> bool:
        """Whether C has the running op."""
        return bool(self._state.is_on)

    @property
    def first_handle(self) -> int | None:
        """The last handle before the op's own; None if Python counts them."""
        return int(self._state.first_handle) if self._is_serving else None

    @property
    def polled(self) -> int:
        """Like ``Idma.polled``, for the op that C has."""
        return int(self._state.polled)

    @polled.setter
    def polled(self, handle: int) -> None:
        self._state.polled = handle

    @property
    def outstanding(self) -> int:
        """Like ``Idma.outstanding``."""
        return int(self._state.copy_count)

    def tiles(self) -> list[Tile]:
        """Live tiles of the op that C has, without their lines. May be called from any thread."""
        state = self._state
        return [Tile(one.bank, one.offset, one.size, one.align, "") for one in state.tiles[: state.tile_count]]

    def take_over(self) -> None:
        """Take over the op: its cycles, copies, tiles and mappings. Called by C, which no longer has them."""
        assert self._engines is not None  # noqa: S101 - without them, C serves no op
        state, (tile_manager, counter, idma) = self._state, self._engines
        self._is_handed_over = True
        counter.cycles += state.now - state.start_cycle
        last = state.last_handle
        handles = range(last - state.copy_count + 1, last + 1)
        copies = [_descriptor(handle, state.copies[handle % _COPIES]) for handle in handles]
        idma.resume(copies, last, state.busy_until, state.polled)
        freed = range(max(self._freed_count, state.freed_count - _FREED), state.freed_count)
        self._freed_count = state.freed_count
        live = [_tile(one) for one in state.tiles[: state.tile_count]]
        tile_manager.resume(live, [_tile(state.freed[at % _FREED]) for at in freed])
        ddr = runtime.context.ddr
        assert ddr is not None  # noqa: S101 - as above
        for one in state.mappings[: state.mapping_count]:
            offset = ddr.offset_of(one.phy_addr)
            view = ddr.bytes[offset : offset + one.size]
            runtime.context.mappings.append(runtime.Mapping(view, one.phy_addr, _site(one.site)))


def _site(site: bytes) -> str:
    return site.decode("utf-8", "replace")


def _tile(one: _Tile) -> Tile:
    return Tile(one.bank, one.offset, one.size, one.align, _site(one.site))


def _descriptor(handle: int, one: _Copy) -> Descriptor:
    shape = Shape(one.row_bytes, one.rows, one.src_pitch, one.dst_pitch) if one.rows else None
    gaps = max(one.rows, 1) - 1
    dst = bytes_at(one.dst, gaps * one.dst_pitch + one.row_bytes)
    src = bytes_at(one.src, gaps * one.src_pitch + one.row_bytes)
    return Descriptor(handle, dst, src, one.row_bytes * (gaps + 1), shape, one.end_cycle, _site(one.site))
