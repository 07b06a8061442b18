"""Memory of a board on another machine, for calls: like ``Blocks``, but a flush moves bytes over the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arm_client.memory.blocks import Blocks
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from arm_client.transport.remote_link import RemoteLink
    from hbrt.attach.tasks import Tasks


class RemoteBlocks(Blocks):
    """Like ``Blocks``, on another machine's board: a flush moves bytes, even of uncached memory."""

    def __init__(self, link: RemoteLink, tasks: Tasks, *, is_strict: bool = False) -> None:
        super().__init__(link, tasks, is_strict=is_strict)
        self._remote = link

    def isolate(self) -> None:
        """Like ``Blocks.isolate``: this process's copy of the memory contains no other process's blocks."""

    def flush(self, phy_addr: int, size_bytes: int, flag: int) -> None:
        """Send this process's writes and wait until the board has them (CLEAN), or fetch its changes (INVALIDATE).

        Raises:
            RequestRefusedError: as ``Blocks.flush``; HB_DSP_RELAY_LOST or HB_DSP_BOARD_LOST if the connection is gone.
        """
        if flag == HB_SYS_MEM_CACHE_INVALIDATE and (block := self.holding(phy_addr)) is not None:
            self._remote.pull(block.phy_addr, block.size_bytes)
        super().flush(phy_addr, size_bytes, flag)
        if flag == HB_SYS_MEM_CACHE_CLEAN:
            self._remote.push(phy_addr)
