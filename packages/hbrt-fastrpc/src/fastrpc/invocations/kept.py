"""Messages that are sent again: for a call with the same handle, scalar word, addresses and sizes as an earlier one."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from fastrpc.counting import Statistics, Tally, added

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arm_client.arrays import Buffer
    from fastrpc.domains import Opened
    from fastrpc.invocations.messages import Back, Made, Span

Key: TypeAlias = "tuple[object, ...]"
_MAX_KEPT: Final = 64  # as many as the library has slots
_MAX_KEPT_BYTES: Final = 1 << 16  # of one: the copy of a larger one takes most of its call's time


def key_of(handle: int, word: int, given: bytes | Sequence[Span]) -> Key:
    """What must be equal for a message to be sent again: all of an argument array; for bytes to copy, their number."""
    if isinstance(given, bytes):
        return handle, word, given
    return (
        handle,
        word,
        *[one if isinstance(one, tuple) else (one,) if isinstance(one, int) else len(one) for one in given],
    )


class Borrower(Protocol):
    """A library of a C program that sends messages by itself, each from one of its slots."""

    def calls(self, number: int) -> int:
        """How often it has sent the message of a slot."""
        ...

    def take_back(self, number: int, kept: Kept) -> None:
        """Let it send a message no longer, and add its calls to the tally; nothing if the slot has another message."""
        ...


@dataclass(slots=True, eq=False)
class Kept:
    """A message and its calls.

    Attributes:
        made: The message.
        opened: The object that it calls.
        changes: ``KeptMessages.changes`` before it was written.
        tally: Its calls, and those of others that add the same.
        slots: The slot from which a library may be sending it; its calls are not in the tally yet.
        is_forgotten: Whether it must not be lent anymore.
    """

    made: Made
    opened: Opened
    changes: int
    tally: Tally
    slots: dict[Borrower, int] = field(default_factory=dict)
    is_forgotten: bool = False


class KeptMessages:
    """The messages of one attachment.

    One with copies belongs to its caller alone while it is sent. One without any is sent unchanged, by several threads
    at once, and by the library.

    Args:
        release: Takes the buffer of a message that nobody sends.
    """

    def __init__(self, release: Callable[[Buffer], None]) -> None:
        self._release = release
        self._kept: dict[Key, Kept] = {}
        self.changes = 0  # grows when messages become invalid, even those that are being sent

    def take(self, key: Key) -> Kept | None:
        """A message to send; the caller gives one with copies back after the call."""
        kept = self._kept.get(key)
        return self._kept.pop(key, None) if kept is not None and kept.made.copies else kept

    def keep(self, key: Key, kept: Kept) -> bool:
        """Keep a message whose call has ended, unless it is large or invalid by now.

        Returns:
            False if the caller must release the buffer: no other thread has the message.
        """
        if kept.made.buffer.size_bytes > _MAX_KEPT_BYTES or self._kept.setdefault(key, kept) is not kept:
            return False
        if kept.changes != self.changes:
            if kept.made.copies:
                return self._kept.pop(key, None) is None
            self._discard(key)  # another thread may be sending it by now
        elif len(self._kept) > _MAX_KEPT:
            for oldest in [*self._kept][:-_MAX_KEPT]:  # fewer by now if another thread has forgotten some
                self._discard(oldest)
        return True

    def discard(self, opened: Opened | None = None) -> None:
        """Forget all messages, or those of one object."""
        self.changes += 1
        for key, one in [*self._kept.items()]:
            if opened is None or one.opened is opened:
                self._discard(key)

    def _discard(self, key: Key) -> None:
        kept = self._kept.get(key)
        if kept is None:
            return  # another thread was first
        kept.is_forgotten = True  # before the slots are read: a thread that lends it reads this after adding its slot
        for borrower, number in [*kept.slots.items()]:
            borrower.take_back(number, kept)
        # Last: after an interrupt above, it is still here to be forgotten. If it has no copies, another thread may be
        # sending it: the buffer is freed when that has ended.
        if self._kept.pop(key, None) is kept and kept.made.copies:
            self._release(kept.made.buffer)

    def sent_by_c(self) -> Statistics:
        """The totals of the library's calls that are not in a tally yet."""
        total = Statistics()
        for one in [*self._kept.values()]:
            calls = sum(borrower.calls(number) for borrower, number in [*one.slots.items()])
            total = added(total, Tally(one.made.each).total(calls))
        return total


def fill(made: Made, spans: Sequence[Span] | None, inputs: int) -> list[Back]:
    """Copy the inputs of a call into a message, from its own places if None; returns the outputs to copy back."""
    address = made.buffer.address
    back: list[Back] = []
    for at, start, size_bytes, own in made.copies:
        span = own if spans is None else spans[at]
        place = span[0] if isinstance(span, tuple) else span
        if at >= inputs:
            back.append((place, start, size_bytes))
        else:
            ctypes.memmove(address + start, bytes(place) if isinstance(place, bytearray) else place, size_bytes)
    return back
