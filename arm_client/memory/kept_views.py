"""Views that outlive a block keep the block's last bytes, in private pages."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.memory.freed import Freed, FreedBlock
from hbrt.ddr.imported import ImportedFile
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arm_client.memory.block import Block, Exporter
    from hbrt.attach.link import Link
    from hbrt.attach.question import Question


class KeptViews:
    """Arrays and other views of blocks that this process frees, unregisters or abandons."""

    def __init__(self, link: Link, freed: Freed) -> None:
        self._link = link
        self._freed = freed
        # Set by the check memory: called with a freed block and what still refers to it.
        self.on_kept: Callable[[FreedBlock, object], None] | None = None

    def keep_all(self, blocks: list[Block]) -> None:
        """Prepare for this process to release all its blocks."""
        ddr = self._link.ddr
        ranges = []
        try:
            for block in blocks:
                if block.image is not None or (viewed := block.viewed()) is None:
                    continue
                start = ddr.offset_of(block.phy_addr)
                end = block.end_of_pages(start)
                if block.is_imported:
                    self._keep(block, start, viewed)
                    continue
                if block.address == ddr.address + start:
                    ranges.append((start, end))
                else:
                    ddr.private.exchange(block.address, start, end, [(start, end)])
            ddr.private.keep_finally(ranges)
        except OSError as error:
            from arm_client.cabi.say import warn

            warn(
                "Not enough memory to keep the last bytes of %d blocks that arrays refer to (%s): they read as zeros "
                "from now on. Copy results before closing the board.",
                len(ranges),
                error.strerror,
            )

    @contextlib.contextmanager
    def around(self, block: Block | None, asked: Question, freed_at: str) -> Iterator[None]:
        """Context manager around the request that releases a block; afterwards only views in this process reach it.

        Args:
            block: The block; None if it stays.
            asked: State of the request.
            freed_at: The line that released it.

        Raises:
            RequestRefusedError: HB_SYS_OUT_OF_MEMORY: no memory left to keep its bytes.
        """
        viewed = block.viewed() if block is not None and not self._link.fault else None
        if block is None or viewed is None or block.image is not None:  # an image is already private
            yield
            if block is not None and viewed is None:
                self._note_freed(block, freed_at)
            elif block is not None:
                self._note_kept(block, freed_at, viewed)
            return
        ddr = self._link.ddr
        start = ddr.offset_of(block.phy_addr)
        is_mapped = block.address == ddr.address + start
        try:
            if is_mapped:
                self._keep(block, start, viewed)
            else:  # its own pages, which nobody shares any more
                ddr.private.exchange(block.address, start, end := block.end_of_pages(start), [(start, end)])
        except OSError as error:
            raise RequestRefusedError(
                Status.HB_SYS_OUT_OF_MEMORY,
                f"The block {block.phy_addr:#x}+{block.size_bytes:#x} cannot be freed while arrays refer to it: no "
                f"memory for a copy of its bytes ({error.strerror}). Delete arrays of freed blocks first.",
            ) from None
        try:
            yield
        except BaseException as error:
            is_held = isinstance(error, RequestRefusedError) or not asked.sent[0]
            if is_held and is_mapped and not self._link.fault:
                ddr.private.share(start)
                if (entry := ddr.block_at(block.phy_addr)) is not None:
                    ddr.reach(entry)
            raise
        self._note_freed(block, freed_at)
        self._note_kept(block, freed_at, viewed)

    def _note_kept(self, block: Block, freed_at: str, viewed: object) -> None:
        if self.on_kept is not None:
            self.on_kept(FreedBlock.of(block, freed_at), viewed)

    def _keep(self, block: Block, start: int, viewed: Exporter) -> None:
        """Keep a block's last bytes for its views; ``start`` is its offset in the DDR file."""
        ddr = self._link.ddr
        if not (word := ddr.imports.word_at(start)):
            ddr.private.keep(start, block.end_of_pages(start), viewed)
            return
        fd = ddr.imports.open(word)
        try:
            ddr.private.keep(start, block.end_of_pages(start), viewed, (fd, ImportedFile.of(word).offset))
        finally:
            os.close(fd)
        ddr.imports.discard(start)

    def _note_freed(self, block: Block, freed_at: str) -> None:
        ddr = self._link.ddr
        start = ddr.offset_of(block.phy_addr)
        ddr.imports.hide(start)
        ddr.private.close(start, start + len(block.base) + len(block.behind))
        is_mapped = block.address == ddr.address + start
        if (is_mapped or block.image is not None) and not self._link.fault:
            self._freed.add(block, freed_at)
