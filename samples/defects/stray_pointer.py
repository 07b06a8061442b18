"""A wrongly computed pointer points to memory that does not belong to the program."""

import ctypes

from calls import blocks, free

SAYS = "a stray access touches"


def wrong() -> None:
    write(1 << 28)


def corrected() -> None:
    write(16)


def write(offset: int) -> None:
    """Write a byte at this distance from the start of a block."""
    (row,) = blocks(4096)
    ctypes.memset(row.virAddr + offset, 1, 1)
    free(row)
