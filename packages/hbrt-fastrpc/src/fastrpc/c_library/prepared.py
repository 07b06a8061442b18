"""What libcdsprpc.so needs to resend an invocation by itself; its structure is in ``native/arm/fastrpc.c``."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from arm_client.cabi.last_error import note
from fastrpc.runtime import runtime
from fastrpc.wire import scalars
from fastrpc.wire.aee import AeeError
from fastrpc.wire.message import ARGUMENT
from fastrpc.wire.types import remote_arg
from hbrt.board.forked import in_child
from hbrt.ddr.fence import Fence

if TYPE_CHECKING:
    from fastrpc.invocations.kept import Kept

_PLACES, _MAX_ARGUMENTS = 64, 16


class _Prepared(ctypes.Structure):
    """``struct prepared``."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("users", ctypes.c_uint32),
        ("calls", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("word", ctypes.c_uint32),
        ("cmd", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("core_mask", ctypes.c_uint32),
        ("phy_addr", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("arguments", remote_arg * _MAX_ARGUMENTS),
    )


_PLACE_OF: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class Lent:
    """The library's slots, and the messages that it may be sending.

    A thread writes a slot under the lock, and ``version`` is odd meanwhile: also for a signal handler that invokes in
    the middle, and after an exception from one. Python runs handlers only after calls: statements without any belong
    together.
    """

    def __init__(self, address: int, place_of: Callable[[int, int, int], int]) -> None:
        self._places = (_Prepared * _PLACES).from_address(address)
        self._place_of = place_of
        self._fence = Fence()
        self._begin()
        in_child(self._begin)

    def _begin(self) -> None:
        """Begin with empty slots: also in a fork's child, where the library empties them, and a lock may stay taken."""
        self._lock = threading.RLock()
        self._kept: list[Kept | None] = [None] * _PLACES
        self._leaving: list[tuple[_Prepared, Kept]] = []  # taken back, and possibly in use

    def lend(self, handle: int, word: int, first: int, kept: Kept) -> None:
        """Let the library send by itself the invocation whose first argument is at this address."""
        number = self._place_of(handle, word, first)
        if self._kept[number] is kept:
            return
        place = self._places[number]
        with self._lock:
            if place.version % 2:
                return  # a signal handler called in the middle of these lines
            place.version += 1
            try:
                self._fence.full()
                if (other := self._kept[number]) is not None:
                    self.take_back(number, other)
                cmd, priority, mask, _, phy_addr, size, *_ = kept.made.task
                place.handle, place.calls, place.cmd, place.priority = handle, 0, cmd, priority
                place.core_mask, place.phy_addr, place.size = mask, phy_addr, size
                ctypes.memmove(place.arguments, first, scalars.count(word) * ctypes.sizeof(remote_arg))
                self._fence.full()
                self._kept[number] = kept
                kept.slots[self] = number
                if kept.is_forgotten:  # the thread that forgets it may have read its slots before
                    self.take_back(number, kept)
                else:
                    place.word = word
            finally:
                place.version += 1

    def calls(self, number: int) -> int:
        """How often the library has sent the message of a slot."""
        return int(self._places[number].calls)

    def take_back(self, number: int, kept: Kept) -> None:
        """Let the library send a message no longer, and add its calls to the tally; a stale number changes nothing."""
        place = self._places[number]
        with self._lock:
            if self._kept[number] is not kept:
                return
            place.word = 0
            place.version += 2
            if kept.slots.pop(self, None) is not None:
                kept.tally.calls += place.calls
            self._fence.full()  # before the users are read: one that comes later sees that the slot has no invocation
            self._leaving = [one for one in (*self._leaving, (place, kept)) if one[0].users]
            if self._kept[number] is kept:  # and not what a signal handler has lent meanwhile
                self._kept[number] = None


_lent: Final[dict[int, Lent]] = {}


def lend(address: int, place_of: int) -> int:
    """Let a library repeat invocations by itself.

    Args:
        address: Of its slots.
        place_of: Its function for the number of an invocation's slot, by handle, scalar word and address of its
            arguments.
    """
    if address not in _lent:
        _lent.setdefault(address, Lent(address, _PLACE_OF(place_of)))  # one, also if two threads come at once
    return 0


def invoke(handle: int, word: int, pra: int) -> int:
    """remote_handle64_invoke; the library repeats an invocation by itself unless something is copied or flushed."""
    count = scalars.count(word)
    raw = ctypes.string_at(pra, count * ARGUMENT.size) if pra else b""
    try:
        kept = runtime().invoke(handle, word, raw)
    except AeeError as error:
        return note(error.code, error.sentence)
    if kept is not None and 0 < count <= _MAX_ARGUMENTS and not kept.made.clean and not kept.made.invalidate:
        for lent in [*_lent.values()]:
            lent.lend(handle, word, pra, kept)
    return 0
