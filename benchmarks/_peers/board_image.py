"""The image of the benchmarks' boards: an op that does nothing, one that copies, one that adds two arrays."""

# ruff: noqa: ARG001 - an op's signature is fixed, whether it uses its arguments or not

from __future__ import annotations

import struct
from typing import Any

from dsp_server import (
    HB_ERR_MMAP_FAILED,
    MAP_FAILED,
    hb_dsp_env_init,
    hb_dsp_init_global_tm,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_start,
)


def noop(input: memoryview, output: memoryview, tm: Any) -> int:
    """Do nothing."""
    return 0


def echo(input: memoryview, output: memoryview, tm: Any) -> int:
    """Copy the request into the reply; both have the same size."""
    output[:] = input
    return 0


def add(input: memoryview, output: memoryview, tm: Any) -> int:
    """Add two float32 arrays; the input has as uint64 both addresses, the sum's, and the size in bytes."""
    import numpy as np

    *addresses, size_bytes = struct.unpack_from("<4Q", input)
    arrays = []
    for address in addresses:
        view = hb_dsp_mem_map(address, size_bytes)
        if view is MAP_FAILED:
            return HB_ERR_MMAP_FAILED
        arrays.append(np.frombuffer(view, np.float32))
    first, second, total = arrays
    np.add(first, second, out=total)
    for address in addresses:
        hb_dsp_mem_unmap(address)
    return 0


def main() -> int:
    """Register the ops and serve."""
    hb_dsp_env_init()
    hb_dsp_init_global_tm()
    hb_dsp_register_fn(0x1000, noop, 0)
    hb_dsp_register_fn(0x1001, echo, 0)
    hb_dsp_register_fn(0x1002, add, 0)
    hb_dsp_start()
    return -1
