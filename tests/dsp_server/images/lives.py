"""Ops that live long, die, or misbehave, each when a test says so."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from pathlib import Path

from dsp_server import (
    HB_DSP_REGISTER_NN_ALL,
    hb_dsp_core_id,
    hb_dsp_env_init,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_start,
)


def which(input: memoryview, output: memoryview, tm: object) -> int:
    """Core index and process id into the output, and the value that the image was written with."""
    output[:12] = hb_dsp_core_id().to_bytes(4, "little") + os.getpid().to_bytes(4, "little") + (1).to_bytes(4, "little")
    return 0


def hold(input: memoryview, output: memoryview, tm: object) -> int:
    """Say in byte 0 that it runs, continue when byte 1 is set, then add 1 to byte 2."""
    input[0] = 1
    while not input[1]:
        time.sleep(0.001)
    input[2] = (input[2] + 1) & 0xFF
    return 0


def die(input: memoryview, output: memoryview, tm: object) -> int:
    """End the process in the way that byte 0 names."""
    if input[0] == 0:
        os._exit(7)
    if input[0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ctypes.string_at(0)
    return 0


def exit_soon(input: memoryview, output: memoryview, tm: object) -> int:
    """End well, and end the process a moment later."""
    threading.Timer(0.05, os._exit, (3,)).start()
    return 0


def touch(input: memoryview, output: memoryview, tm: object) -> int:
    """Say in byte 0 that it runs; when byte 1 is set, write 0xA5 through the address in bytes 8..16, 64 bytes."""
    input[0] = 1
    while not input[1]:
        time.sleep(0.001)
    view = hb_dsp_mem_map(int.from_bytes(input[8:16], "little"), 64)
    if not view:
        return 1
    view[:] = b"\xa5" * 64
    hb_dsp_mem_unmap(view)
    return 0


def go_off_when_armed() -> None:
    """End the process a moment after a file next to the image says so."""

    def wait() -> None:
        while not Path(f"{__file__}.armed").exists():
            time.sleep(0.05)
        time.sleep(0.05)
        os._exit(5)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Register them and serve."""
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    for cmd, op in enumerate((which, hold, die, exit_soon, touch), 0x1000):
        hb_dsp_register_fn(cmd, op, 0)
    hb_dsp_start()
