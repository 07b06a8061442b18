"""Classifies the use of an invalid range, for findings on both sides."""

from __future__ import annotations

from hbrt.ddr.file import Ddr
from hbrt.findings.record import Place

_LOWEST_VIRTUAL = 1 << 32


def misuse(ddr: Ddr, phy_addr: int, size_bytes: int) -> tuple[str, tuple[Place, ...]]:
    """Return the finding's kind, one of hbrt.findings.record.KINDS, and the block that contains or contained the range.

    Args:
        ddr: The board's memory, which refuses the range.
        phy_addr: Its start.
        size_bytes: Its size.
    """
    freed = ddr.freed_block(phy_addr)
    if freed is not None:
        where = Place(
            "freed",
            freed.freed_at or None,
            client=freed.client_id,
            phy_addr=phy_addr,
            size_bytes=size_bytes,
            block=freed.phy_addr,
            block_bytes=freed.size_bytes,
        )
        return "use-after-free", (where,)
    block = ddr.block_at(phy_addr)
    if block is None:
        is_virtual = phy_addr >= max(ddr.layout.phy_end, _LOWEST_VIRTUAL)
        return ("virtual-address" if is_virtual else "out-of-block"), ()
    where = Place(
        "block",
        client=block.owner,
        phy_addr=phy_addr,
        size_bytes=size_bytes,
        block=block.phy_addr,
        block_bytes=block.size_bytes,
    )
    return "out-of-block", (where,)
