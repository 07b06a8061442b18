"""Random write-back of cache lines in strict mode, seeded (``HBRT_CACHE=evicting:SEED``).

A real cache evicts lines at any time, so a program without CLEAN sometimes works, and bytes that the CPU wrote into an
output block may replace the result. When a task is submitted, and when the program sees it end, each dirty line of a
block's image is written back with probability one half. Emulator: the moments and the probability are its choice.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from hbrt.mailbox.dirty_ranges import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arm_client.memory.block import Block

CHANCE: Final = 0.5


class Eviction:
    """Writes dirty lines back at random.

    Args:
        seed: Seed of the random numbers; the same seed writes back the same lines of a program.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable, for a test

    def evict(self, blocks: Iterable[Block]) -> None:
        """Write back some dirty lines of blocks; a flush that is due stays due."""
        import numpy as np  # only strict mode needs it

        for block in blocks:
            if block.image is None or block.flushed is None:
                continue
            image, flushed = (np.frombuffer(view, np.uint8) for view in (block.image, block.flushed))
            for line in np.unique(np.flatnonzero(image != flushed) // LINE_BYTES):
                if self._random.random() < CHANCE:
                    start = int(line) * LINE_BYTES
                    end = min(start + LINE_BYTES, block.size_bytes)
                    block.base[start:end] = block.image[start:end]
