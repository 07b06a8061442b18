"""The point-cloud ops' loops, compiled by numba: encoding, the transpose, and whole frames of tiles of both.

A frame makes a call per tile and plane; from Python these cost several times what they compute. The compiled frame
moves the same bytes through the same buffers in the same banks, in the order of the engine in `descriptors.py`, and
spends the same modeled cycles. All three are in one file because numba recompiles a caller only when the caller's own
file has changed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hbrt.jit import Kernel

BLOCK = 256
"""Points that the compiled loop splits at a time: their numbers, by dimension, fit in the host's L1 cache."""

ROUNDER = np.float32(12582912.0)
"""1.5 * 2^23: adding and subtracting it rounds anything within 2^22 to an integer, ties to even."""

LOWEST, HIGHEST = np.float32(-128), np.float32(127)

# Where the loops keep a block of split points and its quantized numbers: nothing else runs on a core while a loop
# does.
LANES, QUANTIZED = np.empty((5, BLOCK), np.float32), np.empty((6, BLOCK), np.int32)


@Kernel
def encode(  # noqa: C901, PLR0912 - one dimension after the other, as on the chip
    points: NDArray[np.float32],
    words: NDArray[np.int32],
    places: NDArray[np.int8],
    dims: int,
    constants: NDArray[np.float32],
    lanes: NDArray[np.float32],
    quantized: NDArray[np.int32],
) -> None:
    """Encode flat points as flat words or, if there are no words, as flat places; one of the two is empty.

    Short straight loops that the compiler vectorizes: constant strides, selects instead of branches, no calls.
    """
    lows, highs, spans, cells, scale = constants[:5], constants[5:8], constants[8:13], constants[13:17], constants[17]
    p0, p1, p2, p3, p4 = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    q0, q1, q2, q3, q4, coordinate = quantized[0], quantized[1], quantized[2], quantized[3], quantized[4], quantized[5]
    total = points.shape[0] // dims
    for first in range(0, total, BLOCK):
        n = min(BLOCK, total - first)
        tile = points[first * dims : (first + n) * dims]
        if dims == 5:
            for i in range(n):
                p0[i] = tile[5 * i]
                p1[i] = tile[5 * i + 1]
                p2[i] = tile[5 * i + 2]
                p3[i] = tile[5 * i + 3]
                p4[i] = tile[5 * i + 4]
        else:
            for i in range(n):
                p0[i] = tile[4 * i]
                p1[i] = tile[4 * i + 1]
                p2[i] = tile[4 * i + 2]
                p3[i] = tile[4 * i + 3]
        for i in range(n):
            x, y, z = p0[i], p1[i], p2[i]
            cell_x, cell_y = (x - lows[0]) / cells[0], (y - lows[1]) / cells[1]
            inside = (x >= lows[0]) & (x < highs[0]) & (y >= lows[1]) & (y < highs[1]) & (z >= lows[2]) & (z < highs[2])
            inside &= (cell_x < cells[2]) & (cell_y < cells[3])
            coordinate[i] = (np.int32(cell_x) << 16) | np.int32(cell_y) if inside else np.int32(-1)
        for d in range(dims):
            lane, step = lanes[d], quantized[d]
            low, span = lows[d], spans[d]
            for i in range(n):
                value = (lane[i] - low) / span / scale
                clipped = value if value > LOWEST else LOWEST  # noqa: FURB136 - min and max do not vectorize
                clipped = clipped if clipped < HIGHEST else HIGHEST  # noqa: FURB136
                whole = np.int32((clipped + ROUNDER) - ROUNDER)
                step[i] = whole if value == value else np.int32(0)  # noqa: PLR0124 - false for NaN
        if words.shape[0] == 0:
            out = places[first * dims : (first + n) * dims]
            for i in range(n):
                keep = ~(coordinate[i] >> 31)  # 0 if there is no cell
                for d in range(dims):
                    out[dims * i + d] = quantized[d, i] & keep
        elif dims == 5:
            out5 = words[first * 3 : (first + n) * 3]
            for i in range(n):
                out5[3 * i] = coordinate[i]
                out5[3 * i + 1] = (q0[i] & 255) | ((q1[i] & 255) << 8) | ((q2[i] & 255) << 16) | (q3[i] << 24)
                out5[3 * i + 2] = q4[i] & 255
        else:
            out4 = words[first * 2 : (first + n) * 2]
            for i in range(n):
                out4[2 * i] = coordinate[i]
                out4[2 * i + 1] = (q0[i] & 255) | ((q1[i] & 255) << 8) | ((q2[i] & 255) << 16) | (q3[i] << 24)


@Kernel
def take_plane(places: NDArray[np.int8], plane: NDArray[np.int8], dims: int, dim: int) -> None:
    """Extract one number of every place: flat (n * dims,) to (n,)."""
    start = places[dim:]  # an index that might be negative would prevent vectorization
    if dims == 5:
        for i in range(plane.shape[0]):
            plane[i] = start[5 * i]
    else:
        for i in range(plane.shape[0]):
            plane[i] = start[4 * i]


@Kernel
def move_rows(
    to: NDArray[np.uint8],
    to_pitch: int,
    source: NDArray[np.uint8],
    source_pitch: int,
    row_bytes: int,
    num_rows: int,
) -> None:
    """Move what one descriptor moves. Assigning a slice would check for overlaps, and take ten times as long."""
    for row in range(num_rows):
        row_to = to[row * to_pitch : row * to_pitch + row_bytes]
        row_from = source[row * source_pitch : row * source_pitch + row_bytes]
        for i in range(row_bytes):
            row_to[i] = row_from[i]


ENCODE_TO_WORDS, ENCODE_TO_PLACES, TAKE_PLANES = 0, 1, 2
"""What `frame` computes."""
NOW, BUSY_UNTIL, FILLED = 0, 1, 2
ISSUED, VECTORS, BUNDLED, ROWS_AFTER, MOVED, MOVING, WAITED, STATES = range(4, 12)
"""Layout of a frame's state: cycles, the engine's end, the ends of ping's and pong's input; then the work done:
descriptors, vectors, their instructions, rows after the first of a copy, bytes, cycles of the engine, of waits.
"""
ISSUE, SETUP, ROW, BYTES_A_CYCLE, VECTOR_LANES, CYCLES_MILLI, BUNDLES_MILLI = range(7)
"""Layout of a frame's costs."""


@Kernel
def issue(state: NDArray[np.int64], costs: NDArray[np.int64], row_bytes: int, num_rows: int) -> int:
    """Return the modeled end of a new descriptor, as `Idma.enqueue` does."""
    state[NOW] += costs[ISSUE]
    moving = (row_bytes * num_rows + costs[BYTES_A_CYCLE] - 1) // costs[BYTES_A_CYCLE]
    moving += costs[SETUP] + (num_rows - 1) * costs[ROW]
    state[BUSY_UNTIL] = max(state[NOW], state[BUSY_UNTIL]) + moving
    state[ISSUED] += 1
    state[ROWS_AFTER] += num_rows - 1
    state[MOVED] += row_bytes * num_rows
    state[MOVING] += moving
    return int(state[BUSY_UNTIL])


@Kernel
def wait(state: NDArray[np.int64], until: int) -> None:
    """Let modeled time pass, like `CycleCounter.advance_to`."""
    if until > state[NOW]:
        state[WAITED] += until - state[NOW]
        state[NOW] = until


@Kernel
def frame(
    source: NDArray[np.uint8],
    target: NDArray[np.uint8],
    ping_in: NDArray[np.uint8],
    pong_in: NDArray[np.uint8],
    ping_out: NDArray[np.uint8],
    pong_out: NDArray[np.uint8],
    shape: tuple[int, int, int, int, int, int],
    sizes: tuple[int, int, int, int],
    span: tuple[int, int],
    work: tuple[int, int],
    costs: NDArray[np.int64],
    state: NDArray[np.int64],
    constants: NDArray[np.float32],
    lanes: NDArray[np.float32],
    quantized: NDArray[np.int32],
) -> None:
    """Process the tiles `span` of a rectangle: each arrives, is computed once per output, leaves; then the next.

    Bytes move when their descriptor is issued, not when it ends: no code reads them in between.

    Args:
        source: DDR.
        target: DDR: the outputs, one after the other.
        ping_in: TCM, bank 0, for arriving data.
        pong_in: The same in bank 1.
        ping_out: TCM, bank 0, for leaving data.
        pong_out: The same in bank 1.
        shape: First place, rows, columns, pitch of the rectangle; rows and columns of a tile.
        sizes: Bytes of a place in the source and in an output; number of outputs; bytes from one output to the next.
        span: The first tile, and the one after the last. If not the first of a frame, it continues from `state`.
        work: What to compute; dims.
        costs: See ISSUE: modeled cycles per issue, per descriptor, per row after the first; bytes per cycle; lanes per
            vector, and cycles and instructions per vector, in thousandths.
        state: See NOW; updated.
        constants: See `encode`.
        lanes: See `encode`.
        quantized: See `encode`.
    """
    first, rows, columns, pitch, tile_rows, tile_columns = shape
    in_bytes, out_bytes, outputs, output_stride = sizes
    kind, dims = work
    across = (columns + tile_columns - 1) // tile_columns
    tiles = across * ((rows + tile_rows - 1) // tile_rows)
    begin, end = span
    number = begin - 2 if begin == 0 else begin  # the first two only arrive
    while number < end:
        if number >= 0:
            row, column = number // across * tile_rows, number % across * tile_columns
            num_rows, num_columns = min(tile_rows, rows - row), min(tile_columns, columns - column)
            places = num_rows * num_columns
            place = first + row * pitch + column
            turn = number & 1
            tile_in = (pong_in if turn else ping_in)[: places * in_bytes]
            tile_out = (pong_out if turn else ping_out)[: places * out_bytes]
            wait(state, state[FILLED + turn])
            left = 0
            for index in range(outputs):
                wait(state, left)
                if kind == ENCODE_TO_WORDS:
                    encode(
                        tile_in.view(np.float32),
                        tile_out.view(np.int32),
                        tile_out[:0].view(np.int8),
                        dims,
                        constants,
                        lanes,
                        quantized,
                    )
                elif kind == ENCODE_TO_PLACES:
                    encode(
                        tile_in.view(np.float32),
                        tile_out[:0].view(np.int32),
                        tile_out.view(np.int8),
                        dims,
                        constants,
                        lanes,
                        quantized,
                    )
                else:
                    take_plane(tile_in.view(np.int8), tile_out.view(np.int8), dims, index)
                vectors = (places + costs[VECTOR_LANES] - 1) // costs[VECTOR_LANES]
                state[NOW] += (vectors * costs[CYCLES_MILLI] + 999) // 1000
                state[VECTORS] += vectors
                state[BUNDLED] += (vectors * costs[BUNDLES_MILLI] + 999) // 1000
                start = index * output_stride + place * out_bytes
                row_bytes = num_columns * out_bytes
                left = issue(state, costs, row_bytes, num_rows)
                move_rows(target[start:], pitch * out_bytes, tile_out, row_bytes, row_bytes, num_rows)
        after = number + 2
        if after < tiles:
            row, column = after // across * tile_rows, after % across * tile_columns
            num_rows, num_columns = min(tile_rows, rows - row), min(tile_columns, columns - column)
            start = (first + row * pitch + column) * in_bytes
            row_bytes = num_columns * in_bytes
            state[FILLED + (after & 1)] = issue(state, costs, row_bytes, num_rows)
            move_rows(
                pong_in if after & 1 else ping_in, row_bytes, source[start:], pitch * in_bytes, row_bytes, num_rows
            )
        number += 1
