"""Repeated invocations with the same, all shared, arguments: their messages are resent unchanged."""

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
    """An invocation whose message is on the board: all its buffers are shared, so it can be resent unchanged."""

    buffer: Buffer
    task: tuple[int, ...]
    tally: Tally
    opened: Opened
    clean: list[tuple[int, int]]
    invalidate: list[tuple[int, int]]
    on_forgotten: list[Callable[[], None]]  # called when it must not be sent anymore
    sent_by_c: list[Callable[[], int]]  # how often the library has sent it, besides the tally


class ReadyInvocations:
    """The ready invocations of one attachment, by handle, scalar word and the bytes of the argument array.

    Args:
        memory: The memory that holds the arguments; when any of it is freed, all messages are dropped.
        counts: Receives the calls of dropped invocations.
    """

    def __init__(self, memory: FastrpcMemory, counts: Counts) -> None:
        self._memory, self._counts = memory, counts
        self._ready: dict[tuple[int, int, bytes], Ready] = {}
        self._generation = 0  # of the memory, at that time
        memory.on_removed = self.discard_all

    def find(self, handle: int, word: int, raw: bytes) -> Ready | None:
        """The message of an invocation if it is still valid, otherwise None."""
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
        """A handle was closed."""
        for key in [key for key, ready in self._ready.items() if ready.opened is opened]:
            self._discard(self._ready.pop(key))

    def discard_all(self) -> None:
        """Drop all messages, so that none is resent."""
        # Another thread may be sending one: its buffer is freed when that has ended.
        ready, self._ready = self._ready, {}
        for one in ready.values():
            self._discard(one)

    def _discard(self, ready: Ready) -> None:
        for call in ready.on_forgotten:
            call()
        self._counts.keep(ready.tally)

    def statistics(self) -> Statistics:
        """The totals of their calls."""
        total = Statistics()
        for ready in [*self._ready.values()]:
            total = added(total, ready.tally.total(sum(count() for count in ready.sent_by_c)))
        return total
