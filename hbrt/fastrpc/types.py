"""Types and constants of the C headers ``remote.h`` and ``rpcmem.h``.

Source: qualcomm/fastrpc, remote.h and rpcmem.h, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

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

FASTRPC_ASYNC_NO_SYNC: Final = 0
FASTRPC_ASYNC_CALLBACK: Final = 1
FASTRPC_ASYNC_POLL: Final = 2

FASTRPC_THREAD_PARAMS: Final = 1
DSPRPC_CONTROL_UNSIGNED_MODULE: Final = 2
FASTRPC_REMOTE_PROCESS_KILL: Final = 6
FASTRPC_SESSION_CLOSE: Final = 7
FASTRPC_REMOTE_PROCESS_EXCEPTION: Final = 9
FASTRPC_REGISTER_STATUS_NOTIFICATIONS: Final = 11
FASTRPC_PD_INITMEM_SIZE: Final = 12

DSPRPC_CONTROL_LATENCY: Final = 1
DSPRPC_GET_DSP_INFO: Final = 2
DSPRPC_CONTROL_WAKELOCK: Final = 3

FASTRPC_USER_PD_UP: Final = 0
FASTRPC_USER_PD_EXIT: Final = 1
FASTRPC_USER_PD_FORCE_KILL: Final = 2
FASTRPC_USER_PD_EXCEPTION: Final = 3
FASTRPC_DSP_SSR: Final = 4

fastrpc_async_callback: Any = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int)
fastrpc_notif_fn: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int)


class fastrpc_async_descriptor(ctypes.Structure):
    """How the end of an asynchronous invocation is told, and its job.

    Emulator: the order of the fields.
    """

    type: int
    jobid: int
    fn: Any
    context: int | None
    _fields_ = (
        ("type", ctypes.c_int32),
        ("jobid", ctypes.c_uint64),
        ("fn", fastrpc_async_callback),
        ("context", ctypes.c_void_p),
    )


class remote_rpc_thread_params(ctypes.Structure):
    """Of the threads of a domain: priority, 1 (the highest) to 255; bytes of the stack."""

    domain: int
    prio: int
    stack_size: int
    _fields_ = (("domain", ctypes.c_int), ("prio", ctypes.c_int), ("stack_size", ctypes.c_int))


class remote_rpc_control_unsigned_module(ctypes.Structure):
    """Whether skeletons that nobody signed may be loaded."""

    domain: int
    enable: int
    _fields_ = (("domain", ctypes.c_int), ("enable", ctypes.c_int))


class remote_rpc_domain(ctypes.Structure):
    """A domain to act on, for the requests that say no more. Emulator: one structure for all of them."""

    domain: int
    _fields_ = (("domain", ctypes.c_int),)


class remote_rpc_pd_initmem_size(ctypes.Structure):
    """Memory of a process domain at its start."""

    domain: int
    pd_initmem_size: int
    _fields_ = (("domain", ctypes.c_int), ("pd_initmem_size", ctypes.c_uint32))


class remote_rpc_notif_register(ctypes.Structure):
    """Who is told of the states of a domain: ``notifier_fn(context, domain, session, status)``."""

    context: int | None
    domain: int
    notifier_fn: Any
    _fields_ = (("context", ctypes.c_void_p), ("domain", ctypes.c_int), ("notifier_fn", fastrpc_notif_fn))


class remote_rpc_control_latency(ctypes.Structure):
    """How a program waits: 0 as ever, 1 to 3 with so many microseconds of latency."""

    enable: int
    latency: int
    _fields_ = (("enable", ctypes.c_uint32), ("latency", ctypes.c_uint32))


class remote_dsp_capability(ctypes.Structure):
    """A question about a domain, and its answer."""

    domain: int
    attribute_ID: int
    capability: int
    _fields_ = (("domain", ctypes.c_uint32), ("attribute_ID", ctypes.c_uint32), ("capability", ctypes.c_uint32))
