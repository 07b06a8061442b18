"""Memory of a process that has other boards run some commands: a new block has an address that is free on all."""

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
    """As ``Blocks``; a block that finds no such address is one of this board alone, and a routed task cannot use it."""

    def __init__(self, link: Link, tasks: Tasks, routed: Routed, *, is_strict: bool = False) -> None:
        super().__init__(link, tasks, is_strict=is_strict)
        self._routed = routed

    def all(self) -> list[Block]:
        """Every block of this process."""
        return list(self._blocks.values())

    def flush(self, phy_addr: int, size_bytes: int, flag: int) -> None:
        """As ``Blocks.flush``; for tasks under way on another board, it moves bytes there or from there."""
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
        """As ``Blocks.alloc``."""
        if at is None:
            for address in self._routed.addresses(size_bytes, call_site(MAX_SITE), is_cached=is_cached):
                try:
                    return super().alloc(size_bytes, is_cached=is_cached, is_zeroed=is_zeroed, use=use, at=address)
                except RequestRefusedError:
                    self._routed.discard_block(address)
        return super().alloc(size_bytes, is_cached=is_cached, is_zeroed=is_zeroed, use=use, at=at)
