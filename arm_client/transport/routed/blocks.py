"""Memory of a process that runs some commands on other boards: new blocks get addresses free on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arm_client.cabi.call_site import call_site
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.memory.blocks import Blocks
from hbrt.protocol.control import MAX_SITE
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from arm_client.transport.routed.carrier import Routed
    from hbrt.attach.link import Link
    from hbrt.attach.tasks import Tasks


class RoutedBlocks(Blocks):
    """Like ``Blocks``; a block without such an address exists only on this board, and routed tasks cannot use it."""

    def __init__(self, link: Link, tasks: Tasks, routed: Routed, *, is_strict: bool = False) -> None:
        super().__init__(link, tasks, is_strict=is_strict)
        self._routed = routed

    def all(self) -> list[Block]:
        """Return every block of this process."""
        return list(self._blocks.values())

    def flush(self, phy_addr: int, size_bytes: int, flag: int) -> None:
        """Like ``Blocks.flush``; for tasks pending on another board, it also moves bytes to or from it."""
        block = self.holding(phy_addr)
        boards = [] if block is None else self._routed.busy_boards()
        if block is not None and flag == HB_SYS_MEM_CACHE_INVALIDATE:
            for there in boards:
                there.fetch(block.phy_addr, block.size_bytes)
        super().flush(phy_addr, size_bytes, flag)
        if block is not None and flag == HB_SYS_MEM_CACHE_CLEAN:
            for there in boards:
                there.send(block.phy_addr)

    def alloc(
        self,
        size_bytes: int,
        *,
        is_cached: bool = False,
        is_zeroed: bool = False,
        use: str = "",
        at: int | None = None,
    ) -> Block:
        """See ``Blocks.alloc``."""
        if at is None:
            for address in self._routed.addresses(size_bytes, call_site(MAX_SITE), is_cached=is_cached):
                try:
                    return super().alloc(size_bytes, is_cached=is_cached, is_zeroed=is_zeroed, use=use, at=address)
                except RequestRefusedError:
                    self._routed.discard_block(address)
        return super().alloc(size_bytes, is_cached=is_cached, is_zeroed=is_zeroed, use=use, at=at)
