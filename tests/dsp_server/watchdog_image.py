"""Ops that end badly, each in its own way, and one that does not."""

from __future__ import annotations

import ctypes
import re

from dsp_server import TileManager, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start


def hang(input: memoryview, output: memoryview, tm: TileManager) -> int:
    while True:
        pass


def hang_in_c(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Never lets the interpreter go: no other thread of the core runs, not even its heartbeat's."""
    re.match(r"(a+)+$", "a" * 64 + "b")
    return 0


def segfault(input: memoryview, output: memoryview, tm: TileManager) -> int:
    return len(ctypes.string_at(0))


def fine(input: memoryview, output: memoryview, tm: TileManager) -> int:
    return 0


def main() -> int:
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, hang, 100_000)
    hb_dsp_register_fn(0x1001, hang_in_c, 100_000)
    hb_dsp_register_fn(0x1002, segfault)
    hb_dsp_register_fn(0x1003, fine)
    hb_dsp_register_fn(0x1004, hang)
    hb_dsp_start()
    return -1
