"""An iDMA engine that promises only what a program may rely on: copies on the same channel are done in order.

A program does not say which channel a copy uses. Copies in the same direction between the same memories (DDR, bank 0,
bank 1) share a channel. The copies of a frame share one, which is known to its author. On one channel, a copy's bytes
move after those of earlier copies, and a wait for the copy covers these too. Between channels only a wait imposes an
order: a copy's bytes may move at any time between its issue and the wait that covers it.

Source: Halide, the Xtensa runtime, for copies with a channel argument,
https://github.com/halide/Halide/blob/xtensa-codegen/src/runtime/xtensa_dma.cpp
Emulator: which copies share a channel is not public; this is the least that a program can rely on if copies in
either direction, and those of ping and pong, may have channels of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from dsp_server.hardware.buffers import address_of
from dsp_server.hardware.cycles import IDMA_POLL_CYCLES
from dsp_server.hardware.descriptors import QUEUE_DEPTH, Descriptor, Idma

if TYPE_CHECKING:
    from dsp_server.hardware.cycles import CycleCounter
    from dsp_server.hardware.tile_manager import TileManager
    from dsp_server.hardware.transfers import Shape

Channel: TypeAlias = tuple[int | None, int | None] | None
"""TCM banks of destination and source, None for DDR; None for the frames' channel."""
FRAMES: Final[Channel] = None
GOES_ON: Final = 0.5
"""Probability that another copy moves before its wait, each time the op calls the engine."""


class ChannelIdma(Idma):
    """One core's engine, with channels.

    Args:
        counter: See Idma.
        tile_manager: See Idma; it tells which bank a tile is in.
        seed: When bytes move. None: at a wait, together with all copies issued earlier, as in Idma. A number: at times
            drawn from this seed, the same for the same calls in a task; copies not waited for by its end are lost.
        depth: See Idma.
    """

    left_says = "Its bytes may not have moved: a wait for another copy covers it only on the same channel."

    def __init__(
        self,
        counter: CycleCounter | None = None,
        tile_manager: TileManager | None = None,
        *,
        seed: int | None = None,
        depth: int = QUEUE_DEPTH,
    ) -> None:
        super().__init__(counter, tile_manager, depth=depth)
        self._seed, self._random = seed, Random()  # noqa: S311 - repeatable, for a test
        self._seeded_for = -1  # `last_before_task` of the task for which the draws began
        self._channels: dict[int, Channel] = {}  # for copies in the queue, by handle
        self._ends: dict[int | None, int] = {}  # likewise: their modeled ends
        self._moved: set[int] = set()  # copies in the queue whose bytes have moved

    def enqueue(self, dst: memoryview, src: memoryview, shape: Shape | None = None, where: str = "") -> int:
        """Do what Idma does; a copy without a line of code belongs to a frame."""
        handle = super().enqueue(dst, src, shape, where)
        self._channels[handle] = self._channel(dst, src) if where else FRAMES
        self._ends[handle] = self.queue[-1].end_cycle
        self._run_ahead()
        return handle

    def wait(self, handle: int) -> None:
        """Let modeled time pass until the copy and earlier ones on its channel are done; raises like Idma's."""
        begin = None if self.trace is None else self.trace.begin_wait(self)
        end_cycle = self._end_cycle(handle)
        if end_cycle is not None:
            self.counter.advance_to(end_cycle)
            self._complete_through(handle)
        if self.trace is not None and begin is not None:
            self.trace.note_wait(self, *begin)

    def wait_all(self) -> None:
        """Wait for every outstanding copy."""
        if self.queue:
            begin = None if self.trace is None else self.trace.begin_wait(self)
            self.counter.advance_to(self.queue[-1].end_cycle)
            self._run_ahead()
            self._complete(list(self.queue))
            if self.trace is not None and begin is not None:
                self.trace.note_wait(self, *begin)

    def poll(self) -> int:
        """Complete copies that have reached their modeled end; return how many are outstanding. Costs a poll."""
        now = self.counter.cycles
        self._run_ahead()
        self._complete([one for one in self.queue if one.end_cycle <= now])
        if self.queue:
            self.counter.advance_to(now + IDMA_POLL_CYCLES)
        return len(self.queue)

    def drain(self) -> list[Descriptor]:
        """Return the copies without waiting; their bytes move now, or never if a seed draws the order."""
        left = list(self.queue)
        if left:
            self.counter.advance_to(left[-1].end_cycle)
        if self._seed is None:
            self._move_all(left)
        self._complete(left, are_moved=True)
        nothing = memoryview(b"")
        return [one._replace(dst=nothing, src=nothing) for one in left]

    def channel_of(self, handle: int) -> Channel:
        """Return the channel of an outstanding copy."""
        return self._channels[handle]

    def _end_cycle(self, handle: int | None) -> int | None:
        end_cycle = self._ends.get(handle)
        if end_cycle is None:
            self._known(handle)
        return end_cycle

    def _complete_through(self, handle: int) -> None:
        before = [one for one in self.queue if one.handle <= handle]
        if self._seed is None:
            self._move_all(before)
        self._run_ahead()
        channel = self._channels[handle]
        self._complete([one for one in before if self._channels[one.handle] == channel])

    def _complete(self, done: list[Descriptor], *, are_moved: bool = False) -> None:
        """Take off the queue copies that a wait covers or that nobody waits for anymore."""
        if not are_moved:
            self._move_all(done)
        handles = {one.handle for one in done}
        self.queue = deque(one for one in self.queue if one.handle not in handles)
        self._moved -= handles
        for handle in handles:
            del self._channels[handle], self._ends[handle]
        if self.trace is not None:
            self.trace.note_completed(self)

    def _run_ahead(self) -> None:
        """Move the bytes of some copies before their waits."""
        if self._seed is None or not self.queue:
            return
        if self._seeded_for != self.last_before_task:
            self._seeded_for = self.last_before_task
            self._random.seed(self._seed)
        while self._random.random() < GOES_ON:
            first: dict[Channel, Descriptor] = {}
            for one in self.queue:
                if one.handle not in self._moved:
                    first.setdefault(self._channels[one.handle], one)
            if not first:
                return
            self._move_all([self._random.choice(list(first.values()))])

    def _move_all(self, copies: Iterable[Descriptor]) -> None:
        for one in copies:
            if one.handle not in self._moved:
                self._moved.add(one.handle)
                self._move(one)

    def _channel(self, dst: memoryview, src: memoryview) -> Channel:
        tm = self.tile_manager
        return None if tm is None else (tm.bank_at(address_of(dst)), tm.bank_at(address_of(src)))
