"""``rpcmem_*``, ``remote_register_buf``, ``fastrpc_mmap``: shared memory in the vendor's names. No call raises."""

from __future__ import annotations

from typing import Any

from fastrpc.arguments import place, returns_code, returns_value
from fastrpc.runtime import runtime
from fastrpc.wire import uri
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.types import (
    FASTRPC_MAP_FD,
    FASTRPC_MAP_FD_DELAYED,
    FASTRPC_MAP_FD_NOMAP,
    FASTRPC_MAP_STATIC,
    REMOTE_MAP_MEM_STATIC,
    REMOTE_MODE_PARALLEL,
    REMOTE_MODE_SERIAL,
)

_FLAGS = {*map(int, (FASTRPC_MAP_STATIC, FASTRPC_MAP_FD, FASTRPC_MAP_FD_DELAYED, FASTRPC_MAP_FD_NOMAP))}


def rpcmem_init() -> None:
    """Initialize rpcmem; has no effect here."""


def rpcmem_deinit() -> None:
    """Shut down rpcmem; allocated memory stays until it is freed."""


@returns_value(0)
def rpcmem_alloc(heapid: int, flags: int, size: int) -> int:
    """Allocate and register shared memory.

    Args:
        heapid: RPCMEM_HEAP_ID_SYSTEM; ignored, as in the vendor's library for Linux.
        flags: RPCMEM_DEFAULT_FLAGS; ignored likewise.
        size: Bytes, 1..2^31-1.

    Returns:
        Its address, page-aligned; 0 on failure; ``last_error()`` says why.

    Source: qualcomm/fastrpc, rpcmem.h, https://github.com/qualcomm/fastrpc
    """
    del heapid, flags
    return runtime().memory.alloc(size).start


def rpcmem_alloc2(heapid: int, flags: int, size: int) -> int:
    """Like rpcmem_alloc. Emulator: the sizes are the same."""
    return rpcmem_alloc(heapid, flags, size)


@returns_value(None)
def rpcmem_free(po: int) -> None:
    """Free memory from rpcmem_alloc; any other address is ignored."""
    runtime().memory.free(po)


@returns_value(-1)
def rpcmem_to_fd(po: int) -> int:
    """The file descriptor of rpcmem memory, by its first address; -1 for any other address.

    It can be passed to mmap, from offset 0, and to other libraries. The memory keeps it: do not close it.

    Emulator: memory of a board on another machine has no descriptor: -1 is returned.
    """
    return runtime().memory.fd_of(po)


@returns_code
def remote_register_buf(buf: int, size: int, fd: int) -> None:
    """Register memory that this process has mapped from a descriptor, so that arguments in it are not copied.

    Args:
        buf: Its address.
        size: Bytes.
        fd: The descriptor, mapped from its first byte; -1 undoes the registration.

    Returns:
        0; AEE_EINVALIDFD: no memory of that size that can be shared; AEE_EALREADY: it overlaps; AEE_ENOSUCHMAP.

    Emulator: the vendor's call returns nothing, and ends the program where this one returns AEE_ENOSUCHMAP.
    """
    memory = runtime().memory
    if fd == -1:
        memory.deregister(buf, size)
    else:
        memory.register(buf, size, fd)


def remote_register_buf_attr(buf: int, size: int, fd: int, attr: int) -> int:
    """Like remote_register_buf; ``attr`` is ignored."""
    del attr
    return remote_register_buf(buf, size, fd)


remote_register_buf_attr2 = remote_register_buf_attr


@returns_value(-1)
def remote_register_fd(fd: int, size: int) -> int:
    """Register a descriptor's memory that this process has not mapped.

    Returns:
        An address that represents it in calls and that the program cannot read or write; -1 on failure, and
        ``last_error()`` says why. remote_register_buf with -1 undoes it.
    """
    return runtime().memory.register_unseen(fd, size)


remote_register_fd2 = remote_register_fd


@returns_code
def remote_mem_map(domain: int, fd: int, flags: int, virt_addr: int, size: int, remote_virt_addr: Any) -> None:
    """Like fastrpc_mmap.

    Args:
        domain: Effective domain.
        fd: Descriptor of shared memory.
        flags: REMOTE_MAP_MEM_STATIC.
        virt_addr: Its address in this process; 0 if it has none.
        size: Bytes.
        remote_virt_addr: Out: a ctypes integer: the physical address, which remote_mem_unmap takes.
    """
    _check(domain)
    target = place("remote_virt_addr", remote_virt_addr)
    if flags != REMOTE_MAP_MEM_STATIC:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid flags {flags}: must be 0.")
    target.value = runtime().memory.map_fd(fd, size, virt_addr)


@returns_code
def remote_mem_unmap(domain: int, remote_virt_addr: int, size: int) -> None:
    """Undo remote_mem_map, with the same size.

    Returns:
        0; AEE_ENOSUCHMAP: no such mapping.
    """
    _check(domain)
    runtime().memory.unmap(remote_virt_addr, size)


@returns_code
def fastrpc_mmap(domain: int, fd: int, addr: int, offset: int, length: int, flags: int) -> None:
    """Map a descriptor's memory on a domain.

    Args:
        domain: Effective domain.
        fd: Descriptor of shared memory.
        addr: Its address in this process, by which packets of a dspqueue refer to it; 0 if it has none.
        offset: 0.
        length: Bytes.
        flags: FASTRPC_MAP_*.

    Returns:
        0; AEE_EALREADY: it is mapped; AEE_EBADPARM: another offset or flag; AEE_EINVALIDFD; AEE_EINVALIDDOMAIN.
    """
    _check(domain)
    if offset or flags not in _FLAGS:
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"Invalid offset {offset} or flags {flags}: must be 0, and one of {sorted(_FLAGS)}.",
        )
    runtime().memory.map_fd(fd, length, addr)


@returns_code
def fastrpc_munmap(domain: int, fd: int, addr: int, length: int) -> None:
    """Undo fastrpc_mmap, with the same length, or with 0 to find the mapping by the descriptor only.

    Returns:
        0; AEE_ENOSUCHMAP: no such mapping.
    """
    del addr
    _check(domain)
    runtime().memory.unmap_fd(fd, length or None)


@returns_code
def remote_register_dma_handle(fd: int, len: int) -> None:
    """Announce a descriptor's memory to the DSP side, so that a call can pass it; generated stubs call this.

    Args:
        fd: Descriptor of shared memory.
        len: Its size; 0 undoes it.

    Returns:
        0; AEE_EINVALIDFD, AEE_EBADPARM.
    """
    runtime().memory.pass_fd(fd, len)


def remote_register_dma_handle_attr(fd: int, len: int, attr: int) -> int:
    """Like remote_register_dma_handle; ``attr`` is ignored."""
    del attr
    return remote_register_dma_handle(fd, len)


def remote_mmap64(fd: int, flags: int, vaddrin: int, size: int, vaddrout: Any) -> int:
    """Like remote_mem_map, on cdsp; ``flags`` are ignored."""
    del flags
    return remote_mem_map(uri.DEFAULT_DOMAIN, fd, REMOTE_MAP_MEM_STATIC, vaddrin, size, vaddrout)


def remote_munmap64(vaddrout: int, size: int) -> int:
    """Undo remote_mmap64, with the same size."""
    return remote_mem_unmap(uri.DEFAULT_DOMAIN, vaddrout, size)


@returns_code
def remote_mmap(fd: int, flags: int, vaddrin: int, size: int, vaddrout: Any) -> None:
    """Like remote_mmap64, with a 32-bit address.

    Returns:
        0; AEE_ENOMEMORY: the address has more bits; otherwise as remote_mem_map.
    """
    del flags
    _check(uri.DEFAULT_DOMAIN)
    target = place("vaddrout", vaddrout)
    memory = runtime().memory
    phy_addr = memory.map_fd(fd, size, vaddrin)
    if phy_addr >= 1 << 32:
        memory.unmap(phy_addr, size)
        raise AeeError(
            Aee.AEE_ENOMEMORY,
            f"The address {phy_addr:#x} does not fit into {vaddrout!r}; use remote_mmap64.",
        )
    target.value = phy_addr


def remote_munmap(vaddrout: int, size: int) -> int:
    """Undo remote_mmap, with the same size."""
    return remote_munmap64(vaddrout, size)


@returns_code
def remote_set_mode(mode: int) -> None:
    """Accept REMOTE_MODE_PARALLEL and REMOTE_MODE_SERIAL; calls run concurrently in both.

    Returns:
        0; AEE_EBADPARM: another mode.
    """
    if mode not in {REMOTE_MODE_PARALLEL, REMOTE_MODE_SERIAL}:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid mode {mode}: must be 0 or 1.")


def _check(domain: int) -> None:
    runtime().domains.core_mask(*uri.split_domain(domain))
