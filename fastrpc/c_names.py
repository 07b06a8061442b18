"""FastRPC's calls as libhbrt.so hands them over: native/arm/calls.h has their prototypes."""

from __future__ import annotations

import ctypes
from typing import Any

from arm_client.cabi.last_error import note
from fastrpc import calls, memory_calls
from fastrpc.runtime import runtime
from hbrt.fastrpc import scalars
from hbrt.fastrpc.aee import AeeError
from hbrt.fastrpc.types import RPCMEM_DEFAULT_FLAGS, RPCMEM_HEAP_ID_SYSTEM, remote_arg, remote_handle64

remote_handle64_close = calls.remote_handle64_close


def remote_handle64_open(name: bytes | None, ph: Any) -> int:
    """As remote_handle64_open; ``ph`` is a pointer or None."""
    made = remote_handle64()
    code = calls.remote_handle64_open(name if ph is not None else None, made)
    if not code:
        ph[0] = made.value
    return code


def remote_handle64_invoke(handle: int, word: int, pra: Any) -> int:
    """As remote_handle64_invoke; ``pra`` is a pointer or None."""
    count = scalars.split(word).total
    given = (remote_arg * count).from_address(ctypes.addressof(pra.contents)) if pra is not None else None
    return calls.remote_handle64_invoke(handle, word, given)


def hbrt_fastrpc_finish(handle: int, task: int) -> int:
    """What is left of an invocation that the library has sent, and that has not succeeded."""
    try:
        here = runtime()
        here.finish(task, here.opened(handle))
    except AeeError as error:
        return note(error.code, error.sentence)
    return 0


def hbrt_rpcmem_alloc(size: int) -> int:
    """As rpcmem_alloc."""
    return memory_calls.rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, size)


def hbrt_rpcmem_free(address: int) -> int:
    """As rpcmem_free."""
    memory_calls.rpcmem_free(address)
    return 0


hbrt_rpcmem_to_fd = memory_calls.rpcmem_to_fd
hbrt_register_buf = memory_calls.remote_register_buf


def hbrt_fastrpc_mmap(domain: int, fd: int, offset: int, length: int, flags: int) -> int:
    """As fastrpc_mmap."""
    return memory_calls.fastrpc_mmap(domain, fd, 0, offset, length, flags)


def hbrt_fastrpc_munmap(domain: int, fd: int, length: int) -> int:
    """As fastrpc_munmap."""
    return memory_calls.fastrpc_munmap(domain, fd, 0, length)
