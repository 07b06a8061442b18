"""Ops of the programs next to this file. Most are wrong if another task, or the program, runs in the middle."""

import numpy as np

from dsp_server import (
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


def mapped(phy_addr: int, size_bytes: int) -> memoryview:
    """A range of memory."""
    found = hb_dsp_mem_map(phy_addr, size_bytes)
    assert found is not MAP_FAILED
    return found


def add_one(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Add one to a number in mapped memory: its address is in the input."""
    phy_addr = int(np.frombuffer(input, np.uint64)[0])
    number = np.frombuffer(mapped(phy_addr, 4), np.int32)
    old = number[0]
    new = old + 1
    number[0] = new
    hb_dsp_mem_unmap(phy_addr)
    return 0


def add_locked(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Like add_one, while a word next to the number says that it is taken: checked, and then set."""
    phy_addr = int(np.frombuffer(input, np.uint64)[0])
    words = np.frombuffer(mapped(phy_addr, 8), np.int32)  # the number, and whether it is taken
    while words[1]:
        pass
    words[1] = 1
    old = words[0]
    new = old + 1
    words[0] = new
    words[1] = 0
    hb_dsp_mem_unmap(phy_addr)
    return 0


def double(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write twice the input into the output."""
    source, result = np.frombuffer(input, np.int32), np.frombuffer(output, np.int32)
    first = source[: len(source) // 2] * 2
    result[: len(first)] = first
    rest = source[len(first) :] * 2
    result[len(first) :] = rest
    return 0


def begin_and_double(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Like double; the last number of the output becomes 1 once the op has begun."""
    result = np.frombuffer(output, np.int32)
    result[-1] = 1
    source = np.frombuffer(input, np.int32)
    result[:-1] = source[: len(result) - 1] * 2
    return 0


def square_in_scratch(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Write the square of the input, through scratch memory whose address comes before it."""
    words = np.frombuffer(input, np.uint64)
    phy_addr, value = int(words[0]), int(words[1])
    scratch = np.frombuffer(mapped(phy_addr, 8), np.int64)
    scratch[0] = value
    scratch[0] = scratch[0] * value
    np.frombuffer(output, np.int64)[0] = scratch[0]
    hb_dsp_mem_unmap(phy_addr)
    return 0


def double_by_tiles(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Double both halves in two tiles, but wait for only one copy."""
    half = len(input) // 2
    with tm.tile(half, 0) as ping, tm.tile(half, 1) as pong:
        idma_copy_desc(ping, input[:half], half)
        last = idma_copy_desc(pong, input[half:], half)
        while idma_desc_done(last) != 1:
            pass
        for tile, start in ((ping, 0), (pong, half)):
            np.frombuffer(output, np.int32)[start // 4 : (start + half) // 4] = np.frombuffer(tile, np.int32) * 2
    return 0


def main() -> None:
    """Register the ops."""
    hb_dsp_env_init()
    for at, op in enumerate((add_one, add_locked, double, begin_and_double, square_in_scratch, double_by_tiles)):
        hb_dsp_register_fn(0x1000 + at, op)
    hb_dsp_start()
