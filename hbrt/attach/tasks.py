"""The life of a task in the submitting process: frequent steps are single calls into C, rare ones are here.

A process leases slots and reserves one for each task. C fills it; a ``Carrier`` brings the task to its core and handles
it until it ends; ``Watcher`` objects observe. ``Direct`` is the carrier of a process that queues its tasks in the
board's mailbox; arm_client/transport has the others: a relay, a connection to another machine, the process's own cores,
routes. Waiting is implemented in native/mailbox/wait.c.

A handle is (client id, serial, slot) in one integer; a slot's current handle is stored, so that a stale handle differs
from a foreign one. Calls return a status and never raise; ``why`` has the message for a refusal.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from ctypes import addressof
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple, final

from hbrt.attach.refusals import Refusals
from hbrt.attach.slots import Slots
from hbrt.attach.waiting import Waiters
from hbrt.board.forked import mark, notice
from hbrt.ddr.layout import SLOT_COUNT
from hbrt.mailbox.handle import SERIAL_BITS, SLOT_MASK, serial_of
from hbrt.mailbox.native import ASK, NO_SLOT, native
from hbrt.mailbox.schedule import OF_ITS_OWNER
from hbrt.mailbox.spin import poll_budget_ns
from hbrt.mailbox.submission import unserved
from hbrt.mailbox.table import (
    FIRST_END,
    Answer,
    Mailbox,
    State,
)
from hbrt.profiles.work import NO_WORK, Work
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link
    from hbrt.attach.watcher import Watcher
    from hbrt.findings.record import Finding
    from hbrt.trace.ring import Ring, RingFile
    from hbrt.types import hbDSPRpcCtrlParam, hbSysMem

_REQUEST = struct.Struct("=4q4Q")  # hbrt_request
_CHECKED, _ELSEWHERE = 1, 2  # for hbrt_prepare: the blocks are checked; another board, or this process, runs it
# A plain integer: comparing with an enum member costs a call.
_DONE = int(FIRST_END)

_CANCELLED = b"The task was canceled before a core claimed it."


def new_client(link: Link, first_serial: int = 0) -> tuple[Any, object]:
    """Return an attachment in C, and an object that keeps the mapping while C may use it."""
    ffi, lib = native().ffi, native().lib
    layout, place = link.ddr.layout, ctypes.c_char.from_buffer(link.ddr.map)
    client = lib.hbrt_client_new(
        ffi.cast("void *", ctypes.addressof(place)),
        layout.file_bytes,
        layout._replace(core_count=len(link.core_doorbells)).pack_header(),
        link.client_id,
        link.doorbell,
        link.core_doorbells,
        link.urgent_bells or ffi.NULL,
        first_serial,
    )
    if client == ffi.NULL:
        raise MemoryError("Cannot allocate memory in C for this attachment.")
    return ffi.gc(client, lib.hbrt_client_free), place


class Lost(NamedTuple):
    """The end of a task that is no longer in a slot: its outcome is unknown."""

    status: int
    why: str
    answer: Answer


class Carrier:
    """The operations on a task: publish, cancel, drop, state. All but the first default to the mailbox's."""

    is_direct = False
    """Whether C may prepare and publish a task in one call."""
    reaches_accelerators = False
    """Whether ``Tasks.accelerate`` sends tasks to the board's accelerator cores."""
    is_asking = False
    """Whether a request to a board other than the link's is in progress, like ``Link.is_asking``."""
    tasks: Tasks

    def carry(self, tasks: Tasks) -> None:
        """Start carrying the tasks of a process; called before the first one."""
        self.tasks = tasks

    def elsewhere(self, cmd: int) -> int:  # noqa: ARG002 - routes go by it
        """Return the core mask of ``hbrt.mailbox.schedule`` for a command that no core of the board runs; else 0."""
        return 0

    def publish(self, handle: int, given: tuple[int, ...]) -> int:
        """Bring a task to its core.

        Args:
            handle: The task; its record is written, its state is SENT, and nobody else has it yet.
            given: As for ``Tasks.submit``.

        Returns:
            The handle; or a status, with its message passed to ``Refusals.refuse``, and then nobody has the task.
        """
        raise NotImplementedError

    def cancel(self, slot: int) -> bool:
        """End an unclaimed task, which stays in its slot; returns False if a core has claimed it, or may have."""
        tasks = self.tasks
        cancelled: int = tasks.lib.hbrt_cancel(tasks.client, slot, Status.HB_DSP_TASK_CANCELLED, _CANCELLED)
        return cancelled == 1

    def drop(self, slot: int, handle: int) -> None:  # noqa: ARG002 - the handle is not in use any more
        """Abandon an unfinished task: cancel a queued one, ignore the result of a running one.

        Its slot is reused later.
        """
        self.tasks.drop(slot)

    def state(self, handle: int, found: State) -> State:  # noqa: ARG002 - others ask
        """Return the state of an unfinished task, from its slot."""
        return found

    # -- around them

    def load(self, image: str | None, report: Callable[[Finding], None], recording: str | None = None) -> None:
        """Become a core of the board, with the ops of an image, where ops run in this process.

        Args:
            image: Its file; None for the packaged ops.
            report: Receives findings.
            recording: Directory for recording the calls, or None.

        Raises:
            BoardError: the image does not load.
        """

    def cause(self, handle: int) -> BaseException | None:  # noqa: ARG002 - only ops of this process have one
        """Return the exception of a failed op that ran in this process; None if only its text is known."""
        return None

    def own_ops(self) -> dict[int, str] | None:
        """Return numbers and names of the ops that run in this process; None if the board's cores run them."""
        return None

    def name_output(self, dtype: Any) -> None:
        """Set the element type of the output block of this thread's next task; None for bytes."""

    def discard_block(self, phy_addr: int) -> None:
        """Stop using a block that is about to be freed."""

    def follow_trace(self, ring: Ring | None) -> None:
        """Start recording other activity into a ring; None stops it."""

    def detach(self) -> list[Link]:
        """Before ``close``, leave other boards, on which this process then no longer has memory."""
        return []

    def close(self) -> None:
        """Close what this opened; no tasks are pending."""

    def detach_in_child(self) -> None:
        """In a forked child: drop connections and tasks, which are the parent's."""


class Direct(Carrier):
    """The process queues its tasks in the board's mailbox."""

    is_direct = reaches_accelerators = True

    def publish(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - the record has all
        """See ``Carrier.publish``."""
        tasks = self.tasks
        published: int = tasks.lib.hbrt_publish(tasks.client, handle)
        if published > 0:
            return published
        if published == ASK:  # this attachment is leaving the board
            return tasks.refusals.refuse(tasks.link.fault or Status.HB_DSP_NOT_RUNNING, tasks.link.why_faulty())
        return tasks.refusals.refuse(*unserved(tasks.link.core_count))


@final
class Tasks:
    """The tasks of this process on one board.

    Attributes:
        carrier: Brings them to their cores.
        watchers: Observers of the tasks.
        slots: The mailbox slots that this process leases.
        refusals: The reasons why calls fail.
        lost: Tasks whose slots went with their carrier, by handle, until they are released.
    """

    def __init__(self, link: Link, carrier: Carrier | None = None, *, polls: bool = True) -> None:
        """Use the slots that ``link`` leases.

        Args:
            link: This process's attachment.
            carrier: ``Direct`` by default.
            polls: Whether waits may poll before they sleep.
        """
        self.link = link
        self.client_id = link.client_id
        self.mailbox: Mailbox = link.mailbox
        self.map = self.mailbox.map
        self.watchers: list[Watcher] = []
        self.lost: dict[int, Lost] = {}
        self.carrier = carrier or Direct()
        self._abandoned: deque[tuple[int, object]] = deque()
        self.refusals = Refusals(link)
        self._traced: list[RingFile] = []
        self._open(polls=polls)
        self.carrier.carry(self)

    def _open(self, *, polls: bool) -> None:
        """Create the attachment in C."""
        link, module = self.link, native()
        ffi, self.lib = module.ffi, module.lib
        self.states, self.records = link.ddr.layout.states, link.ddr.layout.records
        # From the clock, so that handles of an earlier attachment or another process differ from these.
        self._first_serial = monotonic_ns() // 1000 & (1 << SERIAL_BITS - 1) - 1
        self.client, self._place = new_client(link, self._first_serial)
        held = ffi.buffer(self.lib.hbrt_client_handles(self.client), SLOT_COUNT * 8)
        self.handles = memoryview(held).cast("B").cast("Q")  # Python threads see what C writes
        self.slots = Slots(link, self.refusals, self.lib, self.client)
        if polls:
            self.lib.hbrt_client_polls(self.client, poll_budget_ns())
        self.waiters = Waiters(link, self.client)

    # -- submit -------------------------------------------------------------------------------------------------

    def submit(self, *given: int) -> int:
        """Queue a task; returns its handle (> 0), or a status (< 0) if nothing was queued.

        Args:
            given: Plain integers: command number, 0..0xffff; priority, 0..255, larger first; core mask, 0 for any core,
                or bit i for core i; customId, smaller first among equal priorities; physical address and size of the
                input block, zeros for none; those of the output block.
        """
        if not 0 <= given[2] < 1 << self.link.core_count and not self.carrier.elsewhere(given[0]):
            # Not a kind of core that a program can name.
            return self.refusals.refuse(*self.refusals.of_task(*given) or unserved(self.link.core_count))
        return self.accelerate(*given)

    def rpc(self, ctrl: hbDSPRpcCtrlParam, input: hbSysMem, output: hbSysMem) -> int:
        """Queue the task of hbDSPRpc on the fast path. Returns its handle, or 0 if ``submit`` must be used."""
        if self.watchers or not self.carrier.is_direct or self.link.fault or not mark[0]:
            return 0
        at = addressof(ctrl), addressof(input), addressof(output)
        try:  # with a single call in it: an interrupt before that finds an older task
            handle: int = self.lib.hbrt_rpc(self.client, *at)
        except BaseException:
            self._release_newest(ctrl.rpcCmd, 0, 0, 0, input.phyAddr, 0, output.phyAddr, 0)
            raise
        return handle if handle > 0 else 0  # noqa: FURB136 - an interrupt may come after a call

    def accelerate(self, *given: int) -> int:
        """Like ``submit``, for accelerator cores, too: bit i of the mask is core i; accelerators come last."""
        if (self.link.fault or not mark[0]) and (found := self.refusals.of_any_task(*given)) is not None:
            return self.refusals.refuse(*found)
        if self.watchers or not self.carrier.is_direct:
            return self._carry(*given)
        try:
            request = _REQUEST.pack(*given)
        except struct.error:
            return self._refuse_unpacked(*given)
        try:
            handle: int = self.lib.hbrt_submit(self.client, request, 0)
            return handle if handle > 0 else self._submit_rarely(self.lib.hbrt_submit, handle, request, 0, *given)
        except BaseException:
            self._release_newest(*given)
            raise

    def _carry(self, *given: int) -> int:
        """Queue a task in steps: C prepares it, watchers are notified, and its carrier takes it."""
        before, elsewhere = self.lib.hbrt_client_serial(self.client), self.carrier.elsewhere(given[0])
        try:
            handle = self._prepare(elsewhere, *given)
            if handle < 0:
                return handle
            for watcher in self.watchers:
                if refused := watcher.submitted(handle, given):
                    return self._take_back(handle, refused)
            published = self.carrier.publish(handle, given)
            return published if published > 0 else self._take_back(handle, published)
        except BaseException:
            self._release_newest(*given, since=before)
            raise

    def _prepare(self, elsewhere: int, *given: int) -> int:
        """Write a task into a slot; returns its handle, with state SENT, or a status."""
        cmd, priority, core_mask, *rest = given
        if elsewhere == OF_ITS_OWNER and (found := self.refusals.of_task(*given)) is not None:
            return self._refuse_task(given, *found)
        try:
            request = _REQUEST.pack(cmd, priority, elsewhere or core_mask, *rest)
        except struct.error:
            return self._refuse_unpacked(*given)
        checked = _ELSEWHERE if elsewhere else 0
        handle: int = self.lib.hbrt_prepare(self.client, request, checked)
        return handle if handle > 0 else self._submit_rarely(self.lib.hbrt_prepare, handle, request, checked, *given)

    def _submit_rarely(self, call: Any, answer: int, request: bytes, checked: int, *given: int) -> int:
        """Continue with a task that C did not accept in hbrt_submit or hbrt_prepare, or that no core serves."""
        if answer == ASK and not checked and (found := self.refusals.of_any_task(*given)) is not None:
            return self._refuse_task(given, *found)
        while answer in {ASK, NO_SLOT}:
            if answer == NO_SLOT:
                self.empty_released()
                slot = self.slots.take()
                if slot < 0:
                    return slot
                self.lib.hbrt_slots_give(self.client, (slot,), 1)
            answer = call(self.client, request, checked or _CHECKED)
            if answer == ASK:
                return self._refuse_unpacked(*given)
        return answer if answer > 0 else self.refusals.refuse(*unserved(self.link.core_count))

    def _take_back(self, handle: int, status: int) -> int:
        """Undo ``_prepare`` for a task that nobody has; returns the status."""
        slot = handle & SLOT_MASK
        if self._discard(handle):
            self.slots.release(slot)
        return status

    def _release_newest(self, *given: int, since: int = 0) -> None:
        """Undo a submission whose caller never gets its handle because a signal handler raised.

        Args:
            given: As for ``submit``.
            since: A serial from before it; older tasks stay.
        """
        cmd, _, _, _, input_phy, _, output_phy, _ = given
        handle: int = self.lib.hbrt_newest(self.client, cmd, input_phy, output_phy)
        if handle > 0 and serial_of(handle) > since:
            self.release(handle)

    def _refuse_task(self, given: tuple[int, ...], status: int, why: str) -> int:
        for watcher in self.watchers:
            watcher.refused(given, status, why)
        return self.refusals.refuse(status, why)

    def _refuse_unpacked(self, *given: int) -> int:
        """Refuse a task whose fields do not fit a slot; arguments as for ``submit``."""
        unfit = Status.HB_DSP_INVALID_ARGUMENT, f"The task {given} does not fit a slot."
        return self._refuse_task(given, *(self.refusals.of_task(*given) or unfit))

    def follow_trace(self, ring: Ring | None) -> None:
        """Have C record submissions and waits into a file next to a ring from now on; None stops it."""
        ffi, records, count = native().ffi, None, 0
        if ring is not None:
            try:
                file = ring.beside("calls")
            except OSError:
                return  # the disk is full
            self._traced.append(file)  # C may be in the middle of a call when the trace ends
            records, count = ffi.from_buffer(file.map) + file.start, file.records
        self.lib.hbrt_client_note(self.client, ffi.NULL if records is None else records, count)
        self.carrier.follow_trace(ring)

    def lend(self) -> int:
        """Address of the C attachment, for C callers that queue and wait by themselves; 0 if they must not."""
        if self.watchers or not self.carrier.is_direct:
            return 0
        self.waiters.watch_lease()
        return int(native().ffi.cast("uintptr_t", self.client))

    # -- slots --------------------------------------------------------------------------------------------------

    def release_later(self, handle: int, keep: object) -> None:
        """Release a task at a later call, and drop ``keep`` when it has ended: finalizers must not take locks."""
        self._abandoned.append((handle, keep))

    def release_abandoned(self) -> None:
        """Release the finished tasks of ``release_later``; cancel unclaimed ones."""
        for _ in range(len(self._abandoned)):
            try:
                handle, keep = self._abandoned.popleft()
            except IndexError:
                return  # another thread took the last one
            if self.state(handle) == State.READY:
                self.cancel(handle)
            state = self.state(handle)
            if state is None or state >= FIRST_END or self.link.fault:
                self.release(handle)
            else:
                self._abandoned.append((handle, keep))

    def empty_released(self) -> None:
        """Empty the slots of tasks that were released while running and have ended since, as at an orderly exit."""
        self.release_abandoned()
        self.slots.release_ended(self.carrier.cancel)

    # -- wait ---------------------------------------------------------------------------------------------------

    def wait(self, handle: int, timeout_ms: float) -> int:
        """Wait for a task; returns its status, 0 for success.

        Args:
            handle: The result of submit.
            timeout_ms: Milliseconds; <= 0 waits forever. On expiry returns HB_DSP_TIMEOUT; the task keeps running.
        """
        if not mark[0]:
            notice()
        for watcher in self.watchers:
            if status := watcher.waiting(handle, timeout_ms):
                return status
        slot = handle & SLOT_MASK  # hbrt/attach/wait_sites.py finds it here
        if not self.waiters.is_lease_watched and not self.has_ended(handle):
            self.waiters.watch_lease()
        try:
            state = self.waiters.wait(handle, timeout_ms)
        except OverflowError:
            return self.refuse_handle(handle)
        if self.watchers:
            self.has_ended(handle)
        if state == _DONE:
            return 0
        if state > _DONE:
            return self.refusals.failed(slot)
        return self.refuse_handle(handle) if state == ASK else self.refusals.not_ended(timeout_ms)

    def finish(self, handle: int) -> int:
        """Wait for a task without a time limit, and release it if it succeeded; otherwise like ``wait``."""
        slot = handle & SLOT_MASK
        if mark[0] and not self.watchers:
            self.waiters.watch_lease()
            state: int = self.lib.hbrt_finish(self.client, handle)
            if state == _DONE:
                return 0
            if state > _DONE:
                return self.refusals.failed(slot)
        return self.wait(handle, 0) or self.release(handle)

    # -- the outcome --------------------------------------------------------------------------------------------

    def state(self, handle: int) -> State | None:
        """Return a task's state, None if the handle is not live; a task on its way to its core is READY."""
        slot = handle & SLOT_MASK
        if self.handles[slot] != handle:
            return State.LOST if handle in self.lost else None
        found = State(self.map[self.states + slot])
        if found < _DONE:
            found = self.carrier.state(handle, found)
        if self.watchers:
            self.has_ended(handle)
        return State.READY if found is State.SENT else found

    def has_ended(self, handle: int) -> bool:
        """Whether there is nothing to wait for: the task has ended, or the handle is not live."""
        slot = handle & SLOT_MASK
        has_ended = self.handles[slot] != handle or self.map[self.states + slot] >= _DONE
        if has_ended:
            for watcher in self.watchers:
                watcher.ended(handle)
        return has_ended

    def answer(self, handle: int) -> Answer:
        """Return core, result, times and cycles of a task."""
        lost = self.lost.get(handle)
        return self.mailbox.answer(handle & SLOT_MASK) if lost is None else lost.answer

    def work(self, handle: int) -> Work:
        """Return the cycles that a task's op charged."""
        return NO_WORK if handle in self.lost else self.mailbox.work(handle & SLOT_MASK)

    def text(self, handle: int) -> str:
        """Return the core's text for a failed task: a message, or the op's traceback."""
        lost = self.lost.get(handle)
        return self.mailbox.text(handle & SLOT_MASK) if lost is None else lost.why

    def why(self) -> str:
        """Return the message for this thread's last refusal."""
        return self.refusals.why()

    # -- release ------------------------------------------------------------------------------------------------

    def release(self, handle: int) -> int:
        """Release a task: a queued one is canceled, a running one finishes and its result is dropped."""
        for watcher in self.watchers:
            watcher.released(handle)
        if not mark[0]:
            notice()
        else:
            try:
                if self.lib.hbrt_release(self.client, handle) > 0:
                    return 0
            except OverflowError:
                return self.refuse_handle(handle)
        slot = handle & SLOT_MASK
        if not self._discard(handle):
            return 0 if self.lost.pop(handle, None) is not None else self.refuse_handle(handle)
        if self.link.fault:
            return 0
        if self.slots.has_ended(slot):
            self.slots.release(slot)
        else:
            self.carrier.drop(slot, handle)
        return 0

    def drop(self, slot: int) -> None:
        """Cancel a queued task; let a running one finish, and empty its slot some time later."""
        try:
            self.carrier.cancel(slot)
            self.waiters.wake()
        finally:
            self.slots.release_later(slot)

    def lose(self, handle: int, end: Lost) -> bool:
        """End a task without its slot, which the caller then drops; returns False if it was released meanwhile."""
        self.lost[handle] = end
        if self._discard(handle):
            return True
        self.lost.pop(handle, None)
        return False

    def cancel(self, handle: int) -> bool:
        """Cancel a queued task, keep its handle; False if it is running or ended, or the claim lock is unavailable."""
        notice()
        slot = handle & SLOT_MASK
        if self.handles[slot] != handle or self.link.fault or not self.carrier.cancel(slot):
            return False
        self.waiters.wake()
        return True

    def _discard(self, handle: int) -> bool:
        """Remove a handle from the table; returns False if it is not live."""
        try:
            found: int = self.lib.hbrt_forget(self.client, handle)
        except OverflowError:
            return False
        return found > 0

    def live_handles(self) -> list[int]:
        """Return the unreleased handles."""
        self.release_abandoned()
        return [handle for handle in self.handles if handle] + list(self.lost)

    def close(self) -> None:
        """End every wait with the link's fault."""
        self.carrier.close()
        self._discard_all()
        self.waiters.close()
        self.carrier = Carrier()  # break the cycle, which would keep the board's memory

    def _discard_all(self) -> None:
        self.lost.clear()
        for slot in range(SLOT_COUNT):
            self.handles[slot] = 0

    def detach_in_child(self) -> None:
        """In a forked child: drop the parent's tasks; every handle is refused with the link's fault."""
        self._discard_all()
        self._abandoned.clear()
        self.slots.detach_in_child()
        self.carrier.detach_in_child()

    def refuse_handle(self, handle: int) -> int:
        """Refuse a handle of no live task, saying which kind it is."""
        if (lost := self.lost.get(handle)) is not None:
            return self.refusals.refuse(lost.status, lost.why)
        last: int = self.lib.hbrt_client_serial(self.client)
        return self.refusals.no_task(handle, range(self._first_serial + 1, last + 1))
