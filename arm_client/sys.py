"""``hbSys*``: device memory, in the vendor's names, argument order and codes. No call raises; each returns a status."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from arm_client.cabi.arguments import bytes_of, deref, integer, short_repr
from arm_client.cabi.last_error import RequestRefusedError, returning_status
from arm_client.memory.unfilled import note_refusal
from arm_client.session.process import process
from hbrt.board.forked import mark, notice
from hbrt.borders.interrupts import let_out
from hbrt.status import Status, sys_status
from hbrt.types import hbSysMem

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from arm_client.session.session import Session


def _status_of(error: RequestRefusedError, _call: str) -> tuple[int, str]:
    return sys_status(error.status), error.text


def _unfilled(error: RequestRefusedError, call: str) -> tuple[int, str]:
    note_refusal(call, error.text, process.default.link if process.default is not None else None)
    return _status_of(error, call)


_returns_status = returning_status(RequestRefusedError, _status_of)
_fills_mem = returning_status(RequestRefusedError, _unfilled)


@_fills_mem
def hbSysAllocMem(mem: hbSysMem, size: int) -> None:
    """Allocate uncached device memory.

    Args:
        mem: Out: physical address, address in this process, size. Zeroed bytes, page-aligned.
        size: Bytes, 1..2^32-1.

    Returns:
        0; HB_SYS_INVALID_ARGUMENT, HB_SYS_OUT_OF_MEMORY, HB_SYS_NOT_RUNNING, HB_SYS_BOARD_LOST or HB_SYS_FORKED.

    Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3.5.1 hbSysAllocMem,
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    Emulator: the two arguments are accepted in either order, since the manual lists both.
    """
    _alloc(mem, size, is_cached=False)


@_fills_mem
def hbSysAllocCachedMem(mem: hbSysMem, size: int) -> None:
    """Allocate cached device memory; hbSysFlushMem moves the CPU's writes. Otherwise like hbSysAllocMem."""
    _alloc(mem, size, is_cached=True)


@_returns_status
def hbSysFlushMem(mem: hbSysMem, flag: int) -> None:
    """Clean (CPU to device) or invalidate (device to CPU) cached memory; does nothing for uncached memory.

    Args:
        mem: A block, or part of one with adjusted phyAddr, virAddr and memSize.
        flag: HB_SYS_MEM_CACHE_INVALIDATE before the CPU reads, HB_SYS_MEM_CACHE_CLEAN after it writes.

    Returns:
        0; HB_SYS_INVALID_ARGUMENT for an unknown flag, or memory that is not this process's.
    """
    target, way = _mem("hbSysFlushMem", mem), _number("hbSysFlushMem", "flag", flag)
    _existing().blocks.flush(target.phyAddr, target.memSize, way)


@_returns_status
def hbSysFreeMem(mem: hbSysMem) -> None:
    """Free a block. Its virAddr is left unchanged and points to memory that faults.

    Returns:
        0; HB_SYS_NOT_ALLOCATED if no live block of this process starts at phyAddr (for example, a double free).
    """
    target = _mem("hbSysFreeMem", mem)
    target.backing = None  # the structure itself does not count as a view whose bytes must be kept
    _existing().blocks.free(target.phyAddr)


@_returns_status
def hbSysWriteMem(dest: hbSysMem, src: Any, size: int) -> None:
    """Copy bytes into a block through the CPU's view, like memcpy: cached memory still needs a CLEAN.

    Args:
        dest: Block.
        src: bytes, bytearray, memoryview, numpy array, ctypes array, or an address.
        size: Bytes, at most memSize and the size of ``src``.

    Returns:
        0; HB_SYS_INVALID_ARGUMENT if a size does not fit or a pointer is null.
    """
    _copy(dest, src, size, is_write=True)


@_returns_status
def hbSysReadMem(dest: Any, src: hbSysMem, size: int) -> None:
    """Copy bytes out of a block through the CPU's view: cached memory needs an INVALIDATE first.

    Args:
        dest: bytearray, writable memoryview, numpy array, ctypes array, or an address.
        src: Block.
        size: Bytes, at most memSize and the size of ``dest``.

    Returns:
        0; HB_SYS_INVALID_ARGUMENT if a size does not fit or a pointer is null.
    """
    _copy(src, dest, size, is_write=False)


@_fills_mem
def hbSysRegisterMem(mem: hbSysMem) -> None:
    """Map memory by its physical address, such as another process's; the result is cached memory.

    Args:
        mem: In: phyAddr and memSize, inside one live block. Out: virAddr. Reference-counted.

    Returns:
        0; HB_SYS_REGISTER_MEM_FAILED if the range is not inside one live block.
    """
    target = _mem("hbSysRegisterMem", mem)
    blocks = attached().blocks
    block, offset = blocks.register(target.phyAddr, target.memSize)
    try:
        _fill(target, block, offset, target.memSize)
    except BaseException:
        blocks.unregister(block.phy_addr)
        raise


@_returns_status
def hbSysUnregisterMem(mem: hbSysMem) -> None:
    """Undo one hbSysRegisterMem.

    Returns:
        0; HB_SYS_INVALID_ARGUMENT if this process has not registered that memory.
    """
    target = _mem("hbSysUnregisterMem", mem)
    target.backing = None
    _existing().blocks.unregister(target.phyAddr)


@_returns_status
def hbrt_register_fd(mem: hbSysMem, fd: int, offset: int, size: int) -> None:
    """Map another library's memory, such as a camera buffer, into the board's address space.

    Nothing is copied: the program, the other library and the cores see the same memory. The result is cached memory;
    hbSysUnregisterMem undoes it. Registrations are reference-counted, and those of the same memory share one physical
    address. Another process registers it by that address (hbSysRegisterMem), or by its own descriptor.

    Args:
        mem: Out: physical address, address in this process, size.
        fd: A memfd, shared memory or a file, open for reading and writing; may be closed afterwards.
        offset: Start of the range in bytes, a multiple of 4096.
        size: Bytes, 1..2^32-1, within the file.

    Returns:
        0; HB_SYS_INVALID_ARGUMENT if the descriptor is not memory, or the range is outside it;
        HB_SYS_REGISTER_MEM_FAILED if it cannot be shared, or the board is on another machine; HB_SYS_OUT_OF_MEMORY if
        the board has no such range of addresses.

    Emulator: on the board, the camera library assigns physical addresses to its buffers; here a program does, with this
        call.
    """
    target = _mem("hbrt_register_fd", mem)
    fd, offset, size = (
        _number("hbrt_register_fd", what, given) for what, given in (("fd", fd), ("offset", offset), ("size", size))
    )
    blocks = attached().blocks
    block = blocks.import_(fd, size, offset)
    try:
        _fill(target, block, 0, size)
    except BaseException:
        blocks.unregister(block.phy_addr)
        raise


def as_mem(mem: object) -> hbSysMem | None:
    """Return the structure that a caller passed: itself, ``byref(mem)`` or a pointer; None for anything else."""
    return deref(mem, hbSysMem)


def attached() -> Session:
    """Like ``arm_client.session.session.attached``, whose module a program's first call loads.

    Raises:
        RequestRefusedError: HB_DSP_NOT_RUNNING with the reason, such as no file descriptor left to load it.
    """
    notice()
    try:
        with process.lock:  # a fork waits for this: a half-loaded module would stay so forever in the child
            from arm_client.session import session
    except (OSError, ImportError) as error:
        raise RequestRefusedError(Status.HB_DSP_NOT_RUNNING, f"Cannot load hbrt: {str(error).rstrip('.')}.") from None
    return session.attached()


def _alloc(mem: Any, size: Any, *, is_cached: bool) -> None:
    call = "hbSysAllocCachedMem" if is_cached else "hbSysAllocMem"
    if as_mem(mem) is None and as_mem(size) is not None:
        mem, size = size, mem
    target, size_bytes = _mem(call, mem), _number(call, "size", size)
    blocks = attached().blocks
    block = blocks.alloc(size_bytes, is_cached=is_cached)
    try:
        _fill(target, block, 0, size_bytes)
    except BaseException:
        blocks.free_later(block)
        raise


def _fill(mem: hbSysMem, block: Block, offset: int, size: int) -> None:
    view = block.view[offset : offset + size]
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    mem.phyAddr, mem.virAddr, mem.memSize = block.phy_addr + offset, address, size
    mem.backing = (address, view)


def _copy(mem: Any, other: Any, size: Any, *, is_write: bool) -> None:
    if not mark[0]:
        notice()  # first: a forked child's writes must not reach its parent's block
    call = "hbSysWriteMem" if is_write else "hbSysReadMem"
    target, size_bytes = _mem(call, mem), _number(call, "size", size)
    try:
        ours = target.view()
    except ValueError as error:
        raise _refusal(f"{call}: {error}") from None
    if not 0 <= size_bytes <= target.memSize:
        raise _refusal(f"{size_bytes} bytes do not fit the block at {target.phyAddr:#x}, which has {target.memSize}.")
    try:
        theirs = bytes_of(other, size_bytes)
    except Exception as error:  # noqa: BLE001 - whatever an object's own code raises
        let_out(error)
        raise _refusal(f"Cannot use the CPU buffer: {error}.") from None
    if len(theirs) < size_bytes:
        raise _refusal(f"The CPU buffer has {len(theirs)} bytes, fewer than {size_bytes}.")
    if not size_bytes:
        return
    if is_write:
        ours[:size_bytes] = theirs[:size_bytes]
    elif theirs.readonly:
        raise _refusal("The CPU buffer is read-only; pass a bytearray or an array.")
    else:
        theirs[:size_bytes] = ours[:size_bytes]


def _existing() -> Session:
    """Return the session that owns this process's memory; does not start a board only to find nothing on it."""
    found = process.default
    if found is None:
        raise RequestRefusedError(Status.HB_SYS_NOT_ALLOCATED, "This process has allocated no memory on any board.")
    return found


def _mem(call: str, given: object) -> hbSysMem:
    target = as_mem(given)
    if target is None:
        raise _refusal(f"The block passed to {call} is {short_repr(given)}; pass an hbSysMem.")
    return target


def _number(call: str, what: str, given: object) -> int:
    number = integer(given)
    if number is None:
        raise _refusal(f"The {what} of {call} is {short_repr(given)}; pass an integer.")
    return number


def _refusal(sentence: str) -> RequestRefusedError:
    return RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, sentence)
