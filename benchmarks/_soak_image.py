"""Ops of the soak: quick ones, and some that fail, hang or end their core."""

from __future__ import annotations

import os
import time

from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

ECHO, SLOW, FAIL, DIE, HANG = range(0x1000, 0x1005)
HANG_LIMIT_US = 60_000


def echo(input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG001 - an op's signature, as below
    """Copy the input."""
    output[: len(input)] = input
    return 0


def slow(input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG001
    """Take a few milliseconds."""
    time.sleep(0.003)
    return 0


def fail(input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG001
    """Raise."""
    raise ValueError("this op always fails")


def die(input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG001
    """End the core."""
    os._exit(9)


def hang(input: memoryview, output: memoryview, tm: object) -> int:  # noqa: ARG001
    """Never end."""
    while True:
        pass


def main() -> int:
    """Register them and serve."""
    hb_dsp_env_init()
    for cmd, op in ((ECHO, echo), (SLOW, slow), (FAIL, fail), (DIE, die)):
        hb_dsp_register_fn(cmd, op)
    hb_dsp_register_fn(HANG, hang, HANG_LIMIT_US)
    hb_dsp_start()
    return -1
