"""The iDMA engine: takes descriptors now, moves their bytes later, one after another.

On the chip a transfer is asynchronous, and a program that uses the data before waiting for it is wrong. So here,
too, bytes move only when a descriptor completes: when it is waited for, or polled after its modeled end, together
with all descriptors issued before it. An op that never waits sees the old bytes.

Modeled time: the engine works on one descriptor at a time, in the order of issue, while the core computes; see
`cycles.py` for the costs. A poll that finds a descriptor not done advances the clock slightly, so that polling
loops end.

Source: DSP development guide (J5 OE), 10.2.3.3.6 PINGPONG DMA, for the calls' shapes and in-order polling,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html;
Halide, the Xtensa runtime,
https://github.com/halide/Halide/blob/xtensa-codegen/src/runtime/xtensa_dma.cpp
Emulator: error codes, queue depth, costs and the moment at which bytes move are its choice. A transfer across the
boundary between DRAM0 and DRAM1, an error on the chip, cannot be expressed: each bank is a buffer of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from dsp_server.hardware import cycles
from dsp_server.hardware.buffers import address_of, bytes_view, caller_line
from dsp_server.hardware.cycles import IDMA_ISSUE_CYCLES, IDMA_POLL_CYCLES, CycleCounter, idma_cycles
from dsp_server.hardware.transfers import (
    IdmaError,
    QueueFull,
    Shape,
    UnknownHandle,
    checked_copy,
    checked_copy_2d,
    move_rows,
)
from hbrt.findings.text import counted
from hbrt.profiles.profile import active
from hbrt.profiles.work import DESCRIPTORS, DMA_BYTES, DMA_CYCLES, ROWS

if TYPE_CHECKING:
    from dsp_server.hardware.buffers import BufferLike
    from dsp_server.hardware.engine_trace import EngineTrace
    from dsp_server.hardware.tile_manager import TileManager

QUEUE_DEPTH: Final = active().dsp_whole("idma.queue_depth")


class Descriptor(NamedTuple):
    """A transfer that was issued; `end_cycle` is its modeled end, `where` the line that issued it."""

    handle: int
    dst: memoryview
    src: memoryview
    size_bytes: int
    shape: Shape | None
    end_cycle: int
    where: str

    def __str__(self) -> str:
        rows = f" in {self.shape.num_rows} rows" if self.shape else ""
        return (
            f"descriptor {self.handle}, {counted(self.size_bytes, 'byte')}{rows}, issued at {self.where or 'a frame'}"
        )


class CopyWatcher(Protocol):
    """Watches an op's copies."""

    def issued(self, dst: memoryview, src: memoryview, shape: Shape | None, where: str) -> None:
        """Called after a copy was issued, at a line of the op or in a frame."""

    def moving(self, *views: memoryview) -> AbstractContextManager[None]:
        """Wrap the moving of bytes by the engine."""


class Idma:
    """One core's iDMA engine and its queue.

    Args:
        counter: The core's cycle counter; None uses `cycles.current()` at each call.
        tile_manager: The core's TCM, to count bank conflicts; None counts none.
        depth: Maximum number of outstanding descriptors.
    """

    left_says = "Its bytes had not moved."
    """What can be said about a copy that an op did not wait for."""

    def __init__(
        self,
        counter: CycleCounter | None = None,
        tile_manager: TileManager | None = None,
        *,
        depth: int = QUEUE_DEPTH,
    ) -> None:
        self._counter = counter
        self.tile_manager = tile_manager
        self.depth = depth
        self.last_error = ""
        self.polled = 0  # handle of the last poll; the heartbeat reads it to say what the op waits for
        self._last_failure = (0, "")  # error code, and line of the call
        self.queue: deque[Descriptor] = deque()
        self.watcher: CopyWatcher | None = None
        self.trace: EngineTrace | None = None
        self.last_handle = 0
        self.last_before_task = 0  # handles up to this one are from earlier tasks
        # Receives a sentence about a wait for something no copy returned, and its line; then the wait counts as done.
        self.on_unknown: Callable[[str, str], None] | None = None
        self._busy_until = 0

    def begin_task(self) -> None:
        """Mark the handles and failures so far as earlier tasks'."""
        self.last_before_task = self.last_handle
        self._last_failure = (0, "")

    @property
    def counter(self) -> CycleCounter:
        """The cycle counter that times the transfers."""
        return self._counter or cycles.current()

    @property
    def outstanding(self) -> int:
        """Number of descriptors that have not completed. Reading it costs no modeled time."""
        return len(self.queue)

    def copy(self, dst: BufferLike, src: BufferLike, size_bytes: int | None = None) -> int:
        """Queue a copy of `size_bytes` from the start of `src` to the start of `dst`.

        Args:
            dst: Contiguous writable buffer of any item type, in DDR or TCM.
            src: Contiguous buffer; its bytes are read when the descriptor completes.
            size_bytes: Length; None if both buffers have the same length.

        Returns:
            The descriptor's handle, 1 or more.

        Raises:
            BadTransfer: a size beyond either buffer, overlapping buffers, or an unusable buffer.
            QueueFull: the queue is full; wait for some descriptors first.
        """
        to, from_ = checked_copy(dst, src, size_bytes)
        return self.enqueue(to, from_, where=caller_line())

    def copy_2d(
        self,
        dst: BufferLike,
        src: BufferLike,
        row_bytes: int,
        num_rows: int,
        *,
        src_pitch_bytes: int,
        dst_pitch_bytes: int,
    ) -> int:
        """Queue a copy of `num_rows` rows of `row_bytes`; pitches are in bytes, not in elements.

        Returns:
            The descriptor's handle, 1 or more.

        Raises:
            BadTransfer: see `copy`, or a pitch shorter than a row.
            QueueFull: the queue is full; wait for some descriptors first.
        """
        asked = Shape(row_bytes, num_rows, src_pitch_bytes, dst_pitch_bytes)
        to, from_, shape = checked_copy_2d(dst, src, asked)
        return self.enqueue(to, from_, shape, caller_line())

    def enqueue(self, dst: memoryview, src: memoryview, shape: Shape | None = None, where: str = "") -> int:
        """Queue views that have already been checked: for loops over tiles, which check only once.

        Without a shape, both views are flat and of equal length.

        Raises:
            QueueFull: the queue is full; wait for some descriptors first.
        """
        queue = self.queue
        if len(queue) >= self.depth:
            raise QueueFull(f"{len(queue)} iDMA descriptors are outstanding, the maximum: wait for some of them first.")
        if self.watcher is not None:
            self.watcher.issued(dst, src, shape, where)
        size_bytes, num_rows = (dst.nbytes, 1) if shape is None else (shape[0] * shape[1], shape[1])
        counter = self._counter or cycles.current()
        counter.cycles += IDMA_ISSUE_CYCLES
        moving, work = idma_cycles(size_bytes, num_rows), counter.work
        work[DESCRIPTORS] += 1
        work[ROWS] += num_rows - 1
        work[DMA_BYTES] += size_bytes
        work[DMA_CYCLES] += moving
        end_cycle = max(counter.cycles, self._busy_until) + moving
        self._busy_until = end_cycle
        self.last_handle = handle = self.last_handle + 1
        queue.append(Descriptor(handle, dst, src, size_bytes, shape, end_cycle, where))
        if self.trace is not None:
            self.trace.note_issued(self)
        return handle

    def desc_done(self, handle: int) -> bool:
        """Poll: True if the descriptor's modeled end has passed; its bytes have then moved.

        Raises:
            UnknownHandle: no descriptor in this task had this handle.
        """
        end_cycle = self._end_cycle(handle)
        self.polled = handle if type(handle) is int and handle > 0 else 0  # others are reported by the dma check
        if end_cycle is None:
            return True
        counter = self._counter or cycles.current()
        if counter.cycles < end_cycle:
            counter.advance_to(counter.cycles + IDMA_POLL_CYCLES)
            return False
        self._complete_through(handle)
        return True

    def wait(self, handle: int) -> None:
        """Let modeled time pass until this descriptor and all those issued before it are done.

        Raises:
            UnknownHandle: no descriptor in this task had this handle.
        """
        queue, trace = self.queue, self.trace
        begin = None if trace is None else trace.begin_wait(self)
        at = handle - self.last_handle + len(queue) - 1  # as in _end_cycle; inlined because ops mostly wait
        if 0 <= at < len(queue):
            (self._counter or cycles.current()).advance_to(queue[at].end_cycle)
            if self.watcher is not None:
                self._complete_through(handle)
                at = -1
            for _ in range(at + 1):
                _, dst, src, _, shape, _, where = queue.popleft()  # noqa: RUF059 - line_of_copy reads it
                if shape is None:
                    dst[:] = src
                else:
                    move_rows(dst, src, shape)
        else:
            self._end_cycle(handle)
        if trace is not None and begin is not None:
            trace.note_wait(self, *begin)

    def wait_all(self) -> None:
        """Wait for every outstanding descriptor."""
        if self.queue:
            self.wait(self.last_handle)

    def poll(self) -> int:
        """Complete descriptors that have reached their modeled end; return how many are outstanding. Costs a poll."""
        now = self.counter.cycles
        while self.queue and self.queue[0].end_cycle <= now:
            self._move(self.queue.popleft())
        if self.trace is not None:
            self.trace.note_completed(self)
        if self.queue:
            self.counter.advance_to(now + IDMA_POLL_CYCLES)
        return len(self.queue)

    @property
    def busy_until(self) -> int:
        """The modeled cycle at which the engine will have finished everything issued."""
        return self._busy_until

    def resume(self, copies: list[Descriptor], last_handle: int, busy_until: int, polled: int) -> None:
        """Take over from the engine in C, with its outstanding copies; this engine's queue must be empty."""
        self.queue.extend(copies)
        self.last_handle, self._busy_until, self.polled = last_handle, busy_until, polled

    def account(self, now: int, busy_until: int, issued: int, work: Iterable[int]) -> None:
        """Take over the clock of a compiled frame that issued this many descriptors and moved their bytes itself.

        Only while nothing is outstanding: handles in the queue are consecutive. `work` is in the order of Work.
        """
        counter = self.counter
        counter.cycles = now
        counter.add_work(work)
        self._busy_until = max(self._busy_until, busy_until)
        self.last_handle += issued

    def drain(self) -> list[Descriptor]:
        """Complete and return the descriptors without waiting: a core calls this at the end of an op.

        The returned records have empty views, so that they do not keep memory mapped.
        """
        nothing = memoryview(b"")
        forgotten = [descriptor._replace(dst=nothing, src=nothing) for descriptor in self.queue]
        self.wait_all()
        return forgotten

    def note_compute(self, *buffers: BufferLike) -> None:
        """Declare that the core now computes on these buffers: transfers in flight in their banks are conflicts.

        The chip's banks serve one access at a time, so ping and pong belong in different banks. Counted in
        `TileManager.bank_conflicts`.
        """
        tm = self.tile_manager
        if tm is None or not self.queue:
            return
        banks = {tm.bank_at(address_of(bytes_view(buffer))) for buffer in buffers} - {None}
        now = self.counter.cycles
        for descriptor in self.queue:
            if descriptor.end_cycle > now:
                for view in (descriptor.dst, descriptor.src):
                    bank = tm.bank_at(address_of(view))
                    if bank is not None and bank in banks:
                        tm.bank_conflicts[bank] += 1

    def status_of(self, call: Callable[[], int]) -> int:
        """Return what `call` returns or, as C does, the code of the IdmaError it raises, keeping the message."""
        try:
            return call()
        except IdmaError as error:
            self.last_error, self._last_failure = str(error), (error.code, caller_line())
            return error.code

    def _known(self, handle: int | None) -> int:
        if handle is not None and self.last_before_task < handle <= self.last_handle:
            return handle
        why, (code, _) = self._why_unknown(handle), self._last_failure
        if self.on_unknown is None or (code and handle == code):  # not by chance the value that a failed copy returned
            raise UnknownHandle(why)
        self.on_unknown(why, caller_line())
        return 0

    def _end_cycle(self, handle: int | None) -> int | None:
        """Modeled end of an outstanding descriptor; None if it has completed."""
        at = self._known(handle) - (self.last_handle - len(self.queue)) - 1  # handles in the queue are consecutive
        return self.queue[at].end_cycle if at >= 0 else None

    def _why_unknown(self, handle: int | None) -> str:
        """Explain a wait for something that is no handle: on the chip it would never end, or end at once by chance."""
        at = f"{handle} at {caller_line()}"
        if handle is not None and handle < 0:
            code, where = self._last_failure
            is_code, why = "may be", ""
            if code == handle:
                is_code, why = "is", f": {self.last_error} (at {where})"
            return (
                f"An op waits for iDMA handle {at}, which {is_code} the code of a copy or a frame that failed{why}. "
                "Check the returned value and, if it is negative, return an error before you wait."
            )
        has_copied = self.last_handle > self.last_before_task
        last = f"the last handle of a copy is {self.last_handle}" if has_copied else "no copy was started yet"
        if handle is not None and 0 < handle <= self.last_before_task:
            last = f"an earlier task used it, and in this task {last}"
        return (
            f"An op waits for iDMA handle {at}, which no copy has set; {last}. Start the copy before the wait, and "
            "wait for what it returned: for the first tiles there is nothing to wait for."
        )

    def _complete_through(self, handle: int) -> None:
        queue = self.queue
        while queue and queue[0].handle <= handle:
            self._move(queue.popleft())
        if self.trace is not None:
            self.trace.note_completed(self)

    def _move(self, descriptor: Descriptor) -> None:
        watcher = self.watcher
        with nullcontext() if watcher is None else watcher.moving(descriptor.dst, descriptor.src):
            if descriptor.shape is None:
                descriptor.dst[:] = descriptor.src
            else:
                move_rows(descriptor.dst, descriptor.src, descriptor.shape)


def line_of_copy(frame: FrameType) -> str:
    """Return ``file:line`` that issued the copy whose bytes this module's frame moves; empty for other frames."""
    if frame.f_code is Idma.wait.__code__:
        return str(frame.f_locals.get("where", ""))
    descriptor = frame.f_locals.get("descriptor") if frame.f_code is Idma._move.__code__ else None  # noqa: SLF001
    return descriptor.where if isinstance(descriptor, Descriptor) else ""


_current = Idma()


def current() -> Idma:
    """Return the engine of this process's core; there always is one, so an op can run without a core around it."""
    return _current


def install(idma: Idma) -> Idma:
    """Make `idma` current and return the previous engine, as a core does for an op that interrupts another."""
    global _current
    before, _current = _current, idma
    return before
