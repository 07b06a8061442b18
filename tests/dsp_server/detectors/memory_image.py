"""Ops that use memory in right and wrong ways."""

from __future__ import annotations

import ctypes
import struct

import numpy as np

from dsp_server import (
    HB_DSP_REGISTER_CV_ALL,
    HB_DSP_REGISTER_NN_ALL,
    MAP_FAILED,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_start,
    idma_copy_desc,
    idma_desc_done,
)

COPY, SCRIBBLE, OVER, UNDER, FETCH, STORE, BEHIND, IN_PLACE, DMA = range(0x1000, 0x1009)


def copy(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Read all of the input."""
    np.copyto(np.frombuffer(output, np.uint8), np.frombuffer(input, np.uint8)[: len(output)])
    return 0


def scribble(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write into the input."""
    input[5] = 1
    output[:1] = b"x"
    return 0


def over(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write a page past the output, as C code might."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(output))
    ctypes.memset(address, 7, len(output) + 4096)
    return 0


def under(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write a byte past the output, in its last page."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(output))
    ctypes.memset(address, 7, len(output) + 1)
    return 0


def behind(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Read past the end of the input's pages."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(input))
    output[0] = ctypes.c_ubyte.from_address(address + 4096).value
    return 0


def fetch(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Copy from the memory that the structure names."""
    address, size_bytes = struct.unpack_from("<QQ", input)
    mapped = hb_dsp_mem_map(address, size_bytes)
    if mapped is MAP_FAILED:
        return -1
    output[:size_bytes] = mapped
    hb_dsp_mem_unmap(mapped)
    return 0


def store(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write into the memory that the structure names."""
    address, size_bytes = struct.unpack_from("<QQ", input)
    mapped = hb_dsp_mem_map(address, size_bytes)
    if mapped is MAP_FAILED:
        return -1
    mapped[:] = bytes(size_bytes)
    hb_dsp_mem_unmap(mapped)
    return 0


def in_place(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Add one to each byte of a block that is both."""
    values = np.frombuffer(output, np.uint8)
    values += 1
    return 0


def dma(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Copy the input by the engine."""
    with tm.tile(len(input)) as tile:
        first = idma_copy_desc(tile, input, len(input))  # copies
        while idma_desc_done(first) != 1:
            pass
        second = idma_copy_desc(output, tile, len(input))
        while idma_desc_done(second) != 1:
            pass
    return 0


def main() -> None:
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    HB_DSP_REGISTER_CV_ALL()
    for cmd, op in enumerate((copy, scribble, over, under, fetch, store, behind, in_place, dma), COPY):
        hb_dsp_register_fn(cmd, op)
    hb_dsp_start()
