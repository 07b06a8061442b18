"""Invocations that are made again with the same arguments, all shared: their messages are sent as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fastrpc.counting import Counts, Statistics, Tally, added

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.arrays import Buffer
    from fastrpc.domains import Opened
    from fastrpc.invocations.messages import Made
    from fastrpc.memory import FastrpcMemory

_MAX_READY: Final = 256


class Ready(NamedTuple):
    """An invocation whose message lies on the board: all its buffers are shared, so that it can be sent as it is."""

    buffer: Buffer
    task: tuple[int, ...]
    tally: Tally
    opened: Opened
    clean: list[tuple[int, int]]
    invalidate: list[tuple[int, int]]
    on_forgotten: list[Callable[[], None]]  # called when it is to be sent no more
    sent_by_c: list[Callable[[], int]]  # how often the library has sent it, beside the tally


class ReadyInvocations:
    """Those of one attachment, by handle, scalar word and the bytes of the array of arguments.

    Args:
        memory: Where the arguments lie; when something of it goes, all messages go.
        counts: Get the calls of those that are forgotten.
    """

    def __init__(self, memory: FastrpcMemory, counts: Counts) -> None:
        self._memory, self._counts = memory, counts
        self._ready: dict[tuple[int, int, bytes], Ready] = {}
        self._generation = 0  # of the memory, then
        memory.on_removed = self.discard_all

    def find(self, handle: int, word: int, raw: bytes) -> Ready | None:
        """The message of an invocation, which is good still; None for none."""
        found = self._ready.get((handle, word, raw))
        if found is None or self._generation != self._memory.generation or found.opened.ended:
            return None
        return found

    def remember(self, key: tuple[int, int, bytes], made: Made, opened: Opened) -> None:
        """Keep a message."""
        if self._generation != self._memory.generation or len(self._ready) >= _MAX_READY:
            self.discard_all()
            self._generation = self._memory.generation
        self._ready[key] = Ready(made.buffer, made.task, Tally(made.each), opened, made.clean, made.invalidate, [], [])

    def discard_of(self, opened: Opened) -> None:
        """A handle is closed."""
        for key in [key for key, ready in self._ready.items() if ready.opened is opened]:
            self._discard(self._ready.pop(key))

    def discard_all(self) -> None:
        """Send none of them again."""
        ready, self._ready = self._ready, {}  # another thread may be sending one: its buffer goes when that has ended
        for one in ready.values():
            self._discard(one)

    def _discard(self, ready: Ready) -> None:
        for call in ready.on_forgotten:
            call()
        self._counts.keep(ready.tally)

    def statistics(self) -> Statistics:
        """What their calls have added."""
        total = Statistics()
        for ready in [*self._ready.values()]:
            total = added(total, ready.tally.total(sum(count() for count in ready.sent_by_c)))
        return total
