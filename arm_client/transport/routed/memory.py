"""This board's memory on a route's board: the blocks that this process has there at the same addresses.

It has no copy of its own: changes are compared with, and written into, this board's DDR.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from arm_client.transport.remote_memory import RemoteMemory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hbrt.ddr.file import Ddr
    from hbrt.remote.shadow import Change


class MirroredMemory(RemoteMemory):
    """This process's blocks that also exist on another board.

    Args:
        ddr: The connection's own DDR, for its tables.
        client_id: This process's client number on the other board.
        here: This board's DDR.
    """

    def __init__(self, ddr: Ddr, client_id: int, here: Ddr) -> None:
        super().__init__(ddr, client_id, here)
        self._merging = threading.RLock()  # a finalizer may free a block in between
        self._opening = 0
        self._kept: set[int] | None = None

    def begin(self, phy_addr: int) -> None:
        """Discard the contents of a new block on the other board, since ours has the bytes."""
        self._opening = phy_addr

    def keep_apart(self, *, is_on: bool) -> set[int]:
        """Stop, or resume, writing the other board's changes into this board's memory.

        Returns:
            The blocks in which it has changed bytes since the last call.
        """
        with self._merging:
            changed = self._kept or set()
            self._kept = set() if is_on else None
        return changed

    def both(self, phy_addr: int, size_bytes: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """See ``ShadowMemory.both``."""
        return self._shadow.both(phy_addr, size_bytes)

    def discard_block(self, phy_addr: int) -> None:
        """Before this board frees a block: stop sending its bytes, and stop writing those that arrive."""
        with self._merging:
            self._leaving.add(phy_addr)

    def on_data(self, seen: int, phy_addr: int, change: Change) -> None:
        """See ``RemoteMemory.on_data``."""
        found = self._holdings.find(phy_addr, 0)
        with self._merging:
            if found is None or found[0] in self._leaving:
                return
            if self._kept is not None:
                self._kept.add(found[0])
            elif found[0] != self._opening:
                super().on_data(seen, phy_addr, change)
                return
            self._shadow.learn(phy_addr, change)
