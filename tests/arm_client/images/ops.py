"""Ops that do what a test says: answer, wait, fail in each way, and write down who ran when."""

from __future__ import annotations

import os
import time

from dsp_server import (
    HB_DSP_REGISTER_NN_ALL,
    HB_ERR_MMAP_FAILED,
    XV_MEM_BANK_COLOR_0,
    TileManager,
    hb_dsp_core_id,
    hb_dsp_env_init,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_start,
)


def echo(input: memoryview, output: memoryview, tm: object) -> int:
    """Copy the input to the output."""
    output[: len(input)] = input
    return 0


def hold(input: memoryview, output: memoryview, tm: object) -> int:
    """Say in byte 0 that it runs, continue when byte 1 is set, then write 0xA5 into the output."""
    input[0] = 1
    while not input[1]:
        time.sleep(0.0005)
    output[:] = b"\xa5" * len(output)
    return 0


def fail(input: memoryview, output: memoryview, tm: object) -> int:
    """Raise."""
    raise ZeroDivisionError("the tile has no columns")


def give_back(input: memoryview, output: memoryview, tm: object) -> int:
    """Return the int32 in the input."""
    return int.from_bytes(input[:4], "little", signed=True)


def give_none(input: memoryview, output: memoryview, tm: object) -> int:
    """Forget to return anything."""
    return None  # type: ignore[return-value]


def give_numpy(input: memoryview, output: memoryview, tm: object) -> int:
    """Return numpy's idea of an integer."""
    import numpy as np

    return np.int32(int.from_bytes(input[:4], "little", signed=True))  # type: ignore[return-value]


def fetch(input: memoryview, output: memoryview, tm: object) -> int:
    """Copy what lies at the address in bytes 0..8, as many bytes as bytes 8..16 say, to the output."""
    size_bytes = int.from_bytes(input[8:16], "little")
    view = hb_dsp_mem_map(int.from_bytes(input[:8], "little"), size_bytes)
    if not view:
        return HB_ERR_MMAP_FAILED
    output[:size_bytes] = view
    hb_dsp_mem_unmap(view)
    return 0


def take_tcm(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Ask bank 0 for as many bytes as the input says; raises when it has not so many."""
    tm.free(tm.allocate(int.from_bytes(input[:4], "little"), XV_MEM_BANK_COLOR_0, 64))
    return 0


def leave_tcm(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Take 64 bytes of TCM and forget them."""
    tm.allocate(64, XV_MEM_BANK_COLOR_0, 64)
    return 0


def note(input: memoryview, output: memoryview, tm: object) -> int:
    """Append the int32 in bytes 0..4 of the input to the journal in the output: u32 count, then the numbers.

    The output has one journal per core, one after another, each of as many bytes as bytes 4..8 of the input say.
    """
    size_bytes = int.from_bytes(input[4:8], "little")
    mine = output[hb_dsp_core_id() * size_bytes :][:size_bytes]
    count = int.from_bytes(mine[:4], "little")
    mine[4 + 4 * count : 8 + 4 * count] = input[:4]
    mine[:4] = (count + 1).to_bytes(4, "little")
    return 0


def which(input: memoryview, output: memoryview, tm: object) -> int:
    """Core index and process id into the output."""
    output[:8] = hb_dsp_core_id().to_bytes(4, "little") + os.getpid().to_bytes(4, "little")
    return 0


def add_one(input: memoryview, output: memoryview, tm: object) -> int:
    """Add 1 to each byte of the input, into the output."""
    output[: len(input)] = bytes((byte + 1) & 0xFF for byte in input)
    return 0


def rest(input: memoryview, output: memoryview, tm: object) -> int:
    """Take as many microseconds as the input says, then copy the input to the output; ones: until it says otherwise."""
    while int.from_bytes(input[:4], "little") == 0xFFFF_FFFF:
        time.sleep(0.001)
    time.sleep(int.from_bytes(input[:4], "little") / 1e6)
    output[: len(input)] = input
    return 0


def main() -> None:
    """Register them and serve."""
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    ops = (echo, hold, fail, give_back, give_none, give_numpy, fetch, take_tcm, note, which, add_one, rest, leave_tcm)
    for cmd, op in enumerate(ops, 0x1000):
        hb_dsp_register_fn(cmd, op, 0)
    hb_dsp_start()
