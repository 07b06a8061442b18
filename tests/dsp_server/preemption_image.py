"""Ops that show who runs when: a long one in many small steps, and a short one that says when it began."""

from __future__ import annotations

import struct
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from dsp_server import (
    HB_DSP_DRAM0_POOL_SIZE,
    XV_MEM_BANK_COLOR_0,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_register_fn,
    hb_dsp_start,
    xvAllocateBuffer,
    xvFreeBuffer,
)


def steps(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Fill all of bank 0 with a pattern, work until the input's first byte is set, and find the pattern unharmed."""
    tile = xvAllocateBuffer(tm, HB_DSP_DRAM0_POOL_SIZE, XV_MEM_BANK_COLOR_0, 64)
    if not tile:
        return 3
    tile[:] = b"\x5a" * len(tile)
    struct.pack_into("<Q", output, 0, time.monotonic_ns())
    while not input[0]:
        pass
    harmed = bytes(tile) != b"\x5a" * len(tile)
    xvFreeBuffer(tm, tile)
    struct.pack_into("<Q", output, 8, time.monotonic_ns())
    return 4 if harmed else 0


def whole(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """As ``steps``, of an op that no task may interrupt, as one of Hexagon code."""
    return steps(input, output, tm)


whole.can_be_interrupted = False  # type: ignore[attr-defined]


def stamp(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Take all of bank 0, overwrite it, and say when."""
    tile = xvAllocateBuffer(tm, HB_DSP_DRAM0_POOL_SIZE, XV_MEM_BANK_COLOR_0, 64)
    if not tile:
        return 3
    tile[:] = b"\xa5" * len(tile)
    struct.pack_into("<Q", output, 0, time.monotonic_ns())
    xvFreeBuffer(tm, tile)
    return 0


def broken(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Fail."""
    raise ValueError("the interrupting op is broken")


class SlowModule(MetaPathFinder, Loader):
    """A module that takes long to import."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """As of importlib."""
        return ModuleSpec(fullname, self) if fullname == "slow_to_import" else None

    def exec_module(self, module: ModuleType) -> None:
        """As of importlib."""
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        module.value = 7  # type: ignore[attr-defined]


def imports(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Say that it runs, then use the module."""
    output[0] = 1
    import slow_to_import  # type: ignore[import-not-found]

    output[1] = slow_to_import.value
    return 0


def main() -> int:
    sys.meta_path.append(SlowModule())
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, steps)
    hb_dsp_register_fn(0x1001, stamp)
    hb_dsp_register_fn(0x1002, broken)
    hb_dsp_register_fn(0x1003, imports)
    hb_dsp_register_fn(0x1004, whole)
    hb_dsp_start()
    return -1
