"""Arrays and views of freed blocks: under the check ``memory``, their first use is reported as a mistake.

Such an array keeps the block's last bytes in pages private to this process, so no task sees what it writes. These pages
are closed when the block is freed. The first access opens them, and the program continues with these bytes.
"""

from __future__ import annotations

import mmap
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.strict.addresses import late_view
from arm_client.strict.stale import program_line
from hbrt.ddr.faults import no_fault, on_fault
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.ddr.private_pages import mprotect

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.memory.freed import FreedBlock
    from arm_client.strict.report import Mistake

_CLOSED, _OPEN = 0, mmap.PROT_READ | mmap.PROT_WRITE


class _Kept(NamedTuple):
    """A freed block's pages; ``viewed`` lives as long as any view of them."""

    gone: FreedBlock
    pages_bytes: int
    viewed: weakref.ref[Any]


class LateViews:
    """Closes the pages of freed blocks that arrays keep; ``find`` receives mistakes."""

    def __init__(self, find: Callable[[Mistake], None]) -> None:
        self._find = find
        self._kept: dict[int, _Kept] = {}  # by address

    def close_kept(self, gone: FreedBlock, viewed: object) -> None:
        """Close the pages of a freed block until they are used, or until their last view ends."""
        address, pages_bytes = gone.address, -(-gone.size_bytes // PAGE_BYTES) * PAGE_BYTES
        if not mprotect(address, pages_bytes, _CLOSED):
            # Once its last view is gone, the range may belong to another block, which is open.
            ref = weakref.ref(viewed, lambda _: self._kept.pop(address, None))
            self._kept[address] = _Kept(gone, pages_bytes, ref)
            no_fault(self._on_fault)
            on_fault(self._on_fault)  # runs before the fatal-fault handler, which the first free installed

    def close(self) -> None:
        """Open all pages, and stop handling faults."""
        for address in list(self._kept):
            self._open(address)
        no_fault(self._on_fault)

    def _open(self, address: int) -> _Kept | None:
        kept = self._kept.pop(address, None)
        if kept is not None:
            mprotect(address, kept.pages_bytes, _OPEN)
        return kept

    def _on_fault(self, address: int, is_write: bool | None) -> bool:  # noqa: FBT001 - as hbrt.ddr.faults calls it
        start = next((at for at, one in list(self._kept.items()) if at <= address < at + one.pages_bytes), 0)
        kept = self._open(start)
        if kept is None:
            return False
        if program_line(sys._getframe(1)):  # noqa: SLF001 - whose access it is
            self._find(late_view(kept.gone, address - start, is_write=bool(is_write)))
        return True
