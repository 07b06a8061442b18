"""Board memory as rknn_tensor_mem: created, wrapped, synchronized, destroyed."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.types import rknn_mem_alloc_flags, rknn_mem_sync_mode, rknn_tensor_mem, rknn_tensor_mem_flags

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from arm_client.session.session import Session
    from hbrt.ddr.file import Ddr

_TO_DEVICE: Final = int(rknn_mem_sync_mode.RKNN_MEMORY_SYNC_TO_DEVICE)  # plain numbers, as in context.py
_FROM_DEVICE: Final = int(rknn_mem_sync_mode.RKNN_MEMORY_SYNC_FROM_DEVICE)
_MOST: Final = (1 << 32) - 1


class Held:
    """The block behind a rknn_tensor_mem; ``is_live`` until it is destroyed."""

    def __init__(self, block: Block, offset: int, size: int, way: rknn_tensor_mem_flags) -> None:
        self.block, self.offset, self.size, self.way = block, offset, size, way
        self.is_live = True
        self.address = 0  # where the program sees it
        self.fd = -1  # its own descriptor

    @property
    def phy_addr(self) -> int:
        """Physical address of its first byte."""
        return self.block.phy_addr + self.offset

    def device(self) -> memoryview:
        """The bytes as the NPU sees them."""
        return self.block.base[self.offset : self.offset + self.size]


class RknnMemory:
    """The memory of a process's contexts on one board, by the number in ``priv_data``."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._held: dict[int, Held] = {}
        self._seen: dict[tuple[int, int], memoryview] = {}
        self._next = 1

    def create(self, size: int, flags: int = 0) -> rknn_tensor_mem:
        """Allocate memory; cacheable unless the flags say otherwise.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID for an invalid size or flags. RequestRefusedError: an error of the board.
        """
        known = sum(rknn_mem_alloc_flags) | 0x20000
        if flags & ~known or flags & 3 == 3:
            raise invalid_parameter(
                f"Invalid allocation flags {flags:#x}: must be RKNN_FLAG_MEMORY_CACHEABLE or "
                "RKNN_FLAG_MEMORY_NON_CACHEABLE, optionally with RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM."
            )
        _check_size(size)
        is_cached = not flags & rknn_mem_alloc_flags.RKNN_FLAG_MEMORY_NON_CACHEABLE
        block = self.session.blocks.alloc(size, is_cached=is_cached)
        held = Held(block, 0, size, rknn_tensor_mem_flags.RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE)
        if self.session.link.can_import:  # with a board on another machine, the file is a copy
            held.fd = _opened_at(self.session.link.ddr, held.phy_addr)
        return self._filled(held, held.fd)

    def from_fd(self, fd: int, virt_addr: int, size: int, offset: int) -> rknn_tensor_mem:
        """Wrap memory behind a file descriptor, which remains the program's.

        Args:
            fd: From another library, or from memory of ``create``.
            virt_addr: Address in memory from ``create`` that has the descriptor ``fd``; ignored otherwise.
            size: Bytes.
            offset: Offset from the address, or, if the address is ignored, from where the descriptor begins.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: no such file, or the range is outside it.
        """
        _check_size(size)
        if offset < 0:
            raise invalid_parameter(f"Invalid offset {offset}: must be 0 or more.")
        try:
            is_boards = os.path.samestat(os.fstat(fd), os.fstat(self.session.link.ddr.fd))
        except (OSError, OverflowError) as error:
            raise invalid_parameter(f"Invalid file descriptor {fd}: {getattr(error, 'strerror', error)}.") from None
        if is_boards:
            return self._of_board(fd, virt_addr, size, offset)
        into_page = offset % PAGE_BYTES
        block = self.session.blocks.import_(fd, into_page + size, offset - into_page)
        return self._filled(Held(block, into_page, size, rknn_tensor_mem_flags.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD), fd)

    def _of_board(self, fd: int, virt_addr: int, size: int, offset: int) -> rknn_tensor_mem:
        """Part of memory from ``create``, given by its address, or else by its descriptor."""
        beside = ((held, virt_addr - held.address) for held in self._held.values())
        found = next(((held, at) for held, at in beside if 0 <= at < held.size), None)
        if found is None:
            phys = self.session.link.ddr.phy_of(os.lseek(fd, 0, os.SEEK_CUR) + offset)
        else:
            phys = found[0].phy_addr + found[1] + offset
            if found[1] + offset + size > found[0].size:
                raise invalid_parameter(
                    f"{size} bytes from offset {offset} exceed the {found[0].size - found[1]} bytes of memory from "
                    "virt_addr on."
                )
        return self._registered(phys, size, rknn_tensor_mem_flags.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD, fd)

    def from_phys(self, phys: int, size: int) -> rknn_tensor_mem:
        """Wrap memory at a physical address on the board: from another rknn_tensor_mem, process or API.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: it is not in a live block.
        """
        _check_size(size)
        return self._registered(phys, size, rknn_tensor_mem_flags.RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS, -1)

    def _registered(self, phys: int, size: int, way: rknn_tensor_mem_flags, fd: int) -> rknn_tensor_mem:
        try:
            block, offset = self.session.blocks.register(phys, size)
        except RequestRefusedError as error:
            raise invalid_parameter(f"Invalid physical address {phys:#x} of {size} bytes: {error.text}") from None
        return self._filled(Held(block, offset, size, way), fd)

    def by_fd(self, fd: int) -> Held | None:
        """The memory with this descriptor."""
        return next((held for held in self._held.values() if held.fd == fd), None)

    def at(self, phys: int, size: int) -> memoryview:
        """The bytes at a physical address, as a device sees them.

        Raises:
            RequestRefusedError: it is not in a live block.
        """
        if (phys, size) not in self._seen:  # once: it stays registered
            block, offset = self.session.blocks.register(phys, size)
            self._seen[phys, size] = block.base[offset : offset + size]
        return self._seen[phys, size]

    def destroy(self, mem: rknn_tensor_mem) -> None:
        """Free or unwrap memory; a context with a tensor there cannot run until it gets other memory.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: it is not valid, or was already destroyed.
        """
        held = self.of(mem)
        held.is_live = False
        del self._held[int(mem.priv_data or 0)]
        mem.backing = mem.virt_addr = mem.priv_data = None
        self._release(held)

    def of(self, mem: rknn_tensor_mem) -> Held:
        """The block behind memory.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: it is not valid, or was destroyed.
        """
        held = self._held.get(int(mem.priv_data or 0))
        if held is None:
            raise invalid_parameter(
                "The rknn_tensor_mem has no memory: it was destroyed, or no rknn_create_mem function filled it."
            )
        return held

    def sync(self, held: Held, mode: int) -> None:
        """Write back the CPU's cache, or invalidate it, or both.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: no such direction.
        """
        if mode not in {_TO_DEVICE, _FROM_DEVICE, _TO_DEVICE | _FROM_DEVICE}:
            raise invalid_parameter(
                f"Invalid mode {mode}: must be RKNN_MEMORY_SYNC_TO_DEVICE (1), RKNN_MEMORY_SYNC_FROM_DEVICE (2) or "
                "RKNN_MEMORY_SYNC_BIDIRECTIONAL (3)."
            )
        if mode & _TO_DEVICE:
            self.session.blocks.flush(held.phy_addr, held.size, HB_SYS_MEM_CACHE_CLEAN)
        if mode & _FROM_DEVICE:
            self.session.blocks.flush(held.phy_addr, held.size, HB_SYS_MEM_CACHE_INVALIDATE)

    def _filled(self, held: Held, fd: int) -> rknn_tensor_mem:
        view = held.block.view[held.offset : held.offset + held.size]
        mem = rknn_tensor_mem()
        mem.virt_addr = held.address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        mem.phys_addr, mem.fd, mem.size, mem.flags = held.phy_addr, fd, held.size, int(held.way)
        mem.priv_data, mem.backing = self._next, view
        self._held[self._next] = held
        self._next += 1
        return mem

    def _release(self, held: Held) -> None:
        with suppress(RequestRefusedError):  # the board is gone, and the memory with it
            if held.fd >= 0:
                os.close(held.fd)
                held.fd = -1
            if held.way is rknn_tensor_mem_flags.RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE:
                self.session.blocks.free(held.block.phy_addr)
            else:
                self.session.blocks.unregister(held.block.phy_addr)


def _opened_at(ddr: Ddr, phy_addr: int) -> int:
    """Open the board's DDR once more, positioned at a block, where a C program's mmap() begins; -1 if it cannot be."""
    try:
        fd = os.open(f"/proc/self/fd/{ddr.fd}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)  # the mark
    except OSError:  # out of descriptors
        return -1
    os.lseek(fd, ddr.offset_of(phy_addr), os.SEEK_SET)
    return fd


def _check_size(size: int) -> None:
    if not 0 < size <= _MOST:
        raise RknnError(RknnStatus.RKNN_ERR_PARAM_INVALID, f"Invalid size {size}: must be 1 to {_MOST} bytes.")
