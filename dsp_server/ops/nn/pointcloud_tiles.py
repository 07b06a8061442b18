"""Rectangles of places through TCM: what the pillar steps of the point-cloud ops pass over.

A place is what one point of one pillar takes. Slot-major, the places of some pillars are a rectangle: a row a slot,
with a pitch of max_voxels places. Pillar-major they are one row. A tile is a rectangle, too, and iDMA
moves it row by row.

A tile arrives once and is computed once for each output, as in the manual: the transpose brings five numbers of a place
and takes one of them away, five times over. That is why its shares of a bank are 5:1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dsp_server import cycles
from dsp_server.descriptors import current
from dsp_server.ops.nn.tiles import Path
from dsp_server.tile_manager import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1
from dsp_server.transfers import Shape

if TYPE_CHECKING:
    from dsp_server.tile_manager import TileManager

Compute: TypeAlias = Callable[[NDArray[Any], NDArray[Any], int], object]
"""compute(tile of the input, tile of the output, which output): flat arrays of the numbers of n places."""

ALIGN = 64


class Rectangle(NamedTuple):
    """Places `first + row * pitch + column` of a buffer."""

    first: int
    rows: int
    columns: int
    pitch: int

    def cut(self, most_places: int) -> Iterator[Rectangle]:
        """Rectangles of at most so many places that cover this one."""
        columns = min(max(self.columns, 1), most_places)
        rows = most_places // columns
        for row in range(0, self.rows, rows):
            for column in range(0, self.columns, columns):
                yield Rectangle(
                    self.first + row * self.pitch + column,
                    min(rows, self.rows - row),
                    min(columns, self.columns - column),
                    self.pitch,
                )

    def extent(self, place_bytes: int) -> slice:
        """Bytes of a buffer from this rectangle's first place to its last one's end."""
        places = (self.rows - 1) * self.pitch + self.columns
        return slice(self.first * place_bytes, (self.first + places) * place_bytes)

    def shape(self, place_bytes: int, *, fetches: bool) -> Shape | None:
        """How iDMA moves it between DDR and a tile without gaps; None for a flat copy."""
        if self.rows == 1:
            return None
        row_bytes, pitch_bytes = self.columns * place_bytes, self.pitch * place_bytes
        pitches = (pitch_bytes, row_bytes) if fetches else (row_bytes, pitch_bytes)
        return Shape(row_bytes, self.rows, *pitches)


def run_rectangle(
    tm: TileManager,
    path: Path,
    source: NDArray[Any],
    targets: Sequence[NDArray[Any]],
    rectangle: Rectangle,
    most_places: int,
    compute: Compute,
) -> None:
    """Pass over a rectangle: by ping-pong, ping in bank 0, pong in bank 1, or straight from DDR row by row.

    Args:
        tm: Tile manager of the core.
        path: Through TCM, or straight from DDR; the results are the same.
        source: (places, k) in DDR.
        targets: Outputs in DDR, each (places,) or (places, m), all of one type.
        rectangle: The places to compute; those of an output that lie elsewhere keep what they are.
        most_places: Places of a tile; fewer when a bank has less room.
        compute: Called for each tile and each output, in order; charges its own cycles.

    Raises:
        OutOfTcm: a bank has no room for one place.
    """
    if not rectangle.rows * rectangle.columns:
        return
    if path == "ping_pong":
        _by_ping_pong(tm, source, targets, rectangle, most_places, compute)
        return
    for row in range(rectangle.rows):
        start = rectangle.first + row * rectangle.pitch
        places = slice(start, start + rectangle.columns)
        for index, target in enumerate(targets):
            cycles.current().charge_ddr(source[places].nbytes + target[places].nbytes)
            compute(source[places].reshape(-1), target[places].reshape(-1), index)


def _by_ping_pong(
    tm: TileManager,
    source: NDArray[Any],
    targets: Sequence[NDArray[Any]],
    rectangle: Rectangle,
    most_places: int,
    compute: Compute,
) -> None:
    in_bytes, out_bytes = source[0].nbytes, targets[0][0].nbytes
    room_bytes = min(tm.largest_free_bytes(0), tm.largest_free_bytes(1)) - ALIGN  # a gap between the two buffers
    most_places = max(min(most_places, room_bytes // (in_bytes + out_bytes)), 1)
    tiles = list(rectangle.cut(most_places))
    read_from, write_to = source.data.cast("B"), [target.data.cast("B") for target in targets]
    idma = current()
    with ExitStack() as stack:

        def pair(place_bytes: int) -> list[memoryview]:
            colors = (XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1)
            return [stack.enter_context(tm.tile(most_places * place_bytes, color, ALIGN)) for color in colors]

        ins, outs = pair(in_bytes), pair(out_bytes)
        all_in = [np.frombuffer(view, source.dtype) for view in ins]
        all_out = [np.frombuffer(view, targets[0].dtype) for view in outs]

        def fetch(number: int) -> int:
            if number >= len(tiles):
                return 0
            tile = tiles[number]
            to = ins[number % 2][: tile.rows * tile.columns * in_bytes]
            return idma.enqueue(to, read_from[tile.extent(in_bytes)], tile.shape(in_bytes, fetches=True))

        stack.callback(idma.wait_all)  # before the buffers go
        filled, left = [fetch(0), fetch(1)], 0
        for number, tile in enumerate(tiles):
            turn = number % 2
            places = tile.rows * tile.columns
            idma.wait(filled[turn])  # what last left this bank was issued before, so it is done as well
            tile_in = all_in[turn][: places * in_bytes // source.itemsize]
            tile_out = all_out[turn][: places * out_bytes // targets[0].itemsize]
            results, shape = outs[turn][: places * out_bytes], tile.shape(out_bytes, fetches=False)
            extent = tile.extent(out_bytes)
            for index, target in enumerate(write_to):
                if index:
                    idma.wait(left)
                compute(tile_in, tile_out, index)
                left = idma.enqueue(target[extent], results, shape)
            filled[turn] = fetch(number + 2)
