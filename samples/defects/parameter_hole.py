"""A parameter structure has a hole: `int` before an address. An op compiled as packed reads another address."""

import ctypes

from calls import ECHO, blocks, call, free

NAMED = "hole"


class RowParam(ctypes.Structure):
    """The size before the address."""

    _fields_ = (("row_bytes", ctypes.c_int32), ("input", ctypes.c_uint64))


class AlignedParam(ctypes.Structure):
    """The address before the size, without unused bytes."""

    _fields_ = (("input", ctypes.c_uint64), ("row_bytes", ctypes.c_int32), ("reserved", ctypes.c_int32))


def submit(kind: type[RowParam | AlignedParam]) -> None:
    """Fill the structure in the input block, and call."""
    src, dst, row = blocks(ctypes.sizeof(kind), ctypes.sizeof(kind), 64)
    param = kind.from_buffer(src.view())
    param.row_bytes, param.input = row.memSize, row.phyAddr
    call(ECHO, src, dst)
    free(src, dst, row)


def wrong() -> None:
    submit(RowParam)


def corrected() -> None:
    submit(AlignedParam)
