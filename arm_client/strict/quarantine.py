"""Images of blocks that were freed, in strict mode: a late write through an old address is told, and hits nothing else.

Without a cache such a write lands in the DDR, which the board looks at. An image belongs to this process alone: were it
unmapped with its block, the program would end by SIGSEGV with no word.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import TYPE_CHECKING

from hbrt.ddr.file import can_remove_pages

if TYPE_CHECKING:
    from arm_client.memory.block import Block

MOST_IMAGES = 16
MOST_BYTES = 64 << 20  # of one image: each is looked through once


class Buried:
    """The last images of blocks that were freed. Pages that no array looks at went back to the host."""

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque()

    def add(self, block: Block) -> None:
        """Keep the image of a block that has just been freed, if it has one."""
        if block.image_map is None or len(block.image_map) > MOST_BYTES:
            return
        if block.flushed is None or block.image is None:
            return
        if block.viewed() is None and can_remove_pages():
            block.image_map.madvise(mmap.MADV_REMOVE)
            block.flushed.obj.madvise(mmap.MADV_REMOVE)  # type: ignore[attr-defined]
        else:  # an array looks at it, and keeps its last bytes
            block.flushed[:] = block.image
        self._blocks.append(block)
        while len(self._blocks) > MOST_IMAGES:
            _tell(self._blocks.popleft())

    def look(self) -> None:
        """Tell of what was written into them, and let them go."""
        while self._blocks:
            _tell(self._blocks.popleft())


def _tell(block: Block) -> None:
    import logging

    import numpy as np

    if block.image is None or block.flushed is None:
        return
    written = np.flatnonzero(np.frombuffer(block.image, np.uint8) != np.frombuffer(block.flushed, np.uint8))
    if len(written):
        logging.getLogger("hbrt").warning(
            "write-after-free: %d bytes were written into the cached block at %#x+%#x after it was freed, the first of "
            "them %d bytes from its start.",
            len(written),
            block.phy_addr,
            block.size_bytes,
            written[0],
        )
