"""The line of a C program that made a call, looked up once per address in the debugging information.

Each calling file has a symbolizer, which starts with its first call and ends with the process. Without debugging
information, a call site is ``program+0x1234``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from arm_client.c_library import mutexes
from arm_client.cabi import call_site
from hbrt.attach import wait_sites
from hbrt.board.forked import in_child
from hbrt.mailbox.handle import slot_of
from hbrt.native.symbolizer import Symbolizer
from hbrt.protocol.stacks import Frame, Wait

_LOCKS = {
    "gthr-default.h",
    "std_mutex.h",
    "mutex",
    "unique_lock.h",
}  # functions of libstdc++ that call pthread_mutex_lock


class CallSites:
    """The call sites of C code, as text.

    Args:
        address: Returns ``path+0x1234`` for this thread's current call, or for the fault that it handles; empty if
            there is none.
    """

    def __init__(self, address: Callable[[], bytes | None]) -> None:
        self._address = address
        self._known: dict[bytes, str] = {}
        self._symbolizers: dict[str, Symbolizer] = {}
        self._lock = threading.Lock()
        in_child(self._detach_in_child)

    def __call__(self) -> str:
        """``file.c:12``, or ``program+0x1234``; empty when this thread is not in C code."""
        address = self._address()
        return self.line_of(address) if address else ""

    def line_of(self, address: bytes) -> str:
        """Convert ``path+0x1234`` to ``file.c:12``, or to ``program+0x1234``."""
        found = self._known.get(address)
        if found is None:
            path, _, offset = os.fsdecode(address).rpartition("+")
            place = f"{os.path.basename(path)}+{offset}"  # noqa: PTH119 - a name, no path
            try:
                with self._lock:
                    found = self._known[address] = self._look_up(path, offset) or place
            except OSError:  # no descriptors left now
                return place
        return found

    def _look_up(self, path: str, offset: str) -> str:
        symbolizer = self._symbolizers.get(path)
        if symbolizer is None:
            symbolizer = self._symbolizers[path] = Symbolizer(path)
        return symbolizer.line_of(offset)

    def _detach_in_child(self) -> None:
        self._lock = threading.Lock()
        for symbolizer in self._symbolizers.values():
            symbolizer.detach_in_child()
        self._symbolizers = {}


class WaitInC(NamedTuple):
    """A thread waiting for the board.

    Attributes:
        handle: The task's handle; 0 for a wait known only from Python's frames.
        place: Place of the program's call, as ``path+0x1234``.
        thread: The kernel's thread id.
        ident: Python's thread identifier.
    """

    handle: int
    place: bytes
    thread: int
    ident: int


def install(
    address: Callable[[], bytes | None],
    waits: Callable[[], Iterable[WaitInC]],
    place_in_program: Callable[[int], bytes | None],
) -> None:
    """Have messages and ``hbrt why`` name the lines of a C program.

    Args:
        address: As in ``CallSites``.
        waits: The threads waiting for the board.
        place_in_program: Returns ``path+0x1234`` of the call that returns to an address; empty for a C library's call.
    """
    sites = CallSites(address)
    call_site.of_c = sites
    wait_sites.of_c = lambda slots: _waits(sites, list(waits()), slots, place_in_program)


def _waits(
    sites: CallSites,
    in_c: list[WaitInC],
    of_frames: Mapping[int, int],
    place_in_program: Callable[[int], bytes | None],
) -> list[Wait]:
    """Return the waits for the board, followed by waits for a mutex."""
    slots = {one.thread: slot_of(one.handle) if one.handle else of_frames.get(one.ident, -1) for one in in_c}
    blocked = {one.thread: one for one in mutexes.blocked()}
    found = [Wait(slots[one.thread], _stack(sites.line_of(one.place))) for one in in_c]
    locked: dict[int, Wait] = {}
    for one in blocked.values():
        lines = (sites.line_of(place) for behind in one.callers if (place := place_in_program(behind)))
        line = next((line for line in lines if line.partition(":")[0] not in _LOCKS), "an unknown line")
        slot, of_holder = slots.get(one.holder, -1), blocked.get(one.holder)
        then = f"task {slot}" if slot >= 0 else f"the mutex at {of_holder.mutex:#x}" if of_holder is not None else ""
        holder = "the main thread" if one.holder == os.getpid() else f"thread {one.holder}"
        lock = f"the mutex at {one.mutex:#x}, which {holder} holds{then and f', which waits for {then}'}"
        locked[one.thread] = Wait(slot, _stack(line), lock)
    return found + wait_sites.in_circles(locked, {one.thread: one.holder for one in blocked.values()})


def _stack(site: str) -> tuple[Frame, ...]:
    file, _, line = site.rpartition(":")
    return (Frame(file, int(line), "C") if line.isdigit() else Frame(site, 0, "C"),)
