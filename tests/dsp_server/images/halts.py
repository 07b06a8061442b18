"""An op that returns at once, or does not come to its end, in the way that its input says."""

from __future__ import annotations

import re
import threading

from dsp_server import (
    TileManager,
    hb_dsp_env_init,
    hb_dsp_register_fn,
    hb_dsp_start,
    idma_copy_desc,
    idma_desc_done,
)

RETURN, WAIT, SPIN, MOVE, POLL, IN_C = range(6)


def halt(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """``input`` is a way, then a byte that ends those that look at it."""
    way = input[0]
    if way == WAIT:
        threading.Event().wait()
    while way == SPIN and not input[1]:
        pass
    count = 0
    while way == MOVE and not input[1]:
        count += 1
    if way == POLL:
        handle = idma_copy_desc(bytearray(64), bytes(64), 64)
        while idma_desc_done(handle) in {0, 1} and not input[1]:
            pass
    if way == IN_C:
        re.match(r"(a+)+$", "a" * 64 + "b")
    return 0


def client(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Wait for a task that needs this op's own core."""
    from arm_client import connect

    with connect() as board:
        board.submit(0x0, core=1).result()
    return 0


def main() -> int:
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, halt)
    hb_dsp_register_fn(0x1001, client)
    hb_dsp_start()
    return -1
