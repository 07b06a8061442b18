"""Ops with a mistake in their copies each, and their corrected twins; lines that matter say what happens there."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from dsp_server import (
    HB_DSP_REGISTER_NN_ALL,
    XV_MEM_BANK_COLOR_0,
    XV_MEM_BANK_COLOR_1,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_ping_pong_frame,
    hb_dsp_register_fn,
    hb_dsp_start,
    idma_buffer_status,
    idma_copy_2d_desc,
    idma_copy_desc,
    idma_desc_done,
    ping_pong,
    xvAllocateBuffer,
    xvFreeBuffer,
)
from dsp_server.hardware.cycles import current
from hbrt.ddr.layout import BEAT_SECONDS

KIB = 1024


def wait(*handles: int) -> None:
    for handle in handles:
        while idma_desc_done(handle) != 1:
            pass


def read_early(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(8 * KIB) as tile:
        tile[:] = bytes(8 * KIB)
        copy = idma_copy_desc(tile, src, 8 * KIB)  # copies: read_early
        if is_right:
            wait(copy)
        dst[: 8 * KIB] = tile  # touches: read_early
        wait(copy)
    return 0


def written_early(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(8 * KIB) as tile:
        array = np.frombuffer(tile, np.uint8)
        copy = idma_copy_desc(tile, src, 8 * KIB)  # copies: written_early
        if is_right:
            wait(copy)
        np.add(array, 1, out=array)  # touches: written_early
        wait(copy)
        del array
    return 0


def source_written(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(8 * KIB) as tile:
        tile[:] = src[: 8 * KIB]
        copy = idma_copy_desc(dst, tile, 8 * KIB)  # copies: source_written
        if is_right:
            wait(copy)
        np.frombuffer(tile, np.uint8)[5000] = 1  # touches: source_written
        wait(copy)
    return 0


def output_read(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(8 * KIB) as tile:
        tile[:] = src[: 8 * KIB]
        copy = idma_copy_desc(dst, tile, 8 * KIB)  # copies: output_read
        if is_right:
            wait(copy)
        sum(dst[4096:4100])  # touches: output_read
        wait(copy)
    return 0


def freed_early(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    tile: Any = xvAllocateBuffer(tm, 8 * KIB, XV_MEM_BANK_COLOR_1, 64)
    tile[:] = src[: 8 * KIB]
    copy = idma_copy_desc(dst, tile, 8 * KIB)  # copies: freed_early
    if is_right:
        wait(copy)
    xvFreeBuffer(tm, tile)  # touches: freed_early
    wait(copy)
    return 0


def refilled(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(8 * KIB) as tile:
        tile[:] = src[: 8 * KIB]
        back = idma_copy_desc(dst, tile, 8 * KIB)  # copies: refilled
        if is_right:
            wait(back)
        again = idma_copy_desc(tile, src, 8 * KIB)  # touches: refilled
        wait(back, again)
    return 0


def one_buffer(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(4 * KIB) as ping, tm.tile(4 * KIB) as other:
        pong = other if is_right else ping
        first = idma_copy_desc(ping, src, 4 * KIB)  # copies: one_buffer
        second = idma_copy_desc(pong, src[4 * KIB :], 4 * KIB)  # touches: one_buffer
        wait(first, second)
    return 0


def chained(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(8 * KIB) as tile:
        into = idma_copy_desc(tile, src, 8 * KIB)  # copies: chained
        if is_right:
            wait(into)
        out = idma_copy_desc(dst, tile, 8 * KIB)  # touches: chained
        wait(into, out)
    return 0


def never_set(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    handles = [0]
    if not is_right:
        idma_desc_done(handles[0])  # touches: never_set
    handles[0] = idma_copy_desc(dst, src, 8 * KIB)
    wait(handles[0])
    return 0


def last_of_two(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    with tm.tile(4 * KIB, XV_MEM_BANK_COLOR_0) as ping, tm.tile(4 * KIB, XV_MEM_BANK_COLOR_1) as pong:
        for tile in (ping, pong):
            tile[:] = src[: 4 * KIB]
        first = idma_copy_desc(dst, ping, 4 * KIB)  # touches: last_of_two
        second = idma_copy_desc(dst[4 * KIB :], pong, 4 * KIB)
        wait(second)
        if is_right:
            wait(first)
    return 0


def plus_one(tile: memoryview) -> None:
    array = np.frombuffer(tile, np.uint8)
    np.add(array, 1, out=array)


def vendor_frame(src: memoryview, dst: memoryview, tm: TileManager, *, is_right: bool) -> int:
    """The steps of the published frame over tiles that input and output share, with its mistakes 2, 3 and 4."""
    size_bytes, count = 2 * KIB, len(src) // (2 * KIB)
    with tm.tile(size_bytes, XV_MEM_BANK_COLOR_0) as ping, tm.tile(size_bytes, XV_MEM_BANK_COLOR_1) as pong:
        tiles, left = (ping, pong), [0, 0]
        arrived = [idma_copy_desc(tiles[turn], src[turn * size_bytes :], size_bytes) for turn in (0, 1)]
        turn = 0
        for number in range(count):
            wait(arrived[turn])
            while (not is_right or left[turn]) and idma_desc_done(left[turn]) != 1:  # touches: vendor_frame
                pass
            plus_one(tiles[turn])
            left[turn] = idma_copy_desc(dst[number * size_bytes :], tiles[turn], size_bytes)  # copies: vendor_frame
            if number + 2 < count:
                if is_right:
                    wait(left[turn])
                arrived[turn] = idma_copy_desc(tiles[turn], src[(number + 2) * size_bytes :], size_bytes)
            turn ^= 1
        wait(left[turn ^ 1])
        if is_right:
            wait(left[turn])
    return 0


OPS = (
    read_early,
    written_early,
    source_written,
    output_read,
    freed_early,
    refilled,
    one_buffer,
    chained,
    never_set,
    last_of_two,
    vendor_frame,
)


def careful(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """Correct in all that could look wrong: parts of a tile, adjacent rows, rows waited for by the last."""
    with tm.tile(16 * KIB) as tile, tm.tile(64) as small:
        array = np.frombuffer(tile, np.uint8)
        array[:] = 1
        under_way = idma_copy_desc(tile[1000:], src, 7000)
        assert array[:1000].sum() == 1000
        array[8000:] = 2  # next to the bytes that arrive
        wait(under_way)
        rows = [idma_copy_desc(tile[row * 64 :], src[row * 128 :], 64) for row in range(16)]
        wait(rows[-1])
        assert array[:1024].sum() >= 0
        left = idma_copy_2d_desc(dst, tile, 32, 0, 16, 32, 64)
        right = idma_copy_2d_desc(dst[32:], tile[512:], 32, 0, 16, 32, 64)
        assert array[:1024].sum() >= 0  # a source can be read
        wait(left, right)
        assert dst[:64] == bytes(tile[:32]) + bytes(tile[512:544])
        with tm.tile(64, XV_MEM_BANK_COLOR_1) as other:
            copies = [idma_copy_desc(small, src, 64), idma_copy_desc(other, src, 64)]
            while idma_buffer_status() > 0:
                pass
            assert bytes(small) == bytes(other) == bytes(src[:64])
            assert [idma_desc_done(copy) for copy in copies] == [1, 1]
        del array
    return 0


def frames(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """Both frames, in place."""

    def add(tile_in: Any, tile_out: Any, *_: object) -> None:
        np.add(tile_in, 1, out=tile_out)

    ping_pong(tm, src, dst, add, in_dtype=np.uint8, tile_items=1000, in_place=True)
    assert bytes(dst) == bytes(byte + 1 for byte in src)
    tiles: list[Any] = [xvAllocateBuffer(tm, 1024, color, 64) for color in (0, 1)]
    code = hb_dsp_ping_pong_frame(dst, src, tiles, tiles, len(src) // 4, lambda *_: None, 0, 0)
    assert bytes(dst) == bytes(src)
    for tile in tiles:
        xvFreeBuffer(tm, tile)
    return code


def poll_codes(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """Poll what is no handle, for several heartbeats."""
    until = time.monotonic() + 4 * BEAT_SECONDS
    while time.monotonic() < until:
        idma_desc_done(-2)
    return 0


def one_bank(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """A frame whose ping and pong lie in one bank."""
    tiles: list[Any] = [xvAllocateBuffer(tm, 1024, XV_MEM_BANK_COLOR_0, 64) for _ in range(2)]
    code = hb_dsp_ping_pong_frame(dst, src, tiles, tiles, len(src) // 4, lambda *_: None, 0, 0)
    for tile in tiles:
        xvFreeBuffer(tm, tile)
    return code


def by_hand(src: memoryview, dst: memoryview, tm: TileManager, cycles: int) -> int:
    """Work in a tile while a copy fills another one of its bank, so many modeled cycles later."""
    with tm.tile(1024, XV_MEM_BANK_COLOR_0) as ping, tm.tile(1024, XV_MEM_BANK_COLOR_0) as pong:
        arrives = idma_copy_desc(pong, src, 1024)
        current().charge(cycles)
        ping[:] = bytes(1024)
        wait(arrives)
        wait(idma_copy_desc(dst, pong, 1024))
    return 0


def at_once(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    return by_hand(src, dst, tm, 0)


def afterwards(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    return by_hand(src, dst, tm, 100_000)


def die(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """A real fault."""
    return len(ctypes.string_at(8))


def main() -> None:
    hb_dsp_env_init()
    for cmd, op in enumerate(OPS):
        for is_right in (False, True):

            def run(src: Any, dst: Any, tm: Any, op: Any = op, is_right: Any = is_right) -> Any:
                return op(src, dst, tm, is_right=is_right)

            run.__name__ = op.__name__
            hb_dsp_register_fn(0x1100 + 2 * cmd + is_right, run)
    for cmd, whole in enumerate((careful, frames, die, poll_codes, one_bank, at_once, afterwards), 0x1200):
        hb_dsp_register_fn(cmd, whole)
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_start()
