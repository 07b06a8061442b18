"""Views of RPC blocks: checked against the live blocks that the caller may use, then cached while valid.

A check costs a few table lookups. A cached view stays valid as long as the tables do not change; their generation is
in the DDR file's header.
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
_ADDRESSES = struct.Struct("<IQQQQ")  # client, input address and size, output address and size in bytes
_EMPTY = memoryview(bytearray())  # writable like every view: `output[:] = x` works for an empty x

Pair: TypeAlias = tuple[memoryview, memoryview]


class RangeRefused(StatusError):
    """A task may not use this range."""


class Views:
    """The views that one core gives to its tasks."""

    def __init__(self, ddr: Ddr) -> None:
        self._ddr = ddr
        self._map = ddr.map
        self._generation = b""
        self._granted: dict[bytes, Pair] = {}

    def of(self, addresses: bytes) -> Pair:
        """Return input and output of a task.

        Args:
            addresses: The request's bytes from its client id on (see hbrt.mailbox.table.REQUEST_CLIENT_AT).

        Returns:
            Writable bytes of both blocks; empty if there is no block (address and size 0).

        Raises:
            RangeRefused: not inside a single live block, not owned by the client, or not aligned.
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
        """Return the writable bytes of one RPC block, looked up in the tables; raises like ``of``."""
        ddr = self._ddr
        if not size_bytes and not phy_addr:
            return _EMPTY
        if (refusal := ddr.refusal(phy_addr, size_bytes, client, RPC_ALIGNMENT)) is not None:
            raise RangeRefused(*refusal)
        return ddr.view(phy_addr, size_bytes)
