"""A softmax layer as a manual prints it, with its nine mistakes: the ARM side, the op, and its ping-pong frame."""

import ctypes
from typing import Any

import numpy as np
from calls import MAX_MS

import arm_client as hb
from arm_client.sample import check, problem
from dsp_server import (
    TILE_SIZE,
    XV_MEM_BANK_COLOR_0,
    XV_MEM_BANK_COLOR_1,
    TileManager,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    idma_copy_desc,
    idma_desc_done,
    xvAllocateBuffer,
    xvFreeBuffer,
)

NAMED = (
    "use-after-free",
    "dma-handle: which no copy has set",
    "dma-busy",
    "dma-left",
    "leak: not freed",
    "leak: not released",
    "dma-handle: that failed",
    "left-mapped",
    "endless-wait",
    "hole",
)
IN_TILES, IN_PLACE, FIXED = 0x1180, 0x1181, 0x1182
FEW, MANY = 1000, 3 * TILE_SIZE // 4 + 100  # numbers per row


class Param(ctypes.Structure):
    """The op's input: 4 bytes between the two are unused, which the DSP's compiler has to lay out the same way."""

    _fields_ = (("data_size", ctypes.c_int32), ("input", ctypes.c_uint64))


class FullParam(ctypes.Structure):
    """Like Param, without a hole: each byte belongs to a field."""

    _fields_ = (("data_size", ctypes.c_int32), ("reserved", ctypes.c_int32), ("input", ctypes.c_uint64))


# -- the DSP's side


def tile_max(_dst: Any, src: Any, state: list[float]) -> None:
    state[0] = max(state[0], float(src.max()))


def tile_exp(dst: Any, src: Any, state: list[float]) -> None:
    np.exp(src - state[0], out=dst)
    state[1] += float(dst.sum())


def tile_scale(dst: Any, src: Any, state: list[float]) -> None:
    np.divide(src, state[1], out=dst)


def wrong_frame(
    dst: Any, src: Any, tiles: list[memoryview], length: int, func: Any, state: Any, *, has_output: bool
) -> int:
    """Compute in two tiles alternately; input and output share a tile."""
    floats = len(tiles[0]) // 4
    parts = [(first, min(floats, length - first)) for first in range(0, length, floats)]
    arrived, left = [0, 0], [0, 0]
    for turn, (first, count) in enumerate(parts[:2]):
        arrived[turn] = idma_copy_desc(tiles[turn], src[4 * first :], 4 * count)
        if arrived[turn] < 0:
            print("copy failed")
    turn = 0
    for number, (first, count) in enumerate(parts):
        while idma_desc_done(arrived[turn]) != 1:
            pass
        while has_output and idma_desc_done(left[turn]) != 1:  # mistake 2: no copy has set it in the first two rounds
            pass
        tile = np.frombuffer(tiles[turn], np.float32)[:count]
        func(tile, tile, state)
        if has_output:
            left[turn] = idma_copy_desc(dst[4 * first :], tiles[turn], 4 * count)
            if left[turn] < 0:
                return -1
        if number + 2 < len(parts):  # mistake 3: the copy out of this tile may still read it
            later, more = parts[number + 2]
            arrived[turn] = idma_copy_desc(tiles[turn], src[4 * later :], 4 * more)
        turn ^= 1
    while has_output and idma_desc_done(left[turn ^ 1]) != 1:  # mistake 4: the copy before the last is not waited for
        pass
    return 0


def frame(dst: Any, src: Any, tiles: list[Any], length: int, func: Any, state: Any, *, has_output: bool) -> int:
    """Like wrong_frame, but each copy is checked and waited for before its tile is used again."""
    floats = len(tiles[0]) // 4
    parts = [(first, min(floats, length - first)) for first in range(0, length, floats)]
    arrived = [idma_copy_desc(tile, src[4 * at :], 4 * n) for tile, (at, n) in zip(tiles, parts, strict=False)]
    left = [0, 0]
    turn = 0
    for number, (first, count) in enumerate(parts):
        if min(arrived) < 0:
            return min(arrived)
        while idma_desc_done(arrived[turn]) != 1:
            pass
        tile = np.frombuffer(tiles[turn], np.float32)[:count]
        func(tile, tile, state)
        if has_output:
            left[turn] = idma_copy_desc(dst[4 * first :], tiles[turn], 4 * count)
            if left[turn] < 0:
                return left[turn]
        if number + 2 < len(parts):
            while has_output and idma_desc_done(left[turn]) != 1:
                pass
            later, more = parts[number + 2]
            arrived[turn] = idma_copy_desc(tiles[turn], src[4 * later :], 4 * more)
        turn ^= 1
    for copy in left:
        while copy and idma_desc_done(copy) != 1:
            pass
    return 0


def wrong_op(param: memoryview, dst: memoryview, tm: TileManager) -> int:
    given = Param.from_buffer(param)
    src = hb_dsp_mem_map(given.input, given.data_size)
    tiles = [xvAllocateBuffer(tm, TILE_SIZE, color, 64) for color in (XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1)]
    length, state = given.data_size // 4, [-np.inf, 0.0]
    wrong_frame(dst, src, tiles, length, tile_max, state, has_output=False)
    wrong_frame(dst, src, tiles, length, tile_exp, state, has_output=True)  # mistake 6: its result is not used
    wrong_frame(dst, dst, tiles, length, tile_scale, state, has_output=True)
    for tile in tiles:
        xvFreeBuffer(tm, tile)
    hb_dsp_mem_unmap(src)
    return 0


def wrong_plain_op(param: memoryview, dst: memoryview, tm: TileManager) -> int:
    """The same without tiles."""
    given = Param.from_buffer(param)
    src = hb_dsp_mem_map(given.input, given.data_size)
    if len(dst) < len(src):
        return -1  # mistake 7: src stays mapped
    values = np.frombuffer(src, np.float32)
    result = np.frombuffer(dst, np.float32)
    np.exp(values - values.max(), out=result)
    result /= result.sum()
    hb_dsp_mem_unmap(src)
    return 0


def corrected_op(param: memoryview, dst: memoryview, tm: TileManager) -> int:
    given = FullParam.from_buffer(param)
    src = hb_dsp_mem_map(given.input, given.data_size)
    status = -1
    if len(dst) >= len(src):
        tiles = [xvAllocateBuffer(tm, TILE_SIZE, color, 64) for color in (XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1)]
        length, state = given.data_size // 4, [-np.inf, 0.0]
        status = (
            frame(dst, src, tiles, length, tile_max, state, has_output=False)
            or frame(dst, src, tiles, length, tile_exp, state, has_output=True)
            or frame(dst, dst, tiles, length, tile_scale, state, has_output=True)
        )
        for tile in tiles:
            xvFreeBuffer(tm, tile)
    hb_dsp_mem_unmap(src)
    return status


OPS = {IN_TILES: wrong_op, IN_PLACE: wrong_plain_op, FIXED: corrected_op}


# -- the ARM's side


def wrong_forward(cmd: int, rows: Any, out: Any, out_bytes: int) -> int:
    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    if hb.hbSysAllocMem(src, rows[0].nbytes) != 0:
        return -1
    if hb.hbSysAllocMem(dst, out_bytes) != 0:
        return -1
    if hb.hbSysAllocMem(block, ctypes.sizeof(Param)) != 0:
        return -1
    ctrl = hb.hbDSPRpcCtrlParam(rpcCmd=cmd)
    for i, row in enumerate(rows):
        ctypes.memmove(src.virAddr, row.ctypes.data, row.nbytes)
        param = Param.from_address(block.virAddr)  # mistake 9: a hole
        param.data_size, param.input = row.nbytes, src.phyAddr
        task = hb.hbDSPTask_t()
        if hb.hbDSPRpc(task, block, dst, ctrl) != 0:
            return -1
        if hb.hbDSPWaitTaskDone(task, 0) != 0:  # mistake 8: no limit
            return -1  # mistake 5: the blocks and the task stay
        if hb.hbDSPReleaseTask(task) != 0:
            return -1
        ctypes.memmove(out[i].ctypes.data, dst.virAddr, min(row.nbytes, out_bytes))
        hb.hbSysFreeMem(src)  # mistake 1: the next row uses them
        hb.hbSysFreeMem(dst)
        hb.hbSysFreeMem(block)
    return 0


def corrected_forward(rows: Any, out: Any, out_bytes: int) -> int:
    mems = [hb.hbSysMem() for _ in range(3)]
    task, status = hb.hbDSPTask_t(), 0
    for mem, size_bytes in zip(mems, (rows[0].nbytes, out_bytes, ctypes.sizeof(FullParam)), strict=True):
        status = status or hb.hbSysAllocMem(mem, size_bytes)
    src, dst, block = mems
    ctrl = hb.hbDSPRpcCtrlParam(rpcCmd=FIXED)
    for i, row in enumerate(rows if status == 0 else ()):
        ctypes.memmove(src.virAddr, row.ctypes.data, row.nbytes)
        param = FullParam.from_address(block.virAddr)
        param.data_size, param.reserved, param.input = row.nbytes, 0, src.phyAddr
        status = hb.hbDSPRpc(task, block, dst, ctrl)
        if status == 0:
            status = hb.hbDSPWaitTaskDone(task, MAX_MS)
            hb.hbDSPReleaseTask(task)
        if status != 0:
            break
        ctypes.memmove(out[i].ctypes.data, dst.virAddr, row.nbytes)
    for mem in mems:
        if mem.phyAddr:
            hb.hbSysFreeMem(mem)
    return status


def rows_of(count: int, floats: int) -> tuple[Any, Any]:
    """Numbers, and space for as many."""
    rows = np.random.default_rng(0).normal(0, 4, (count, floats)).astype(np.float32)
    return rows, np.empty_like(rows)


def wrong() -> None:
    rows, out = rows_of(1, MANY)
    wrong_forward(IN_TILES, rows, out, rows.nbytes)
    wrong_forward(IN_TILES, rows, out, rows.nbytes // 2)  # too little space: copies fail, which the op does not notice
    wrong_forward(IN_PLACE, rows, out, rows.nbytes // 2)  # the same: the op returns early
    rows, out = rows_of(2, FEW)
    wrong_forward(IN_PLACE, rows, out, rows[0].nbytes)


def corrected() -> None:
    for count, floats in ((1, MANY), (2, FEW)):
        rows, out = rows_of(count, floats)
        check(corrected_forward(rows, out, rows[0].nbytes), "corrected_forward")
        powers = np.exp(rows - rows.max(1, keepdims=True))
        np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), atol=1e-6)
    rows, out = rows_of(1, MANY)
    print(problem(corrected_forward(rows, out, rows.nbytes // 2), "corrected_forward"))  # rejected, leaks nothing
