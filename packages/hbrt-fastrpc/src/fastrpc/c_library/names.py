"""FastRPC's calls as libhbrt.so hands them over: native/arm/calls.h has their prototypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from arm_client.cabi.last_error import note
from fastrpc import asynchronous, calls, control, memory_calls
from fastrpc.c_library import queues
from fastrpc.c_library.prepared import preparing
from fastrpc.runtime import runtime
from fastrpc.wire import scalars
from fastrpc.wire.aee import Aee, AeeError, name_of
from fastrpc.wire.types import (
    RPCMEM_DEFAULT_FLAGS,
    RPCMEM_HEAP_ID_SYSTEM,
    fastrpc_async_descriptor,
    remote_arg,
    remote_handle,
    remote_handle64,
)


def remote_handle64_open(name: bytes | None, ph: Any) -> int:
    """As remote_handle64_open; ``ph`` is a pointer or None."""
    made = remote_handle64()
    code = calls.remote_handle64_open(name if ph is not None else None, made)
    if not code:
        ph[0] = made.value
    return code


def remote_handle64_invoke(handle: int, word: int, pra: Any) -> int:
    """As remote_handle64_invoke; ``pra`` is a pointer or None."""
    return calls.remote_handle64_invoke(handle, word, _given(word, pra))


def hbrt_fastrpc_finish(handle: int, task: int) -> int:
    """What is left of an invocation that the library has sent, and that has not succeeded."""
    try:
        here = runtime()
        here.finish(task, here.opened(handle))
    except AeeError as error:
        return note(error.code, error.sentence)
    return 0


def remote_handle_open(name: bytes | None, ph: Any) -> int:
    """As remote_handle_open; ``ph`` is a pointer or None."""
    made = remote_handle()
    code = calls.remote_handle_open(name if ph is not None else None, made)
    if not code:
        ph[0] = made.value
    return code


def remote_handle64_invoke_async(handle: int, desc: int, word: int, pra: Any) -> int:
    """As remote_handle64_invoke_async."""
    if not desc:
        return note(Aee.AEE_EBADPARM, "The descriptor is NULL.")
    return asynchronous.remote_handle64_invoke_async(
        handle, fastrpc_async_descriptor.from_address(desc), word, _given(word, pra)
    )


def fastrpc_async_get_status(job: int, timeout_us: int, result: int) -> int:
    """As fastrpc_async_get_status."""
    place = ctypes.c_int.from_address(result) if result else ctypes.c_int()
    return asynchronous.fastrpc_async_get_status(job, timeout_us, place)


def rpcmem_alloc(size: int) -> int:
    """As rpcmem_alloc2."""
    return memory_calls.rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, size)


def rpcmem_free(address: int) -> int:
    """As rpcmem_free."""
    memory_calls.rpcmem_free(address)
    return 0


def remote_mem_map(domain: int, fd: int, flags: int, virt_addr: int, size: int, remote_virt_addr: int) -> int:
    """As remote_mem_map."""
    place = ctypes.c_uint64.from_address(remote_virt_addr) if remote_virt_addr else None
    return memory_calls.remote_mem_map(domain, fd, flags, virt_addr, size, place)


def _given(word: int, pra: Any) -> Any:
    """The arguments behind a pointer."""
    count = scalars.split(word).total
    return (remote_arg * count).from_address(ctypes.addressof(pra.contents)) if pra is not None else None


CALLS: dict[str, Callable[..., int]] = {
    "remote_handle64_open": remote_handle64_open,
    "remote_handle64_close": calls.remote_handle64_close,
    "remote_handle64_invoke": remote_handle64_invoke,
    "hbrt_fastrpc_finish": hbrt_fastrpc_finish,
    "hbrt_fastrpc_open32": remote_handle_open,
    "hbrt_fastrpc_invoke_async": remote_handle64_invoke_async,
    "hbrt_fastrpc_async_status": fastrpc_async_get_status,
    "hbrt_fastrpc_release_job": asynchronous.fastrpc_release_async_job,
    "hbrt_fastrpc_session_control": control.remote_session_control,
    "hbrt_fastrpc_handle_control": control.remote_handle_control,
    "hbrt_fastrpc_handle64_control": control.remote_handle64_control,
    "hbrt_rpcmem_alloc": rpcmem_alloc,
    "hbrt_rpcmem_free": rpcmem_free,
    "hbrt_rpcmem_to_fd": memory_calls.rpcmem_to_fd,
    "hbrt_register_buf": memory_calls.remote_register_buf,
    "hbrt_fastrpc_register_fd": memory_calls.remote_register_fd,
    "hbrt_fastrpc_mmap": memory_calls.fastrpc_mmap,
    "hbrt_fastrpc_munmap": memory_calls.fastrpc_munmap,
    "hbrt_fastrpc_mem_map": remote_mem_map,
    "hbrt_fastrpc_mem_unmap": memory_calls.remote_mem_unmap,
    "hbrt_fastrpc_dma_handle": memory_calls.remote_register_dma_handle,
    "hbrt_fastrpc_queue_create": queues.dspqueue_create,
    "hbrt_fastrpc_queue_close": queues.dspqueue_close,
    "hbrt_fastrpc_queue_export": queues.dspqueue_export,
    "hbrt_fastrpc_queue_write": queues.dspqueue_write,
    "hbrt_fastrpc_queue_read": queues.dspqueue_read,
    "hbrt_fastrpc_queue_peek": queues.dspqueue_peek,
    "hbrt_fastrpc_queue_wake": queues.dspqueue_write_early_wakeup_noblock,
    "hbrt_fastrpc_queue_stat": queues.dspqueue_get_stat,
}
"""What the library hands over, by its name in native/arm/calls.h; the functions have the names that a program calls."""
STRUCTURES = {"remote_arg": remote_arg}
_NOT_CODES = frozenset(
    {"hbrt_rpcmem_alloc", "hbrt_rpcmem_to_fd", "hbrt_fastrpc_register_fd"}
)  # they return an address, a descriptor
_PENDING = frozenset({Aee.AEE_EBUSY, Aee.AEE_EWOULDBLOCK, Aee.AEE_EEXPIRED})  # answers of who asks again


def prototype(name: str) -> None:
    """As ``Guest.prototype`` of arm_client/c_library/host.py."""
    del name


def function(name: str, host: Any) -> Callable[..., int]:
    """As ``Guest.function`` of arm_client/c_library/host.py."""
    call = CALLS[name]
    return preparing(host.prepared, host.prepared_place, call) if call is remote_handle64_invoke else call


def refusal(name: str, status: int) -> tuple[str, str] | None:
    """As ``Guest.refusal`` of arm_client/c_library/host.py."""
    return None if name in _NOT_CODES or status in _PENDING else (CALLS[name].__name__, name_of(status))
