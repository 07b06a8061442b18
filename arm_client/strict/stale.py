"""CPU reads of cached memory that a task wrote and that was not invalidated, under the check ``coherence``.

When the program has seen a task end, the pages of a block's image whose device bytes have changed are closed. The first
access to such a page opens it. The access is a mistake if it is a read, by code outside the runtime, in a cache line
with a stale byte: it reads the contents from before the task. Stale bytes that are never read are not a mistake.
"""

from __future__ import annotations

import mmap
import sys
from typing import TYPE_CHECKING, NamedTuple

from arm_client.cabi import call_site
from arm_client.strict.report import Mistake
from hbrt.ddr.faults import no_fault, on_fault
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.ddr.private_pages import mprotect
from hbrt.findings.record import Place
from hbrt.findings.text import counted
from hbrt.mailbox.dirty_ranges import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    import numpy as np
    from numpy.typing import NDArray

    from arm_client.memory.block import Block
    from arm_client.memory.blocks import Blocks

_RUNTIME = {"arm_client", "hbrt"}
# Frames between the program's line and numpy: fault handlers and arrays.
_BETWEEN = (
    "arm_client/strict/stale.py",
    "arm_client/strict/late_views.py",
    "hbrt/ddr/faults.py",
    "arm_client/arrays.py",
)
_CLOSED, _OPEN = 0, mmap.PROT_READ | mmap.PROT_WRITE


class _Writer(NamedTuple):
    """The task that last wrote a block: its command, and the line that submitted it."""

    block: Block
    cmd: int
    site: str


class StaleReads:
    """Closes stale pages of this process's blocks, and detects reads there.

    Args:
        blocks: Its memory.
        find: Receives a mistake.
    """

    def __init__(self, blocks: Blocks, find: Callable[[Mistake], None]) -> None:
        self._blocks = blocks
        self._find = find
        self._closed: dict[int, _Writer] = {}  # by page address

    def close_stale(self, block: Block, cmd: int, site: str) -> None:
        """Close the pages of a block that a task has made stale.

        Args:
            block: The block; one without an image has no stale bytes.
            cmd: The task's command.
            site: The line that submitted it.
        """
        if block.image is None or block.is_stale_reported:
            return
        import numpy as np

        on_fault(self._on_fault)  # every time, since a library such as a test runner may have installed its own handler
        for page in np.unique(np.flatnonzero(_stale_bytes(block, 0, block.size_bytes)) // PAGE_BYTES):
            address = block.address + int(page) * PAGE_BYTES
            if not mprotect(address, PAGE_BYTES, _CLOSED):
                self._closed[address] = _Writer(block, cmd, site)

    def note_flush(self, block: Block) -> None:
        """Recompute which bytes of a block are stale after a flush of all or part of it."""
        writers = [writer for writer in self._closed.values() if writer.block is block]
        self._open(block)
        if writers:
            self.close_stale(*writers[0])

    def close(self) -> None:
        """Open all pages, and stop handling faults."""
        for writer in list(self._closed.values()):
            self._open(writer.block)
        no_fault(self._on_fault)

    def _open(self, block: Block) -> None:
        for address, writer in list(self._closed.items()):
            if writer.block is block:
                del self._closed[address]
                mprotect(address, PAGE_BYTES, _OPEN)

    def _on_fault(self, address: int, is_write: bool | None) -> bool:  # noqa: FBT001 - as hbrt.ddr.faults calls it
        writer = self._closed.pop(address & -PAGE_BYTES, None)
        if writer is None or self._blocks.holding(writer.block.phy_addr) is not writer.block:
            return False
        mprotect(address & -PAGE_BYTES, PAGE_BYTES, _OPEN)
        block, at = writer.block, address - writer.block.address
        site = program_line(sys._getframe(1))  # noqa: SLF001 - the frame of the access
        if is_write or not site or block.is_stale_reported:
            return True
        start = at & -LINE_BYTES
        count = int(_stale_bytes(block, start, min(start + LINE_BYTES, block.size_bytes)).sum())
        if count:
            block.is_stale_reported = True
            self._find(_stale_read(writer, at, count, site))
        return True


def program_line(frame: FrameType | None) -> str:
    """Return ``file:line`` of the innermost code below a fault handler; empty if it is the runtime's own."""
    while frame is not None and frame.f_code.co_filename.endswith(_BETWEEN):
        frame = frame.f_back
    if frame is None:  # no Python code below the fault
        return call_site.of_c()
    if frame.f_globals.get("__name__", "").partition(".")[0] in _RUNTIME:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _stale_bytes(block: Block, start: int, end: int) -> NDArray[np.bool_]:
    """Return which bytes of a range the device, but not the CPU, has changed since the last flush."""
    import numpy as np

    views = (block.base, block.flushed, block.image)
    device, flushed, image = (np.frombuffer(view[start:end], np.uint8) for view in views if view is not None)
    stale: NDArray[np.bool_] = (device != flushed) & (image == flushed)
    return stale


def _stale_read(writer: _Writer, at: int, count: int, site: str) -> Mistake:
    block = writer.block
    return Mistake(
        "stale-read",
        f"{site} reads byte {at} of the cached block {block.phy_addr:#x}+{block.size_bytes:#x}, in whose cache line a "
        f"task of command {writer.cmd:#x}, submitted at {writer.site}, has changed {counted(count, 'byte')}: "
        f"the CPU sees the old contents of memory. Call hbSysFlushMem with HB_SYS_MEM_CACHE_INVALIDATE "
        f"after the wait, before the "
        "read.",
        (
            Place("read", site, phy_addr=block.phy_addr + at, size_bytes=1, block=block.phy_addr),
            Place("submitted", writer.site, cmd=writer.cmd, block=block.phy_addr, block_bytes=block.size_bytes),
        ),
    )
