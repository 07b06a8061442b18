"""A PING has blocks, which no op reads: the command was forgotten."""

from calls import ECHO, blocks, call, free

import arm_client as hb

SAYS = "reads and writes nothing, regardless of the blocks"


def wrong() -> None:
    echo_by(hb.HB_DSP_RPC_CMD_PING)


def corrected() -> None:
    echo_by(ECHO)


def echo_by(cmd: int) -> None:
    """A call with an input and an output."""
    src, dst = blocks(4096, 4096)
    src.view()[:] = bytes(4096)
    call(cmd, src, dst)
    free(src, dst)
