"""This process's copy of a remote board's memory, whose changed bytes move in both directions.

Calls use ``arm_client.transport.remote_blocks``.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator

from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.remote.shadow import Bits, Change
from hbrt.remote.shadow_memory import Holdings, ShadowMemory


class RemoteMemory:
    """The copy of a board's memory, its tables, and the changes in transit.

    Only the connection's thread calls it; other threads read the tables.

    Args:
        ddr: This process's own DDR, laid out like the board's.
        client_id: This process's client number on the board.
        copy: The memory for the copy; None for that DDR itself.
    """

    def __init__(self, ddr: Ddr, client_id: int, copy: Ddr | None = None) -> None:
        self._ddr = Ddr(os.dup(ddr.fd))  # the whole file, where the process's own mapping has private pages
        self._copy = self._ddr
        self._client_id = client_id
        try:
            if copy is not None:
                self._copy = Ddr(os.dup(copy.fd))
            self._tables = DdrTables(self._ddr)
            self._shadow = ShadowMemory(self._copy)
        except OSError:
            self._close_files()
            raise
        self._holdings = Holdings(min(ddr.layout.phy_end, self._copy.layout.phy_end))
        self._ids: dict[int, int] = {}  # block -> its record in the tables
        self._free_ids: list[int] = []
        self._owners: dict[int, int] = {}
        self._leaving: set[int] = set()  # blocks being freed: their bytes were sent for the last time
        self._lock = threading.Lock()
        self._pushed = 0  # number of the last PUSH
        self._under_way: deque[tuple[int, int, Bits]] = deque()  # PUSH not taken yet: number, address, bits

    @property
    def is_locked(self) -> bool:
        """Whether a thread is in the middle of a change: a finalizer that runs there would deadlock."""
        return self._lock.locked() or self._shadow.lock.locked()

    # -- what this process holds

    def on_alloc(self, phy_addr: int, size_bytes: int) -> None:
        """Handle the board's grant of a block."""
        with self._lock:
            self._add(phy_addr, size_bytes, self._client_id, is_owned=True)

    def on_register(self, phy_addr: int, size_bytes: int, owner: int) -> None:
        """Handle the board's permission to use a block of ``owner``."""
        with self._lock:
            self._add(phy_addr, size_bytes, owner, is_owned=False)

    def on_free(self, phy_addr: int, freed_at: str, *, is_gone: bool) -> None:
        """Handle the board's answer to freeing a block; ``is_gone`` if it did."""
        with self._lock:
            if is_gone and phy_addr in self._owners:
                self._owners[phy_addr] = 0
                self._discard(phy_addr, is_owned=True, freed_at=freed_at)
            self._leaving.discard(phy_addr)

    def on_unregister(self, phy_addr: int, *, is_gone: bool) -> None:
        """Like ``on_free``, for one registration of the block that contains an address."""
        with self._lock:
            found = self._holdings.find(phy_addr, 0)
            if found is None:
                return
            if is_gone:
                self._discard(found[0], is_owned=False)
            self._leaving.discard(found[0])

    def _add(self, phy_addr: int, size_bytes: int, owner: int, *, is_owned: bool) -> None:
        held = self._holdings.hold(phy_addr, size_bytes, is_owned=is_owned)
        number = self._ids.get(phy_addr)
        if number is None:
            number = self._free_ids.pop() if self._free_ids else len(self._ids) + 1
            self._ids[phy_addr], self._owners[phy_addr] = number, owner
            self._tables.add(number, phy_addr, size_bytes, _pages(size_bytes), owner)
        self._tables.set_owner(number, self._owners[phy_addr], (self._client_id,) if held.registrations else ())

    def _discard(self, phy_addr: int, *, is_owned: bool, freed_at: str = "its end here") -> None:
        found = self._holdings.find(phy_addr, 0)
        if found is None or found[0] != phy_addr:
            return
        held = self._holdings.release(phy_addr, is_owned=is_owned)
        if held is not None:
            sharers = (self._client_id,) if held.registrations else ()
            self._tables.set_owner(self._ids[phy_addr], self._owners[phy_addr], sharers)
            return
        size, extent = found[1].size_bytes, found[1].extent
        self._tables.remove(self._ids[phy_addr], _pages(size), self._client_id, freed_at)
        self._tables.free_pages(phy_addr, extent)
        self._shadow.discard(phy_addr, extent)
        self._free_ids.append(self._ids.pop(phy_addr))
        del self._owners[phy_addr]

    # -- what moves

    def changes(self, phy_addr: int = 0) -> Iterator[tuple[int, int, Change]]:
        """Return this process's writes for PUSH: number, address and bytes.

        Args:
            phy_addr: Only for the block that contains this address; 0 for all blocks.
        """
        with self._lock:
            found = self._holdings.find(phy_addr, 0) if phy_addr else None
            blocks = self._holdings.all() if not phy_addr else [found] if found else []
        for start, held in blocks:
            with self._lock:
                is_ours = start not in self._leaving and self._holdings.find(start, held.extent) is not None
            if is_ours:
                for address, change, number in self._shadow.changes(start, held.extent, self._note):
                    yield number, address, change

    def release_block(self, phy_addr: int, *, is_owned: bool) -> None:
        """Before a block is freed or unregistered for the last time: stop sending its bytes."""
        with self._lock:
            found = self._holdings.find(phy_addr, 0)
            if found is None:
                return
            start, held = found
            rest = held.registrations if is_owned else int(held.is_owned) + held.registrations - 1
            if rest <= 0:
                self._leaving.add(start)

    def on_data(self, seen: int, phy_addr: int, change: Change) -> None:
        """Take bytes that changed on the board, which had processed the pushes up to ``seen``.

        Raises:
            MalformedMessageError: the bytes are outside the heap.
        """

        def newer() -> list[tuple[int, Bits]]:
            return [(address, bits) for number, address, bits in self._under_way if number > seen]

        self._shadow.merge(phy_addr, change, newer)

    def on_taken(self, number: int) -> None:
        """Record that the board has processed the pushes up to a number."""
        with self._shadow.lock:
            while self._under_way and self._under_way[0][0] <= number:
                self._under_way.popleft()

    def close(self) -> None:
        """Free the base and the mapping."""
        self._shadow.close()
        self._close_files()

    def _close_files(self) -> None:
        if self._copy is not self._ddr:
            self._copy.close()
        self._ddr.close()

    def _note(self, phy_addr: int, bits: Bits) -> int:
        self._pushed += 1
        self._under_way.append((self._pushed, phy_addr, bits))
        return self._pushed


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
