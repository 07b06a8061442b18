"""A structure has the virtual address of a block where the op needs the physical one."""

import ctypes

from calls import blocks, call, free

import arm_client as hb

NAMED = "virtual-address"


def wrong() -> None:
    softmax(is_physical=False)


def corrected() -> None:
    softmax(is_physical=True)


def softmax(*, is_physical: bool) -> None:
    """The softmax of four values."""
    params, values, result = blocks(ctypes.sizeof(hb.hbDSPSoftmaxParam), 16, 16)
    values.array("float32")[:] = 1
    param = hb.hbDSPSoftmaxParam.from_buffer(params.view())
    param.data_size = 16
    param.input = values.phyAddr if is_physical else values.virAddr
    call(0x400, params, result)
    del param
    free(params, values, result)
