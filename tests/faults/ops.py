"""Ops of the campaign's image."""

from __future__ import annotations

import time

GATED, SPIN, TOUCH, LIMITED = range(0x1000, 0x1004)
LIMIT_US = 1_000_000  # of LIMITED, which is SPIN with a budget


def gated(input: memoryview, output: memoryview, tm: object) -> int:
    """Say in byte 0 that it runs, continue when byte 1 is set, then count in byte 2: a second run would show."""
    input[0] = 1
    while not input[1]:
        time.sleep(0.0005)
    input[2] += 1
    return 0


def spin(input: memoryview, output: memoryview, tm: object) -> int:
    """As ``gated``, without ever sleeping: an op that can be interrupted between two bytecodes."""
    input[0] = 1
    while not input[1]:
        pass
    input[2] += 1
    return 0


def touch(input: memoryview, output: memoryview, tm: object) -> int:
    """Count in the first byte of both blocks, as far as there are any."""
    for view in (input, output):
        if len(view):
            view[0] = (view[0] + 1) & 0xFF
    return 0
