"""Views of RPC blocks: checked against the live blocks that the caller may use, and cached while they are valid.

A check costs a few table look-ups. A cached view is valid while the tables have not changed: the header of the DDR file
has their generation.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import TABLES_GENERATION
from hbrt.errors import StatusError
from hbrt.mailbox.table import RPC_ALIGNMENT

MAX_REMEMBERED = 4096
_GENERATION_END = TABLES_GENERATION + 8
_ADDRESSES = struct.Struct("<IQQQQ")  # client, input address and bytes, output address and bytes
_EMPTY = memoryview(bytearray())  # writable as every view: `output[:] = x` works for an empty x

Pair: TypeAlias = tuple[memoryview, memoryview]


class RangeRefused(StatusError):
    """A range that a task may not use."""


class Views:
    """The views that one core grants to its tasks."""

    def __init__(self, ddr: Ddr) -> None:
        self._ddr = ddr
        self._map = ddr.map
        self._generation = b""
        self._granted: dict[bytes, Pair] = {}

    def of(self, addresses: bytes) -> Pair:
        """Input and output of a task.

        Args:
            addresses: The request's bytes from its client on (see hbrt.mailbox.table.REQUEST_CLIENT_AT).

        Returns:
            Writable bytes of the two blocks; empty for no block (address and size 0).

        Raises:
            RangeRefused: not inside one live block, not the client's, or not aligned.
        """
        generation = self._map[TABLES_GENERATION:_GENERATION_END]
        if generation != self._generation or len(self._granted) >= MAX_REMEMBERED:
            self._granted.clear()
            self._generation = generation
            if self._ddr.imports:
                self._ddr.discard_imports()
        granted = self._granted.get(addresses)
        if granted is None:
            client, in_phy, in_bytes, out_phy, out_bytes = _ADDRESSES.unpack(addresses)
            granted = (self.get(in_phy, in_bytes, client), self.get(out_phy, out_bytes, client))
            self._granted[addresses] = granted
        return granted

    def get(self, phy_addr: int, size_bytes: int, client: int) -> memoryview:
        """Writable bytes of one RPC block, looked up in the tables; raises as ``of``."""
        ddr = self._ddr
        if not size_bytes and not phy_addr:
            return _EMPTY
        if (refusal := ddr.refusal(phy_addr, size_bytes, client, RPC_ALIGNMENT)) is not None:
            raise RangeRefused(*refusal)
        return ddr.view(phy_addr, size_bytes)
