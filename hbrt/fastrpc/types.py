"""Types and constants of the C headers ``remote.h`` and ``rpcmem.h``.

native/include/fastrpc has the same; tests/hbrt/fastrpc/test_headers.py holds them equal.

Source: qualcomm/fastrpc, remote.h, rpcmem.h and dspqueue.h, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

remote_handle = ctypes.c_uint32
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


RPCMEM_HEAP_ID_SECURE: Final = 9
RPCMEM_HEAP_ID_CONTIG: Final = 22
RPCMEM_HEAP_ID_SYSTEM: Final = 25
RPCMEM_DEFAULT_FLAGS: Final = 1
RPCMEM_TRY_MAP_STATIC: Final = 0x0400_0000

FASTRPC_MAP_STATIC: Final = 0
FASTRPC_MAP_FD: Final = 2
FASTRPC_MAP_FD_DELAYED: Final = 3
FASTRPC_MAP_FD_NOMAP: Final = 16

REMOTE_MAP_MEM_STATIC: Final = 0

FASTRPC_ASYNC_NO_SYNC: Final = 0
FASTRPC_ASYNC_CALLBACK: Final = 1
FASTRPC_ASYNC_POLL: Final = 2

FASTRPC_THREAD_PARAMS: Final = 1
DSPRPC_CONTROL_UNSIGNED_MODULE: Final = 2
FASTRPC_RELATIVE_THREAD_PRIORITY: Final = 4
FASTRPC_REMOTE_PROCESS_KILL: Final = 6
FASTRPC_SESSION_CLOSE: Final = 7
FASTRPC_CONTROL_PD_DUMP: Final = 8
FASTRPC_REMOTE_PROCESS_EXCEPTION: Final = 9
FASTRPC_REMOTE_PROCESS_TYPE: Final = 10
FASTRPC_REGISTER_STATUS_NOTIFICATIONS: Final = 11
FASTRPC_PD_INITMEM_SIZE: Final = 12
FASTRPC_RESERVE_NEW_SESSION: Final = 13
FASTRPC_GET_EFFECTIVE_DOMAIN_ID: Final = 14
FASTRPC_GET_URI: Final = 15
FASTRPC_MAX_THREAD_PARAM: Final = 16
FASTRPC_CONTEXT_CREATE: Final = 17
FASTRPC_CONTEXT_DESTROY: Final = 18

DSPRPC_CONTROL_LATENCY: Final = 1
DSPRPC_GET_DSP_INFO: Final = 2
DSPRPC_CONTROL_WAKELOCK: Final = 3
DSPRPC_GET_DOMAIN: Final = 4
DSPRPC_SET_PATH: Final = 5
DSPRPC_GET_PATH: Final = 6

PROCESS_TYPE_SIGNED: Final = 0
PROCESS_TYPE_UNSIGNED: Final = 1

FASTRPC_USER_PD_UP: Final = 0
FASTRPC_USER_PD_EXIT: Final = 1
FASTRPC_USER_PD_FORCE_KILL: Final = 2
FASTRPC_USER_PD_EXCEPTION: Final = 3
FASTRPC_DSP_SSR: Final = 4

fastrpc_async_callback: Any = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int)
fastrpc_notif_fn: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int)


class fastrpc_async_callback_t(ctypes.Structure):
    """Who is called at the end of an invocation: ``fn(jobid, context, result)``."""

    fn: Any
    context: int | None
    _fields_ = (("fn", fastrpc_async_callback), ("context", ctypes.c_void_p))


class fastrpc_async_descriptor(ctypes.Structure):
    """How the end of an asynchronous invocation is told, and its job; ``fn`` and ``context`` are those of ``cb``."""

    type: int
    jobid: int
    cb: fastrpc_async_callback_t
    fn: Any
    context: int | None
    _anonymous_ = ("cb",)
    _fields_ = (("type", ctypes.c_int32), ("jobid", ctypes.c_uint64), ("cb", fastrpc_async_callback_t))


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
    """A domain to act on, for the requests that say no more. Emulator: the name; C has one for each of them."""

    domain: int
    _fields_ = (("domain", ctypes.c_int),)


class remote_rpc_relative_thread_priority(ctypes.Structure):
    """How far the priority of a domain's threads is from the default one, 192; below 0 is a higher priority."""

    domain: int
    relative_thread_priority: int
    _fields_ = (("domain", ctypes.c_int), ("relative_thread_priority", ctypes.c_int))


class remote_rpc_control_pd_dump(ctypes.Structure):
    """Whether a domain that crashes leaves a dump."""

    domain: int
    enable: int
    _fields_ = (("domain", ctypes.c_int), ("enable", ctypes.c_int))


class remote_process_type(ctypes.Structure):
    """A question about a domain, and its answer: PROCESS_TYPE_SIGNED or PROCESS_TYPE_UNSIGNED."""

    domain: int
    process_type: int
    _fields_ = (("domain", ctypes.c_int), ("process_type", ctypes.c_int))


class remote_rpc_set_max_thread(ctypes.Structure):
    """Threads of an unsigned process domain, 128 to 256."""

    domain: int
    max_num_threads: int
    _fields_ = (("domain", ctypes.c_int), ("max_num_threads", ctypes.c_uint))


class remote_rpc_reserve_new_session(ctypes.Structure):
    """A session of one's own on a domain: its name in; its number, and its effective domain, out."""

    domain_name: int | None
    domain_name_len: int
    session_name: int | None
    session_name_len: int
    effective_domain_id: int
    session_id: int
    _fields_ = (
        ("domain_name", ctypes.c_void_p),
        ("domain_name_len", ctypes.c_uint32),
        ("session_name", ctypes.c_void_p),
        ("session_name_len", ctypes.c_uint32),
        ("effective_domain_id", ctypes.c_uint32),
        ("session_id", ctypes.c_uint32),
    )


class remote_rpc_effective_domain_id(ctypes.Structure):
    """Domain and session in; the effective domain out."""

    domain_name: int | None
    domain_name_len: int
    session_id: int
    effective_domain_id: int
    _fields_ = (
        ("domain_name", ctypes.c_void_p),
        ("domain_name_len", ctypes.c_uint32),
        ("session_id", ctypes.c_uint32),
        ("effective_domain_id", ctypes.c_uint32),
    )


class remote_rpc_get_uri(ctypes.Structure):
    """Domain, session and an interface's URI in; the URI to open out, in ``uri`` of ``uri_len`` bytes."""

    domain_name: int | None
    domain_name_len: int
    session_id: int
    module_uri: int | None
    module_uri_len: int
    uri: int | None
    uri_len: int
    _fields_ = (
        ("domain_name", ctypes.c_void_p),
        ("domain_name_len", ctypes.c_uint32),
        ("session_id", ctypes.c_uint32),
        ("module_uri", ctypes.c_void_p),
        ("module_uri_len", ctypes.c_uint32),
        ("uri", ctypes.c_void_p),
        ("uri_len", ctypes.c_uint32),
    )


class fastrpc_context_create(ctypes.Structure):
    """Effective domains in; a number for all of them out."""

    effec_domain_ids: int | None
    num_domain_ids: int
    flags: int
    ctx: int
    _fields_ = (
        ("effec_domain_ids", ctypes.c_void_p),
        ("num_domain_ids", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("ctx", ctypes.c_uint64),
    )


class fastrpc_context_destroy(ctypes.Structure):
    """The number of fastrpc_context_create."""

    ctx: int
    flags: int
    _fields_ = (("ctx", ctypes.c_uint64), ("flags", ctypes.c_uint64))


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


class remote_rpc_control_wakelock(ctypes.Structure):
    """Whether calls keep the CPU awake."""

    enable: int
    _fields_ = (("enable", ctypes.c_uint32),)


class remote_rpc_get_domain(ctypes.Structure):
    """Out: the effective domain of a handle."""

    domain: int
    _fields_ = (("domain", ctypes.c_int),)


class remote_control_custom_path(ctypes.Structure):
    """A path of a key: in, or out into ``value`` of ``value_size`` bytes."""

    value_size: int
    path: int | None
    value: int | None
    _fields_ = (("value_size", ctypes.c_int32), ("path", ctypes.c_void_p), ("value", ctypes.c_void_p))


class dspqueue_buffer(ctypes.Structure):
    """A buffer that a packet names; ``ptr`` is its address on the side that reads, 0 where it has none."""

    fd: int
    size: int
    offset: int
    flags: int
    ptr: int | None
    _fields_ = (
        ("fd", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("offset", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("ptr", ctypes.c_void_p),
    )
