"""Types and constants of the C headers ``remote.h`` and ``rpcmem.h``.

native/include/fastrpc has the same; tests/fastrpc/wire/test_headers.py holds them equal.

Source: qualcomm/fastrpc, remote.h, rpcmem.h and dspqueue.h, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from hbrt.structures import CStructure, CUnion, int32_t, structure, uint32_t, uint64_t, void_p

remote_handle = ctypes.c_uint32
remote_handle64 = ctypes.c_uint64


@structure
class remote_buf(CStructure):
    """A buffer: its address and its bytes."""

    pv: void_p
    nLen: uint64_t


@structure
class remote_dma_handle(CStructure):
    """A part of shared memory: its file descriptor, and where it begins."""

    fd: int32_t
    offset: uint32_t


@structure
class remote_arg(CUnion):
    """An argument of an invocation: a buffer, or a handle."""

    buf: remote_buf
    h: uint32_t
    h64: uint64_t
    dma: remote_dma_handle


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
AsyncCallback: TypeAlias = Annotated[Any, fastrpc_async_callback]
NotifFn: TypeAlias = Annotated[Any, fastrpc_notif_fn]


@structure
class fastrpc_async_callback_t(CStructure):
    """What is called at the end of an invocation: ``fn(jobid, context, result)``."""

    fn: AsyncCallback
    context: void_p


@structure
class fastrpc_async_descriptor(CStructure):
    """How the end of an asynchronous invocation is told, and its job; ``fn`` and ``context`` are those of ``cb``."""

    _anonymous_ = ("cb",)
    type: int32_t
    jobid: uint64_t
    cb: fastrpc_async_callback_t
    if TYPE_CHECKING:  # the fields of cb
        fn: Any
        context: int | None


@structure
class remote_rpc_thread_params(CStructure):
    """Of the threads of a domain: priority, 1 (the highest) to 255; bytes of the stack."""

    domain: int32_t
    prio: int32_t
    stack_size: int32_t


@structure
class remote_rpc_control_unsigned_module(CStructure):
    """Whether skeletons that nobody signed may be loaded."""

    domain: int32_t
    enable: int32_t


@structure
class remote_rpc_domain(CStructure):
    """A domain to act on, for the requests that say no more. Emulator: the name; C has one for each of them."""

    domain: int32_t


@structure
class remote_rpc_relative_thread_priority(CStructure):
    """How far the priority of a domain's threads is from the default one, 192; below 0 is a higher priority."""

    domain: int32_t
    relative_thread_priority: int32_t


@structure
class remote_rpc_control_pd_dump(CStructure):
    """Whether a domain that crashes leaves a dump."""

    domain: int32_t
    enable: int32_t


@structure
class remote_process_type(CStructure):
    """A question about a domain, and its answer: PROCESS_TYPE_SIGNED or PROCESS_TYPE_UNSIGNED."""

    domain: int32_t
    process_type: int32_t


@structure
class remote_rpc_set_max_thread(CStructure):
    """Threads of an unsigned process domain, 128 to 256."""

    domain: int32_t
    max_num_threads: uint32_t


@structure
class remote_rpc_reserve_new_session(CStructure):
    """A session of one's own on a domain: its name in; its number, and its effective domain, out."""

    domain_name: void_p
    domain_name_len: uint32_t
    session_name: void_p
    session_name_len: uint32_t
    effective_domain_id: uint32_t
    session_id: uint32_t


@structure
class remote_rpc_effective_domain_id(CStructure):
    """Domain and session in; the effective domain out."""

    domain_name: void_p
    domain_name_len: uint32_t
    session_id: uint32_t
    effective_domain_id: uint32_t


@structure
class remote_rpc_get_uri(CStructure):
    """Domain, session and an interface's URI in; the URI to open out, in ``uri`` of ``uri_len`` bytes."""

    domain_name: void_p
    domain_name_len: uint32_t
    session_id: uint32_t
    module_uri: void_p
    module_uri_len: uint32_t
    uri: void_p
    uri_len: uint32_t


@structure
class fastrpc_context_create(CStructure):
    """Effective domains in; a number for all of them out."""

    effec_domain_ids: void_p
    num_domain_ids: uint32_t
    flags: uint64_t
    ctx: uint64_t


@structure
class fastrpc_context_destroy(CStructure):
    """The number of fastrpc_context_create."""

    ctx: uint64_t
    flags: uint64_t


@structure
class remote_rpc_pd_initmem_size(CStructure):
    """Memory of a process domain at its start."""

    domain: int32_t
    pd_initmem_size: uint32_t


@structure
class remote_rpc_notif_register(CStructure):
    """What is called at each state of a domain: ``notifier_fn(context, domain, session, status)``."""

    context: void_p
    domain: int32_t
    notifier_fn: NotifFn


@structure
class remote_rpc_control_latency(CStructure):
    """How a program waits: 0 as ever, 1 to 3 with so many microseconds of latency."""

    enable: uint32_t
    latency: uint32_t


@structure
class remote_dsp_capability(CStructure):
    """A question about a domain, and its answer."""

    domain: uint32_t
    attribute_ID: uint32_t
    capability: uint32_t


@structure
class remote_rpc_control_wakelock(CStructure):
    """Whether calls keep the CPU awake."""

    enable: uint32_t


@structure
class remote_rpc_get_domain(CStructure):
    """Out: the effective domain of a handle."""

    domain: int32_t


@structure
class remote_control_custom_path(CStructure):
    """A path of a key: in, or out into ``value`` of ``value_size`` bytes."""

    value_size: int32_t
    path: void_p
    value: void_p


@structure
class dspqueue_buffer(CStructure):
    """A buffer that a packet names; ``ptr`` is its address on the side that reads, 0 where it has none."""

    fd: uint32_t
    size: uint32_t
    offset: uint32_t
    flags: uint32_t
    ptr: void_p
