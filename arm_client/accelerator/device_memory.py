"""Device memory for running a model: blocks for its values, and the addresses of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.session.session import attached
from hbrt.borders.addresses import address_of
from hbrt.models.errors import GraphError, Reason

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arm_client.memory.block import Block
    from arm_client.session.session import Session


class DeviceMemory:
    """This process's device memory, as attached when the object was created.

    Blocks are uncached: another processor's writes are visible without a flush. They are freed by ``close``.
    """

    def __init__(self, use: str = "") -> None:
        """Attach, or start a private board.

        Args:
            use: The model for which the runtime keeps the blocks; empty for blocks that belong to the program.

        Raises:
            GraphError: NO_MEMORY: no board provides memory; the message says why.
        """
        try:
            self.session: Session = attached()
        except RequestRefusedError as error:
            raise GraphError(Reason.NO_MEMORY, f"No board to run the model on: {error}") from None
        ddr = self.session.link.ddr
        self._start = ddr.address
        self._end = self._start + len(ddr.bytes)
        self._phy_start = -ddr.offset_of(0)
        self._blocks: list[Block] = []
        self._use = use

    @property
    def is_usable(self) -> bool:
        """Whether the board is still running and belongs to this process."""
        return not self.session.link.fault

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a new zeroed array in its own block.

        Raises:
            GraphError: NO_MEMORY, with the free memory.
        """
        count = int(np.prod(shape, dtype=np.int64))
        try:
            block = self.session.blocks.alloc(max(count * dtype.itemsize, 1), use=self._use)
        except RequestRefusedError as error:
            raise GraphError(Reason.NO_MEMORY, f"Cannot allocate a tensor of shape {list(shape)}: {error}") from None
        self._blocks.append(block)
        return np.frombuffer(block.view, np.uint8, count * dtype.itemsize).view(dtype).reshape(shape)

    def phy_addr_of(self, array: NDArray[Any]) -> int | None:
        """Return the physical address of a contiguous array in the DDR; None for any other array."""
        address = address_of(array)
        if not self._start <= address < self._end or not array.flags.c_contiguous:
            return None
        return self._phy_start + address - self._start

    def close(self) -> None:
        """Free all blocks."""
        blocks, self._blocks = self._blocks, []
        for block in blocks:
            if self.is_usable:
                try:
                    self.session.blocks.free(block.phy_addr)
                except RequestRefusedError:
                    return  # the board is gone, and the memory with it
