"""The line of a C program that made a call, looked up in the debugging information once an address.

Each file that calls has a symbolizer, which starts at its first call and ends with the process. A place without
debugging information is ``program+0x1234``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable

from arm_client.cabi import call_site
from hbrt.attach import wait_sites
from hbrt.board.forked import in_child
from hbrt.native.symbolizer import Symbolizer


class CallSites:
    """The calling places of C code, as text.

    Args:
        address: Gives ``path+0x1234`` of the call that this thread is in, or of the fault that it handles; empty for
            none.
    """

    def __init__(self, address: Callable[[], bytes | None]) -> None:
        self._address = address
        self._known: dict[bytes, str] = {}
        self._symbolizers: dict[str, Symbolizer] = {}
        self._lock = threading.Lock()
        in_child(self._abandon_in_child)

    def __call__(self) -> str:
        """``file.c:12``, or ``program+0x1234``; empty when this thread is not in C code."""
        address = self._address()
        return self.line_of(address) if address else ""

    def line_of(self, address: bytes) -> str:
        """``file.c:12``, or ``program+0x1234``, of ``path+0x1234``."""
        found = self._known.get(address)
        if found is None:
            with self._lock:
                found = self._known[address] = self._look_up(os.fsdecode(address))
        return found

    def _look_up(self, address: str) -> str:
        path, _, offset = address.rpartition("+")
        symbolizer = self._symbolizers.get(path)
        if symbolizer is None:
            symbolizer = self._symbolizers[path] = Symbolizer(path)
        return symbolizer.line_of(offset) or f"{os.path.basename(path)}+{offset}"  # noqa: PTH119 - a name, no path

    def _abandon_in_child(self) -> None:
        self._lock = threading.Lock()
        for symbolizer in self._symbolizers.values():
            symbolizer.abandon_in_child()
        self._symbolizers = {}


def install(address: Callable[[], bytes | None], waits: Callable[[], Iterable[tuple[int, bytes]]]) -> None:
    """Have messages and ``hbrt why`` name the lines of a C program.

    Args:
        address: As of ``CallSites``.
        waits: The task's handle and the place of each thread that waits.
    """
    sites = CallSites(address)
    call_site.of_c = sites
    wait_sites.of_c = lambda: [(handle, sites.line_of(place)) for handle, place in waits()]
