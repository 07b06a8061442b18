"""Messages that are sent again with other contents: the same handle, scalar word, addresses and sizes as before."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastrpc.domains import Opened
    from fastrpc.invocations.messages import Back, Made, Span
    from fastrpc.memory import FastrpcMemory

Key: TypeAlias = "tuple[object, ...]"
_MAX_KEPT: Final = 16
_MAX_KEPT_BYTES: Final = 1 << 16  # of one: the copy of a larger one takes most of its call's time


def key_of(handle: int, word: int, spans: Sequence[Span]) -> Key:
    """What must be equal for a message to be sent again: for bytes to copy, their number."""
    return (
        handle,
        word,
        *[one if isinstance(one, tuple) else (one,) if isinstance(one, int) else len(one) for one in spans],
    )


class Kept(NamedTuple):
    """A message whose call has ended.

    Attributes:
        made: The message.
        opened: The object that it calls.
        changes: How often registered memory had changed when it was written.
    """

    made: Made
    opened: Opened
    changes: int


class KeptMessages:
    """The messages of one attachment; one that is being sent belongs to its caller alone."""

    def __init__(self, memory: FastrpcMemory) -> None:
        self._memory = memory
        self._kept: dict[Key, Kept] = {}

    def take(self, key: Key) -> Kept | None:
        """The message of a key, which is the caller's from now on."""
        return self._kept.pop(key, None)

    def is_current(self, kept: Kept, priority: int) -> bool:
        """Whether its addresses, its priority and its object still hold."""
        return kept.changes == self._memory.changes and kept.made.task[1] == priority and not kept.opened.ended

    def keep(self, key: Key, made: Made, opened: Opened) -> list[Made]:
        """Keep a message, unless it is large; returns those whose buffers the caller releases, perhaps this one."""
        if made.buffer.size_bytes > _MAX_KEPT_BYTES:
            return [made]
        kept = Kept(made, opened, self._memory.changes)
        if self._kept.setdefault(key, kept) is not kept:
            return [made]
        oldest = [*self._kept][:-_MAX_KEPT] if len(self._kept) > _MAX_KEPT else []
        return [one.made for one in (self._kept.pop(key, None) for key in oldest) if one is not None]

    def dropped(self, opened: Opened | None = None) -> list[Made]:
        """Forget all messages, or those of one object; the caller releases their buffers."""
        keys = [key for key, one in [*self._kept.items()] if opened is None or one.opened is opened]
        found = [self._kept.pop(key, None) for key in keys]
        return [one.made for one in found if one is not None]


def fill(made: Made, spans: Sequence[Span], inputs: int) -> None:
    """Copy the inputs of a call into a message."""
    address = made.buffer.address
    for at, start, size_bytes, _ in made.copies:
        if at < inputs:
            span = spans[at]
            source = span[0] if isinstance(span, tuple) else bytes(span) if isinstance(span, bytearray) else span
            ctypes.memmove(address + start, source, size_bytes)


def back_of(made: Made, spans: Sequence[Span], inputs: int) -> list[Back]:
    """The outputs of a call that are copied back: as ``Made.back`` of a message that is written anew."""
    found: list[Back] = []
    for at, start, size_bytes, _ in made.copies:
        if at >= inputs:
            span = spans[at]
            found.append((span[0] if isinstance(span, tuple) else span, start, size_bytes))
    return found
