"""An error path frees a block, and so does the end of the function."""

from calls import blocks

import arm_client as hb

NAMED = "double-free"


def wrong() -> None:
    (row,) = blocks(4096)
    hb.hbSysFreeMem(row)  # the error path
    hb.hbSysFreeMem(row)


def corrected() -> None:
    (row,) = blocks(4096)
    hb.hbSysFreeMem(row)
