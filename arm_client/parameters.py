"""Parameter blocks for calls whose parameters are bytes: small, in device memory, and reused."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from arm_client.arrays import Buffer
from arm_client.errors import HbrtError

if TYPE_CHECKING:
    from arm_client.session.session import Session

MIN_BYTES = 256


class ParameterBlocks:
    """The parameter blocks of one connection.

    Args:
        session: The process's attachment behind it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spare: list[Buffer] = []
        self._is_closed = False

    def hold(self, raw: bytes) -> ParameterBlock:
        """Copy these bytes to device memory; the block is reclaimed when nothing refers to it anymore."""
        try:
            buffer = self._spare.pop()
        except IndexError:
            buffer = None
        if buffer is None or buffer.size_bytes < len(raw):
            buffer = Buffer(self._session, max(len(raw), MIN_BYTES), is_cached=False)
        buffer.view()[: len(raw)] = raw
        return ParameterBlock(self, buffer, len(raw))

    def take_back(self, buffer: Buffer) -> None:
        """Reclaim the block of a finished task, unless the collector has freed it with the task."""
        if not self._is_closed and buffer.is_live:
            self._spare.append(buffer)

    def spare(self) -> list[Buffer]:
        """Blocks kept for the next calls."""
        return list(self._spare)

    def close(self) -> None:
        """Free the spare blocks, and stop reclaiming."""
        self._is_closed = True
        spare, self._spare = self._spare, []
        for buffer in spare:
            with contextlib.suppress(HbrtError):  # the board is gone, and the block with it
                buffer.free()


class ParameterBlock:
    """A parameter block on loan to a task."""

    __slots__ = ("_blocks", "_buffer", "phy_addr", "size_bytes")

    def __init__(self, blocks: ParameterBlocks, buffer: Buffer, size_bytes: int) -> None:
        self.phy_addr = buffer.phy_addr
        self.size_bytes = size_bytes
        self._blocks = blocks
        self._buffer = buffer

    def __del__(self) -> None:
        if hasattr(self, "_buffer"):  # not interrupted before it was created
            self._blocks.take_back(self._buffer)
