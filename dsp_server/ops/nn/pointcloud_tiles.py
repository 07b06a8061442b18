"""Rectangles of places through TCM, as processed by the pillar steps of the point-cloud ops.

A place is what one point of one pillar occupies. In slot-major order, the places of some pillars form a rectangle: one
row per slot, with a pitch of max_voxels places. In pillar-major order they form one row. A tile is also a rectangle,
and iDMA moves it row by row.

A tile arrives once and is computed once per output, as in the manual: the transpose brings in five numbers per place
and takes out one of them, five times. That is why its shares of a bank are 5:1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dsp_server.hardware import cycles
from dsp_server.hardware.descriptors import current
from dsp_server.hardware.tcm import DEFAULT_ALIGN
from dsp_server.hardware.tile_manager import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1
from dsp_server.hardware.transfers import Shape
from dsp_server.ops.nn.pointcloud_loops import BUSY_UNTIL, ISSUED, LANES, NOW, QUANTIZED, STATES, frame
from dsp_server.ops.nn.tiles import Path
from hbrt.profiles.work import LoopCost, Work as Done

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

Compute: TypeAlias = Callable[[NDArray[Any], NDArray[Any], int], object]
"""compute(input tile, output tile, output number): flat arrays of the numbers of n places."""


class Work(NamedTuple):
    """What to compute on each tile: as a function, and in the form that the compiled frame needs.

    Attributes:
        compute: The function; charges no cycles.
        kind: ENCODE_TO_WORDS, ENCODE_TO_PLACES or TAKE_PLANES of pointcloud_loops.
        dims: Number of values per point.
        constants: Constants of the encoding; not read by TAKE_PLANES.
        lanes: Places per vector of the core.
        loop: Cost of one such vector.
    """

    compute: Compute
    kind: int
    dims: int
    constants: NDArray[np.float32]
    lanes: int
    loop: LoopCost

    def charge(self, places: int) -> None:
        """Spend the modeled cycles for this many places."""
        cycles.current().charge_loop(-(-places // self.lanes), self.loop)


TILES_A_CALL = 16
"""Tiles of a compiled frame between signals, so that an urgent task need not wait for all of them."""
ENGINE_COSTS = (
    cycles.IDMA_ISSUE_CYCLES,
    cycles.IDMA_SETUP_CYCLES,
    cycles.IDMA_ROW_CYCLES,
    cycles.IDMA_BYTES_PER_CYCLE,
)


class Rectangle(NamedTuple):
    """Places `first + row * pitch + column` of a buffer."""

    first: int
    rows: int
    columns: int
    pitch: int

    def cut(self, most_places: int) -> Iterator[Rectangle]:
        """Yield rectangles of at most this many places that cover this one."""
        rows, columns = self.tile(most_places)
        for row in range(0, self.rows, rows):
            for column in range(0, self.columns, columns):
                yield Rectangle(
                    self.first + row * self.pitch + column,
                    min(rows, self.rows - row),
                    min(columns, self.columns - column),
                    self.pitch,
                )

    def tile(self, most_places: int) -> tuple[int, int]:
        """Return rows and columns of the largest of its tiles."""
        columns = min(max(self.columns, 1), most_places)
        return most_places // columns, columns

    def extent(self, place_bytes: int) -> slice:
        """Return the bytes of a buffer from the start of this rectangle's first place to the end of its last."""
        places = (self.rows - 1) * self.pitch + self.columns
        return slice(self.first * place_bytes, (self.first + places) * place_bytes)

    def shape(self, place_bytes: int, *, fetches: bool) -> Shape | None:
        """Return how iDMA moves it between DDR and a tile without gaps; None for a flat copy."""
        if self.rows == 1:
            return None
        row_bytes, pitch_bytes = self.columns * place_bytes, self.pitch * place_bytes
        pitches = (pitch_bytes, row_bytes) if fetches else (row_bytes, pitch_bytes)
        return Shape(row_bytes, self.rows, *pitches)


def run_rectangle(
    tm: TileManager,
    path: Path,
    source: NDArray[Any],
    target: NDArray[Any],
    rectangle: Rectangle,
    most_places: int,
    work: Work,
) -> None:
    """Process a rectangle: by ping-pong, with ping in bank 0 and pong in bank 1, or straight from DDR row by row.

    Args:
        tm: The core's tile manager.
        path: Through TCM, or straight from DDR; the results are the same.
        source: (places, k) in DDR.
        target: (outputs, places, m) in DDR.
        rectangle: The places to compute; other places of the outputs are left unchanged.
        most_places: Maximum number of places per tile; fewer if a bank has less room.
        work: What to do for each tile and each output, in order.

    Raises:
        OutOfTcm: not even one place fits in a bank.
    """
    if not rectangle.rows * rectangle.columns:
        return
    if path == "ping_pong":
        _by_ping_pong(tm, source, target, rectangle, most_places, work)
        return
    for row in range(rectangle.rows):
        start = rectangle.first + row * rectangle.pitch
        places = slice(start, start + rectangle.columns)
        for index, output in enumerate(target):
            cycles.current().charge_ddr(source[places].nbytes + output[places].nbytes)
            work.compute(source[places].reshape(-1), output[places].reshape(-1), index)
            work.charge(rectangle.columns)


def _by_ping_pong(
    tm: TileManager,
    source: NDArray[Any],
    target: NDArray[Any],
    rectangle: Rectangle,
    most_places: int,
    work: Work,
) -> None:
    in_bytes, out_bytes = source[0].nbytes, target[0][0].nbytes
    room_bytes = min(tm.largest_free_bytes(0), tm.largest_free_bytes(1)) - DEFAULT_ALIGN  # a gap between two buffers
    most_places = max(min(most_places, room_bytes // (in_bytes + out_bytes)), 1)
    held: list[memoryview] = []
    try:
        for place_bytes in (in_bytes, out_bytes):
            held.append(tm.allocate(most_places * place_bytes, XV_MEM_BANK_COLOR_0, DEFAULT_ALIGN))
            held.append(tm.allocate(most_places * place_bytes, XV_MEM_BANK_COLOR_1, DEFAULT_ALIGN))
        buffers = Buffers(held[:2], held[2:])
        compiled = frame.compiled()
        if compiled is None or current().outstanding:
            tile_by_tile(source, target, list(rectangle.cut(most_places)), buffers, work)
        else:
            at_once(compiled, source, target, rectangle, most_places, buffers, work)
    finally:
        for view in held:
            tm.free(view)


class Buffers(NamedTuple):
    """A frame's TCM buffers: ping in bank 0 and pong in bank 1, for arriving and for leaving data."""

    ins: list[memoryview]
    outs: list[memoryview]


def tile_by_tile(
    source: NDArray[Any], target: NDArray[Any], tiles: list[Rectangle], buffers: Buffers, work: Work
) -> None:
    """Run a frame on the engine, with one call per descriptor."""
    in_bytes, out_bytes = source[0].nbytes, target[0][0].nbytes
    read_from, write_to = source.data.cast("B"), [output.data.cast("B") for output in target]
    idma, (ins, outs) = current(), buffers
    all_in = [np.frombuffer(view, source.dtype) for view in ins]
    all_out = [np.frombuffer(view, target.dtype) for view in outs]

    def fetch(number: int) -> int:
        if number >= len(tiles):
            return 0
        tile = tiles[number]
        to = ins[number % 2][: tile.rows * tile.columns * in_bytes]
        return idma.enqueue(to, read_from[tile.extent(in_bytes)], tile.shape(in_bytes, fetches=True))

    try:
        filled, left = [fetch(0), fetch(1)], 0
        for number, tile in enumerate(tiles):
            turn = number % 2
            places = tile.rows * tile.columns
            idma.wait(filled[turn])  # the bank's last outgoing transfer was issued earlier, so it is also done
            tile_in = all_in[turn][: places * in_bytes // source.itemsize]
            tile_out = all_out[turn][: places * out_bytes // target.itemsize]
            results, shape = outs[turn][: places * out_bytes], tile.shape(out_bytes, fetches=False)
            extent = tile.extent(out_bytes)
            for index, output in enumerate(write_to):
                if index:
                    idma.wait(left)
                work.compute(tile_in, tile_out, index)
                work.charge(places)
                left = idma.enqueue(output[extent], results, shape)
            filled[turn] = fetch(number + 2)
    finally:
        idma.wait_all()  # before the buffers are freed


def at_once(
    compiled: Callable[..., None],
    source: NDArray[Any],
    target: NDArray[Any],
    rectangle: Rectangle,
    most_places: int,
    buffers: Buffers,
    work: Work,
) -> None:
    """Run the same frame compiled: the same bytes in the same places of the same banks, the same modeled cycles."""
    idma, tile = current(), rectangle.tile(most_places)
    state = np.zeros(STATES, np.int64)
    state[NOW], state[BUSY_UNTIL] = idma.counter.cycles, idma.busy_until
    tiles = -(-rectangle.rows // tile[0]) * -(-rectangle.columns // tile[1])
    ping_in, pong_in = (np.frombuffer(view, np.uint8) for view in buffers.ins)
    ping_out, pong_out = (np.frombuffer(view, np.uint8) for view in buffers.outs)
    for begin in range(0, tiles, TILES_A_CALL):
        compiled(
            np.frombuffer(source.data.cast("B"), np.uint8),
            np.frombuffer(target.data.cast("B"), np.uint8),
            ping_in,
            pong_in,
            ping_out,
            pong_out,
            (*rectangle, *tile),
            (source[0].nbytes, target[0][0].nbytes, len(target), target[0].nbytes),
            (begin, min(begin + TILES_A_CALL, tiles)),
            (work.kind, work.dims),
            np.array([*ENGINE_COSTS, work.lanes, work.loop.cycles_milli, work.loop.bundles_milli], np.int64),
            state,
            work.constants,
            LANES,
            QUANTIZED,
        )
        now, busy_until, _, _, issued, vectors, bundles, rows, moved, moving, waited = state.tolist()
        loop = work.loop
        done = Done(
            bundles,
            vectors * loop.gathers,
            vectors * loop.divides,
            vectors * loop.scalars,
            descriptors=issued,
            rows=rows,
            dma_bytes=moved,
            dma_cycles=moving,
            wait_cycles=waited,
        )
        idma.account(now, busy_until, issued, done)
        state[ISSUED:] = 0
    idma.counter.advance_to(idma.busy_until)
