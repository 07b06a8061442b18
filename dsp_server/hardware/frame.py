"""Ping-pong: iDMA fills one of two TCM buffers while the op computes in the other.

Ping and pong belong in different banks, since a bank serves one access at a time; bytes move in both directions in
the order of issue, so a buffer's results have left it before its next input arrives.

Source: DSP development guide (J5 OE), 10.2.3.3.6 PINGPONG DMA, for the shape of the call and the order of its steps,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
Emulator: arrays instead of pointers, tiles as large as the given buffers. The published frame waits on handles that
were never set; this one does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from dsp_server.hardware.buffers import address_of
from dsp_server.hardware.descriptors import Idma, current
from dsp_server.hardware.tcm import DEFAULT_ALIGN
from dsp_server.hardware.tile_manager import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1, TileManager
from dsp_server.hardware.transfers import IDMA_OK, BadTransfer, check_apart, usable, writable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from dsp_server.hardware.buffers import BufferLike

    Compute = Callable[[NDArray[Any], NDArray[Any], int], object]

TILE_SIZE: Final = 50 * 1024
"""Bytes per tile for ops written like the manual's; emulator's choice: two fit the usable part of a bank."""

FLOAT32_BYTES: Final = 4


def ping_pong(
    tm: TileManager,
    src: BufferLike,
    dst: BufferLike | None,
    compute: Compute,
    *,
    in_dtype: DTypeLike,
    out_dtype: DTypeLike | None = None,
    tile_items: int | None = None,
    multiple_of: int = 1,
    in_place: bool = False,
) -> int:
    """Run `compute` over DDR tile by tile, through TCM buffers that are allocated for it and freed afterwards.

    Item i of `dst` is computed from item i of `src`; item sizes may differ. A dtype with a shape, such as
    `np.dtype((np.float32, 5))`, makes each item several numbers, and tiles of shape (n, 5).

    Args:
        tm: The core's tile manager. Ping is in bank 0, pong in bank 1.
        src: DDR: a whole number of items of `in_dtype`.
        dst: DDR: room for as many items of `out_dtype`, or None if nothing is written (a maximum, a sum).
            May start at the same place as `src` if its items are not larger.
        compute: `compute(tile_in, tile_out, first)` on arrays of n items, starting with item number `first`.
            Without `dst`, or with `in_place`, `tile_out` overlays `tile_in`. It charges its own cycles.
        in_dtype: numpy dtype of an input item.
        out_dtype: numpy dtype of an output item; None for `in_dtype`.
        tile_items: Maximum number of items per tile; None for as many as fit in the banks.
        multiple_of: The size of every tile but the last is a multiple of this many items: a row, a run of channels.
        in_place: Results replace their input in TCM, which leaves room for larger tiles.

    Returns:
        The number of tiles; 0 for an empty `src`.

    Raises:
        BadTransfer: sizes that do not match.
        OutOfTcm: a tile does not fit in the banks.
    """
    import numpy as np

    in_type = np.dtype(in_dtype)
    out_type = in_type if out_dtype is None else np.dtype(out_dtype)
    source = usable("source", src)
    if not in_type.itemsize or source.nbytes % in_type.itemsize:
        raise BadTransfer(f"The input size of {source.nbytes} bytes is not a multiple of the item size of {in_type}.")
    items = source.nbytes // in_type.itemsize
    target = None if dst is None else _part("destination", writable("destination", dst), items * out_type.itemsize)
    shares_tile = in_place or dst is None
    item_bytes = in_type.itemsize + (0 if shares_tile else out_type.itemsize)
    if shares_tile and out_type.itemsize > in_type.itemsize:
        raise BadTransfer(f"Results of type {out_type} do not fit in the place of inputs of type {in_type}.")
    if not items:
        return 0
    per_tile = min(items, _tile_items(tm, item_bytes, tile_items, multiple_of))
    with ExitStack() as stack:

        def pair(size_bytes: int) -> list[memoryview]:
            colors = (XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1)
            return [stack.enter_context(tm.tile(size_bytes, color)) for color in colors]

        ins = pair(per_tile * in_type.itemsize)
        outs = ins if shares_tile else pair(per_tile * out_type.itemsize)
        return _Frame(current(), ins, outs, in_type, out_type).run(source, target, compute)


def hb_dsp_ping_pong_frame(
    dst: BufferLike | None,
    src: BufferLike,
    src_idma: Sequence[BufferLike],
    dst_idma: Sequence[BufferLike],
    length: int,
    func: Callable[[NDArray[Any], NDArray[Any], int, Any, Any], object],
    func_out: Any,
    func_in: Any,
    with_out_idma: bool = True,  # noqa: FBT001, FBT002 - the vendor's order
) -> int:
    """Run `func` over `length` float32 in DDR through the caller's TCM buffers, with the vendor's signature.

    Args:
        dst: DDR, at least `length` float32. May be `src`; may be None without `with_out_idma`.
        src: DDR, at least `length` float32.
        src_idma: The two TCM buffers that receive input. The smallest buffer determines the tile size.
        dst_idma: The two TCM buffers that hold results: others, or those of `src_idma`.
        length: Number of float32.
        func: `func(dst_tile, src_tile, n, func_out, func_in)` over two float32 arrays of n elements.
        func_out: Passed to `func`, which may write to it: a list with one item, an array.
        func_in: Passed to `func`.
        with_out_idma: Whether to copy each tile's results to `dst`.

    Returns:
        0, or a negative iDMA code; then `idma_last_error` says why. What `func` raises is passed to the caller.
    """
    idma = current()

    def compute(tile_in: NDArray[Any], tile_out: NDArray[Any], _first: int) -> None:
        func(tile_out, tile_in, len(tile_in), func_out, func_in)

    def run() -> int:
        import numpy as np

        if length < 0 or len(src_idma) != 2 or len(dst_idma) != 2:
            raise BadTransfer(
                f"A frame needs a length of 0 or more and two buffers each way: got {length}, "
                f"{len(src_idma)} and {len(dst_idma)}."
            )
        if with_out_idma and dst is None:
            raise BadTransfer("A frame that writes results back needs a destination: pass dst.")
        size_bytes = length * FLOAT32_BYTES
        source = _part("source", usable("source", src), size_bytes)
        target = None
        if with_out_idma and dst is not None:
            target = _part("destination", writable("destination", dst), size_bytes)
        float32 = np.dtype(np.float32)
        ins = [writable("TCM buffer", tile) for tile in src_idma]
        outs = [writable("TCM buffer", tile) for tile in dst_idma]
        _Frame(idma, ins, outs, float32, float32).run(source, target, compute)
        return IDMA_OK

    return idma.status_of(run)


class _Frame:
    """Two input tiles and two output tiles in TCM; the arrays over them are made once."""

    def __init__(
        self,
        idma: Idma,
        ins: Sequence[memoryview],
        outs: Sequence[memoryview],
        in_type: np.dtype[Any],
        out_type: np.dtype[Any],
    ) -> None:
        import numpy as np

        self.idma, self.ins, self.outs = idma, ins, outs
        self.in_bytes, self.out_bytes = in_type.itemsize, out_type.itemsize
        self.per_tile = min(
            *(view.nbytes // self.in_bytes for view in ins),
            *(view.nbytes // self.out_bytes for view in outs),
        )
        if not self.per_tile:
            raise BadTransfer(f"A TCM buffer is smaller than one item of {in_type} or {out_type}.")
        for ping in (ins[0], outs[0]):
            for pong in (ins[1], outs[1]):
                check_apart(ping, pong)
        self.tiles_in = [np.frombuffer(view, in_type, self.per_tile) for view in ins]
        self.tiles_out = [np.frombuffer(view, out_type, self.per_tile) for view in outs]
        self.shares_bank = bool(self._banks(0) & self._banks(1))

    def run(self, source: memoryview, target: memoryview | None, compute: Compute) -> int:
        """For each tile: wait for its input, `compute`, send its results, start its next input."""
        self._check(source, target)
        idma, per_tile = self.idma, self.per_tile
        items = source.nbytes // self.in_bytes
        if not items:
            return 0
        filled = [0, 0]
        try:
            for first in range(0, min(items, 2 * per_tile), per_tile):
                filled[first // per_tile] = self._fetch(source, first, first // per_tile)
            turn = 0
            for first in range(0, items, per_tile):
                count = min(per_tile, items - first)
                idma.wait(filled[turn])  # the buffer's last outgoing transfer was issued earlier, so it is also done
                tile_in, tile_out = self.tiles_in[turn], self.tiles_out[turn]
                if count < per_tile:
                    tile_in, tile_out = tile_in[:count], tile_out[:count]
                if self.shares_bank:
                    idma.note_compute(self.ins[turn], self.outs[turn])
                compute(tile_in, tile_out, first)
                if target is not None:
                    at, size_bytes = first * self.out_bytes, count * self.out_bytes
                    idma.enqueue(target[at : at + size_bytes], self.outs[turn][:size_bytes])
                if first + 2 * per_tile < items:
                    filled[turn] = self._fetch(source, first + 2 * per_tile, turn)
                turn ^= 1
        finally:
            idma.wait_all()
        return -(-items // per_tile)

    def _fetch(self, source: memoryview, first: int, turn: int) -> int:
        at = first * self.in_bytes
        size_bytes = min(self.per_tile * self.in_bytes, source.nbytes - at)
        return self.idma.enqueue(self.ins[turn][:size_bytes], source[at : at + size_bytes])

    def _check(self, source: memoryview, target: memoryview | None) -> None:
        for view in self.ins:
            check_apart(view, source)
        if target is None:
            return
        for view in self.outs:
            check_apart(target, view)
        if address_of(target) != address_of(source) or self.out_bytes > self.in_bytes:
            check_apart(target, source)

    def _banks(self, turn: int) -> set[int | None]:
        tm = self.idma.tile_manager
        if tm is None:
            return set()
        return {tm.bank_at(address_of(view)) for view in (self.ins[turn], self.outs[turn])} - {None}


def _part(side: str, view: memoryview, size_bytes: int) -> memoryview:
    if view.nbytes < size_bytes:
        raise BadTransfer(f"The {side} has {view.nbytes} bytes; the frame needs {size_bytes}.")
    return view[:size_bytes]


def _tile_items(tm: TileManager, item_bytes: int, at_most: int | None, multiple_of: int) -> int:
    """Items per tile: as many as fit in both banks, within the caller's limits."""
    if multiple_of < 1 or (at_most is not None and at_most < multiple_of):
        raise BadTransfer(
            f"Tiles of at most {at_most} items cannot be a multiple of {multiple_of}: use 1 or more, and a "
            "limit of at least one multiple."
        )
    room_bytes = min(tm.largest_free_bytes(0), tm.largest_free_bytes(1)) - DEFAULT_ALIGN  # a gap between two buffers
    fitting = room_bytes // item_bytes if at_most is None else min(at_most, room_bytes // item_bytes)
    return max(fitting // multiple_of, 1) * multiple_of  # if not even one fits, the allocation will say so
