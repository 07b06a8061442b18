"""What libcdsprpc.so needs to resend an invocation by itself; its structure is in ``native/arm/fastrpc.c``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from arm_client.cabi.last_error import note
from fastrpc.runtime import runtime
from fastrpc.wire import scalars
from fastrpc.wire.aee import AeeError
from fastrpc.wire.message import ARGUMENT
from fastrpc.wire.types import remote_arg
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
    """The library's slots, and the messages that it may be sending."""

    def __init__(self, address: int, place_of: Callable[[int, int, int], int]) -> None:
        self.address = address
        self._places = (_Prepared * _PLACES).from_address(address)
        self._place_of = place_of
        self._kept: dict[int, Kept] = {}
        self._fence = Fence()
        self._leaving: list[tuple[_Prepared, Kept]] = []  # taken back, and possibly in use

    def lend(self, handle: int, word: int, first: int, kept: Kept) -> None:
        """Let the library send by itself the invocation whose first argument is at this address."""
        number = self._place_of(handle, word, first)
        if self._kept.get(number) is kept:
            return
        place = self._places[number]
        self._take_back(number)
        cmd, priority, mask, _, phy_addr, size, *_ = kept.made.task
        place.version += 1
        place.handle, place.word, place.calls = handle, word, 0
        place.cmd, place.priority, place.core_mask, place.phy_addr, place.size = cmd, priority, mask, phy_addr, size
        ctypes.memmove(place.arguments, first, scalars.count(word) * ctypes.sizeof(remote_arg))
        place.version += 1
        self._kept[number] = kept
        kept.sent_by_c.append(lambda: place.calls)
        kept.on_forgotten.append(lambda: self._take_back(number))

    def _take_back(self, number: int) -> None:
        kept = self._kept.pop(number, None)
        if kept is None:
            return
        place = self._places[number]
        place.version += 1 + place.version % 2  # even again, and for no invocation
        place.handle = 0
        kept.sent_by_c.clear()
        kept.tally.calls += place.calls
        self._fence.full()  # before the users are read: one that comes later sees that the slot has no invocation
        self._leaving = [one for one in (*self._leaving, (place, kept)) if one[0].users]


_lent: Final[list[Lent]] = []


def lend(address: int, place_of: int) -> int:
    """Let a library repeat invocations by itself.

    Args:
        address: Of its slots.
        place_of: Its function for the number of an invocation's slot, by handle, scalar word and address of its
            arguments.
    """
    if all(one.address != address for one in _lent):
        _lent.append(Lent(address, _PLACE_OF(place_of)))
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
        for lent in _lent:
            lent.lend(handle, word, pra, kept)
    return 0
