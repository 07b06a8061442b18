"""Ops that use parts of their memory: what a task was given is more than what they touch."""

from __future__ import annotations

import struct
import time

import numpy as np

from dsp_server import (
    MAP_FAILED,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_start,
    idma_copy_2d_desc,
    idma_copy_desc,
    idma_desc_done,
)

READ, WRITE, POINTED, BY_IDMA, ROWS, SLEEP = range(0x1000, 0x1006)
RANGE = struct.Struct("<QQ")


def read(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Sum up the bytes of the input that its own first words name: start, size."""
    start, size_bytes = RANGE.unpack_from(output)
    output[:8] = struct.pack("<Q", int(np.frombuffer(input, np.uint8)[start : start + size_bytes].sum()))
    return 0


def write(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write zeros into the bytes of the output that the input names."""
    start, size_bytes = RANGE.unpack_from(input)
    output[start : start + size_bytes] = bytes(size_bytes)
    return 0


def pointed(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Copy from the memory that the structure names."""
    mapped = hb_dsp_mem_map(*RANGE.unpack_from(input))
    if mapped is MAP_FAILED:
        return -1
    output[: len(mapped)] = mapped
    hb_dsp_mem_unmap(mapped)
    return 0


def by_idma(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Copy the bytes of the input that the output names, by way of a tile."""
    start, size_bytes = RANGE.unpack_from(output)
    with tm.tile(size_bytes) as tile:
        handle = idma_copy_desc(tile, input[start:], size_bytes)
        while not idma_desc_done(handle):
            pass
        output[:size_bytes] = tile
    return 0


def rows(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Copy rows of 64 bytes at a pitch of 256."""
    count = len(input) // 256
    with tm.tile(64 * count) as tile:
        handle = idma_copy_2d_desc(tile, input, 64, 0, count, 256, 64)
        while not idma_desc_done(handle):
            pass
        output[: len(tile)] = tile
    return 0


def sleep(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Take a moment, and read the input then."""
    time.sleep(0.002)
    output[0] = input[0]
    return 0


def main() -> None:
    hb_dsp_env_init()
    for cmd, op in enumerate((read, write, pointed, by_idma, rows, sleep), READ):
        hb_dsp_register_fn(cmd, op)
    hb_dsp_start()
