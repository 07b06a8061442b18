"""Memory that the DSP may use without a copy: memory from rpcmem, and memory that a program registered.

A buffer is shared if it is entirely inside one registered range. One that begins inside and runs past the end is
rejected; all others are copied.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from arm_client.memory.block import Block
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.message import DESCRIPTOR, TABLE_BYTES, TABLE_ROWS
from hbrt.borders.interrupts import let_out
from hbrt.ddr.private_pages import mprotect
from hbrt.errors import StatusError
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.session.session import Session


class Region(NamedTuple):
    """A registered range.

    Attributes:
        start: Its address in this process.
        size_bytes: Its size.
        phy_addr: Its physical address.
        block: The board's block.
        is_ours: Whether rpcmem allocated it.
    """

    start: int
    size_bytes: int
    phy_addr: int
    block: Block
    is_ours: bool

    @property
    def end(self) -> int:
        """The address after the end."""
        return self.start + self.size_bytes


class Mapped(NamedTuple):
    """A descriptor's memory mapped on the board.

    Attributes:
        size_bytes: Its size.
        address: Address in this process; 0 if not mapped.
        block: The board's block.
    """

    size_bytes: int
    address: int
    block: Block


class FastrpcMemory:
    """The registered ranges of one attachment.

    Args:
        session: The process's attachment to a board.
    """

    def __init__(self, session: Session) -> None:
        self._blocks = session.blocks
        self._can_import = session.link.can_import
        # Called when messages that were sent before may have wrong addresses.
        self.on_changed: Callable[[], None] = lambda: None
        self._regions: dict[int, Region] = {}
        self._starts: list[int] = []  # of these, sorted; replaced, not changed, while other threads search in it
        self._fds: dict[int, int] = {}  # memory from ``alloc``, by address
        self._mapped: dict[int, Mapped] = {}  # from fastrpc_mmap, by descriptor
        self._guards: dict[int, mmap.mmap] = {}  # from remote_register_fd, by address
        self._table: Block | None = None  # the mapped descriptors, for the DSP side
        self._rows: dict[int, int] = {}  # of the table, by descriptor
        self._lock = threading.RLock()  # of these two: held during no request, because finalizers take it

    # -- ranges

    def place(self, address: int, size_bytes: int) -> int:
        """The physical address of a buffer, 0 if it must be copied.

        Raises:
            AeeError: AEE_EBADPARM: it runs past the end of the registered range where it begins.
        """
        starts = self._starts
        at = bisect_right(starts, address)
        region = self._regions.get(starts[at - 1]) if at else None
        if region is None or address >= region.end:
            return 0
        offset = address - region.start
        if offset + size_bytes > region.size_bytes:
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"The buffer of {size_bytes} bytes at {address:#x} begins in registered memory of {region.size_bytes} "
                f"bytes at {region.start:#x} and runs past its end.",
            )
        return region.phy_addr + offset

    def at(self, address: int) -> Region | None:
        """The range that begins there."""
        return self._regions.get(address)

    def _add(self, region: Region) -> None:
        starts = self._starts
        at = bisect_right(starts, region.start)
        near = [self._regions.get(one) for one in starts[max(at - 1, 0) : at + 1]]
        if any(one is not None and one.start < region.end and region.start < one.end for one in near):
            raise AeeError(
                Aee.AEE_EALREADY,
                f"The {region.size_bytes} bytes at {region.start:#x} overlap memory that is already registered.",
            )
        self._regions[region.start] = region
        self._sort()
        self.on_changed()  # what was copied is shared from now on

    def _remove(self, region: Region) -> None:
        self._regions.pop(region.start, None)
        self._sort()
        self.on_changed()

    def _sort(self) -> None:
        """Sort the starts anew; again if another thread has added or removed a range meanwhile."""
        while (starts := sorted(self._regions)) != self._starts:
            self._starts = starts

    # -- rpcmem

    def alloc(self, size_bytes: int) -> Region:
        """Allocate cached memory and register it.

        Raises:
            AeeError: AEE_ENOMEMORY: out of memory; AEE_EBADPARM: the size is below 1.
        """
        if not 0 < size_bytes < 1 << 31:
            raise AeeError(
                Aee.AEE_EBADPARM, f"rpcmem allocates 1 to {(1 << 31) - 1} bytes; {size_bytes} were requested."
            )
        fd = -1
        try:
            if self._can_import:
                fd = _new_file(size_bytes)
                block = self._blocks.import_(fd, size_bytes, 0)
            else:  # a board on another machine
                block = self._blocks.alloc(size_bytes, is_cached=True, is_zeroed=True)
            region = Region(block.address, size_bytes, block.phy_addr, block, is_ours=True)
            self._add(region)
        except (OSError, StatusError) as error:
            let_out(error)
            if fd >= 0:
                os.close(fd)
            raise AeeError(Aee.AEE_ENOMEMORY, getattr(error, "text", str(error))) from None
        if fd >= 0:
            self._fds[region.start] = fd
        return region

    def free(self, address: int) -> bool:
        """Free memory from ``alloc``; returns False for any other address."""
        region = self._regions.get(address)
        if region is None or not region.is_ours:
            return False
        self._remove(region)
        self._close_fd(address)
        self._release(region.block)
        return True

    def fd_of(self, address: int) -> int:
        """The file descriptor of memory from ``alloc``; -1 for any other address.

        Raises:
            AeeError: AEE_EUNSUPPORTED: the board is on another machine.
        """
        region = self._regions.get(address)
        if region is None or not region.is_ours:
            return -1
        if address not in self._fds:
            raise AeeError(Aee.AEE_EUNSUPPORTED, "Memory of a board on another machine has no file descriptor here.")
        return self._fds[address]

    def _close_fd(self, address: int) -> None:
        fd = self._fds.pop(address, -1)
        if fd >= 0:
            self._discard(fd)
            os.close(fd)

    def free_later(self, address: int) -> None:
        """Free memory from ``alloc`` at the next request: for finalizers, which may run in the middle of one."""
        region = self._regions.get(address)
        if region is not None and region.is_ours:
            self._remove(region)
            self._close_fd(address)
            self._blocks.free_later(region.block)

    # -- registered by the program

    def register(self, address: int, size_bytes: int, fd: int) -> None:
        """Register memory that this process has mapped from a descriptor, starting at the descriptor's first byte.

        Raises:
            AeeError: AEE_EINVALIDFD: it has no sharable memory of that size; AEE_EALREADY, AEE_EBADPARM.
        """
        known = self._regions.get(address)
        if known is not None and known.size_bytes == size_bytes:
            return
        if not address or size_bytes <= 0:
            raise AeeError(Aee.AEE_EBADPARM, f"{size_bytes} bytes at {address:#x} cannot be registered.")
        block = self._import(fd, size_bytes)
        try:
            self._add(Region(address, size_bytes, block.phy_addr, block, is_ours=False))
        except BaseException:
            self._release(block)
            raise

    def deregister(self, address: int, size_bytes: int) -> None:
        """Undo ``register``.

        Raises:
            AeeError: AEE_ENOSUCHMAP: no range of that size begins there; the vendor's library ends the program.
        """
        region = self._regions.get(address)
        if region is None or region.size_bytes != size_bytes:
            has = "nothing is" if region is None else f"{region.size_bytes} bytes are"
            raise AeeError(
                Aee.AEE_ENOSUCHMAP,
                f"{size_bytes} bytes at {address:#x} cannot be deregistered: {has} registered there. The vendor's "
                "library ends the program in this case.",
            )
        if not region.is_ours:
            self._remove(region)
            self._release(region.block)
            self._guards.pop(address, None)

    def register_unseen(self, fd: int, size_bytes: int) -> int:
        """Register a descriptor's memory at an inaccessible address; raises the same errors as ``register``."""
        try:
            guard = mmap.mmap(-1, size_bytes)
        except (OSError, ValueError, OverflowError) as error:
            let_out(error)
            raise AeeError(Aee.AEE_EBADPARM, f"{size_bytes} bytes cannot be registered: {error}.") from None
        address = ctypes.addressof(ctypes.c_char.from_buffer(guard))
        mprotect(address, size_bytes, 0)
        self.register(address, size_bytes, fd)
        self._guards[address] = guard
        return address

    # -- fastrpc_mmap

    def map_fd(self, fd: int, size_bytes: int, address: int = 0) -> int:
        """Map a descriptor's memory on the board, and return its physical address.

        Raises:
            AeeError: AEE_EALREADY: already mapped; AEE_EINVALIDFD as ``register``.
        """
        if fd in self._mapped:
            raise AeeError(Aee.AEE_EALREADY, f"File descriptor {fd} is already mapped; fastrpc_munmap it first.")
        ours = self._ours(fd)
        if ours is not None and not 0 < size_bytes <= ours.size_bytes:
            raise AeeError(
                Aee.AEE_EBADPARM, f"The memory of descriptor {fd} has {ours.size_bytes} bytes, not {size_bytes}."
            )
        block = self._import(fd, size_bytes) if ours is None else ours.block
        self._note(fd, block.phy_addr, size_bytes)
        self._mapped[fd] = Mapped(size_bytes, address or (ours.start if ours else 0), block)
        return block.phy_addr

    def unmap_fd(self, fd: int, size_bytes: int | None) -> None:
        """Undo ``map_fd``; None matches any size.

        Raises:
            AeeError: AEE_ENOSUCHMAP: it is not mapped with that size.
        """
        mapped = self._mapped.get(fd)
        if mapped is None:
            raise AeeError(Aee.AEE_ENOSUCHMAP, f"File descriptor {fd} is not mapped.")
        if size_bytes not in {None, mapped.size_bytes}:
            raise AeeError(
                Aee.AEE_ENOSUCHMAP,
                f"File descriptor {fd} is mapped with {mapped.size_bytes} bytes; {size_bytes} cannot be unmapped.",
            )
        self._discard(fd)
        if self._ours(fd) is None:
            self._release(mapped.block)

    def unmap(self, phy_addr: int, size_bytes: int) -> None:
        """Like ``unmap_fd``, by physical address."""
        fd = next((fd for fd, one in [*self._mapped.items()] if one.block.phy_addr == phy_addr), None)
        if fd is None:
            raise AeeError(Aee.AEE_ENOSUCHMAP, f"Nothing is mapped at {phy_addr:#x}.")
        self.unmap_fd(fd, size_bytes)

    def pass_fd(self, fd: int, size_bytes: int) -> None:
        """Map the memory of a descriptor passed in a call, unless it is mapped; 0 bytes remove the mapping.

        Raises:
            AeeError: as ``map_fd``.
        """
        if not size_bytes:
            if fd in self._mapped:
                self.unmap_fd(fd, None)
        elif fd not in self._mapped:
            self.map_fd(fd, size_bytes)

    @property
    def table_addr(self) -> int:
        """The physical address of the descriptor table; 0 before there are any descriptors."""
        return self._table.phy_addr if self._table is not None else 0

    def _note(self, fd: int, phy_addr: int, size_bytes: int) -> None:
        """Announce a descriptor to the DSP side."""
        made: Block | None = None
        row: int | None = None
        while True:
            with self._lock:
                if self._table is None:
                    self._table, made = made, None
                if self._table is not None:
                    row = next((at for at in range(TABLE_ROWS) if at not in self._rows.values()), None)
                    if row is not None:
                        self._rows[fd] = row
                        _write(self._table, row, fd, 1, phy_addr, size_bytes)
                    break
            try:
                made = self._blocks.alloc(TABLE_BYTES, is_cached=False, is_zeroed=True)
            except StatusError as error:
                raise AeeError(Aee.AEE_ENOMEMORY, error.text) from None
        if made is not None:
            self._release(made)  # another thread was first
        if row is None:
            raise AeeError(
                Aee.AEE_ENOMEMORY, f"{TABLE_ROWS} descriptors are already mapped; fastrpc_munmap some first."
            )
        self.on_changed()  # earlier messages may lack the table

    def _discard(self, fd: int) -> None:
        """Undo ``_note``."""
        if self._mapped.pop(fd, None) is None:
            return
        unused = None
        with self._lock:
            row = self._rows.pop(fd, None)
            if self._table is not None and row is not None:
                _write(self._table, row, 0, 0, 0, 0)
            if not self._rows:
                unused, self._table = self._table, None
        if unused is not None:
            self.on_changed()
            self._release(unused)

    def mapped(self, fd: int) -> Mapped | None:
        """A mapped descriptor."""
        return self._mapped.get(fd)

    def _ours(self, fd: int) -> Region | None:
        """The rpcmem memory of a descriptor."""
        return next((self._regions.get(start) for start, one in [*self._fds.items()] if one == fd), None)

    def _import(self, fd: int, size_bytes: int) -> Block:
        try:
            return self._blocks.import_(fd, size_bytes, 0)
        except StatusError as error:
            code = Aee.AEE_ENOMEMORY if error.status == Status.HB_SYS_OUT_OF_MEMORY else Aee.AEE_EINVALIDFD
            raise AeeError(code, error.text) from None

    def _release(self, block: Block) -> None:
        with contextlib.suppress(StatusError):  # of a board that is gone, and the block with it
            self._blocks.release(block)


def _write(table: Block, row: int, *numbers: int) -> None:
    """Fill a row of the table of descriptors."""
    raw = DESCRIPTOR.pack(*numbers)
    ctypes.memmove(table.address + row * DESCRIPTOR.size, raw, len(raw))


def _new_file(size_bytes: int) -> int:
    """A descriptor of new zeroed memory, which cannot be truncated under the board.

    Raises:
        OSError: out of descriptors or memory.
    """
    fd = os.memfd_create("rpcmem", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd
