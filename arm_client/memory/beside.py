"""Catches pointers that run past cached memory with its own image: an access next to the image faults with a message.

Uncached memory does not need this: an address next to it is in the DDR, which isolation closes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from arm_client.cabi.call_site import call_site
from arm_client.memory import fault_sentence
from arm_client.memory.block import MARGIN_BYTES, Block
from hbrt.findings.record import Place

if TYPE_CHECKING:
    from hbrt.attach.link import Link


class Beside:
    """The guard areas next to the images of one attachment.

    Args:
        link: The attachment.
        cached: Returns the blocks with an image; a method, held without keeping its object alive.
    """

    def __init__(self, link: Link, cached: Callable[[], list[Block]]) -> None:
        self._link = link
        self._cached = weakref.WeakMethod(cached)
        _all.add(self)
        fault_sentence.install(_stray_access)

    def tell(self, address: int) -> str:
        """Return the message for a fault at an address; empty if no image is next to it."""
        cached = self._cached()
        for block in cached() if cached is not None else ():
            at, end = address - block.address, len(block.base) + len(block.behind)
            if -MARGIN_BYTES <= at < 0 or block.size_bytes <= at < end + MARGIN_BYTES:
                return self._note(block, at)
        return ""

    def _note(self, block: Block, at: int) -> str:
        site = call_site()
        which = f"{-at} before" if at < 0 else f"{at - block.size_bytes + 1} past the end of"
        return fault_sentence.note(
            self._link,
            "stray-access",
            f"{site}: a stray access touches byte {which} the cached block {block.phy_addr:#x}+{block.size_bytes:#x}, "
            f"allocated at {block.allocated_at}. Check how the program computes the offset.",
            Place("touched", site, phy_addr=block.phy_addr + at, size_bytes=1),
            Place("allocated", block.allocated_at, block=block.phy_addr, block_bytes=block.size_bytes),
        )


_all: weakref.WeakSet[Beside] = weakref.WeakSet()


def _stray_access(address: int) -> str:
    return next((found for one in list(_all) if (found := one.tell(address))), "")
