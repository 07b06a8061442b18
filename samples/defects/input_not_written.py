"""The second half of an input block is never written; the op reads all of it."""

from calls import ECHO, blocks, call, free

NAMED = "unwritten-read"


def wrong() -> None:
    copy(4096)


def corrected() -> None:
    copy(8192)


def copy(written: int) -> None:
    """Copy 8192 bytes, of which only this many were written."""
    src, dst = blocks(8192, 8192)
    src.view()[:written] = bytes([1]) * written
    call(ECHO, src, dst)
    free(src, dst)
