"""Types and constants of the C headers ``remote.h`` and ``rpcmem.h``.

Source: qualcomm/fastrpc, remote.h and rpcmem.h, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
from typing import Final

remote_handle64 = ctypes.c_uint64


class remote_buf(ctypes.Structure):
    """A buffer: its address and its bytes."""

    pv: int | None
    nLen: int
    _fields_ = (("pv", ctypes.c_void_p), ("nLen", ctypes.c_size_t))


class remote_dma_handle(ctypes.Structure):
    """A part of shared memory: its file descriptor, and where it begins."""

    fd: int
    offset: int
    _fields_ = (("fd", ctypes.c_int32), ("offset", ctypes.c_uint32))


class remote_arg(ctypes.Union):
    """An argument of an invocation: a buffer, or a handle."""

    buf: remote_buf
    h: int
    h64: int
    dma: remote_dma_handle
    _fields_ = (("buf", remote_buf), ("h", ctypes.c_uint32), ("h64", ctypes.c_uint64), ("dma", remote_dma_handle))


RPCMEM_HEAP_ID_SYSTEM: Final = 25
RPCMEM_DEFAULT_FLAGS: Final = 1
RPCMEM_TRY_MAP_STATIC: Final = 0x0400_0000

FASTRPC_MAP_STATIC: Final = 0
FASTRPC_MAP_FD: Final = 2
FASTRPC_MAP_FD_DELAYED: Final = 3
FASTRPC_MAP_FD_NOMAP: Final = 16
