"""Ops that fork, and whose child comes back out of the op; each answers who it is and how its child ended."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
from collections.abc import Callable

from dsp_server import TileManager, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

_LIBC = ctypes.PyDLL(None)


def _answer(output: memoryview, child: int, code: int) -> int:
    for at, value in enumerate((os.getpid(), child, code)):
        output[4 * at : 4 * at + 4] = value.to_bytes(4, "little", signed=True)
    return 0


def _forks(
    fork: Callable[[], int], child_does: Callable[[], int]
) -> Callable[[memoryview, memoryview, TileManager], int]:
    def op(input: memoryview, output: memoryview, tm: TileManager) -> int:
        child = fork()
        if child == 0:
            return child_does()
        return _answer(output, child, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    return op


def _fall() -> int:
    raise ValueError("the child fell")


def _leave() -> int:
    sys.exit(5)


def terminate(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """A child of multiprocessing that is told to end ends: the core's handlers are not its own."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=theirs.recv)
    child.start()
    child.terminate()
    child.join()
    ours.close()
    return _answer(output, child.pid or 0, child.exitcode or 0)


def main() -> int:
    hb_dsp_env_init()
    if os.environ.get("FORKING_IMAGE") and os.fork() == 0:
        if os.environ["FORKING_IMAGE"] == "raise":
            raise ValueError("the child fell")
        hb_dsp_start()
    hb_dsp_register_fn(0x1000, _forks(os.fork, lambda: 0))
    hb_dsp_register_fn(0x1001, _forks(_LIBC.fork, lambda: 0))
    hb_dsp_register_fn(0x1002, _forks(os.fork, _fall))
    hb_dsp_register_fn(0x1003, _forks(_LIBC.fork, _fall))
    hb_dsp_register_fn(0x1004, _forks(os.fork, _leave))
    hb_dsp_register_fn(0x1005, terminate)
    hb_dsp_start()
    return -1
