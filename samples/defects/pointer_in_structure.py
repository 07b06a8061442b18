"""A parameter structure contains a C pointer: it has 8 bytes here and 4 on the DSP."""

import ctypes

from calls import ECHO, blocks, call, free

NAMED = "dsp-layout"


class Pointed(ctypes.Structure):
    """As a C header might declare it."""

    _fields_ = (("data", ctypes.c_void_p), ("count", ctypes.c_uint64))


class Addressed(ctypes.Structure):
    """The same size on both sides."""

    _fields_ = (("data", ctypes.c_uint64), ("count", ctypes.c_uint64))


def wrong() -> None:
    give(Pointed)


def corrected() -> None:
    give(Addressed)


def give(kind: type[ctypes.Structure]) -> None:
    """Pass a structure to an op that copies it."""
    data, block, dst = blocks(64, 16, 16)
    data.view()[:] = bytes(64)
    param = kind.from_address(block.virAddr)
    param.data, param.count = data.phyAddr, 64
    call(ECHO, block, dst)
    free(data, block, dst)
