"""The life of a task in the process that submits it: a frequent step is one call into C, a rare one is here.

A process leases slots and reserves one for each task. C fills it; a ``Carrier`` brings the task to its core, and has to
do with it until it has ended; ``Watcher`` objects look on. ``Direct`` is the carrier of a process that queues its tasks
in the board's mailbox; arm_client/transport has the others: a relay, a connection to another machine, the process's own
cores, routes. How waiting is done is in native/mailbox/wait.c.

A handle is (client id, serial, slot) in one integer; a slot's present handle is remembered, so that a stale handle
differs from a foreign one. Calls answer with a status and never raise; ``why`` has the sentence behind a refusal.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections import deque
from ctypes import addressof
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple, final

from hbrt.attach.question import Question
from hbrt.attach.waiting import Waiters
from hbrt.board.forked import mark, notice
from hbrt.ddr.layout import SLOT_COUNT, SLOT_RECORD_BYTES
from hbrt.mailbox import submission
from hbrt.mailbox.handle import SERIAL_BITS, SLOT_MASK, DeadHandle, kind_of, serial_of
from hbrt.mailbox.native import ASK, NO_SLOT, native
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD, OF_ITS_OWNER
from hbrt.mailbox.spin import poll_budget_ns
from hbrt.mailbox.submission import Refusal, unserved
from hbrt.mailbox.table import (
    ANSWER_OFFSET,
    CORE_MASK,
    CORE_MASK_AT,
    FIRST_END,
    RESULT,
    Actor,
    Answer,
    Mailbox,
    Request,
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

SLOTS_AT_ONCE = 64
_REQUEST = struct.Struct("=4q4Q")  # hbrt_request
_CHECKED, _ELSEWHERE = 1, 2  # of hbrt_prepare: the blocks are checked; another board, or this process, runs the task
# Plain integers: comparing with a member of an enum costs a call.
_EMPTY, _SENT, _RUNNING, _DONE = int(State.EMPTY), int(State.SENT), int(State.RUNNING), int(FIRST_END)

_CANCELLED = b"The task was cancelled before a core claimed it."


class _FreeSlots(list[int]):
    """The unused slots: those in this list, safe from handlers of signals, and those in C."""

    def __init__(self, client: Any, lib: Any) -> None:
        super().__init__()
        self._client, self._lib = client, lib

    def __len__(self) -> int:
        count: int = self._lib.hbrt_slot_count(self._client)
        return super().__len__() + count

    def pop(self) -> int:  # type: ignore[override]  # takes the last one
        try:
            return super().pop()
        except IndexError:
            slot: int = self._lib.hbrt_slot_take(self._client)
            if slot < 0:
                raise
            return slot


class Lost(NamedTuple):
    """The end of a task that is in no slot any more: nobody says what became of it."""

    status: int
    why: str
    answer: Answer


class Carrier:
    """Publish, cancel, drop and state: the verbs of a task. All but the first are the mailbox's unless overridden."""

    is_direct = False
    """Whether C may prepare and publish a task in one call."""
    reaches_accelerators = False
    """Whether ``Tasks.accelerate`` brings tasks to the board's accelerator cores."""
    is_asking = False
    """Whether a request to a board other than the link's is under way, as ``Link.is_asking``."""
    tasks: Tasks

    def carry(self, tasks: Tasks) -> None:
        """Carry the tasks of a process from now on; before the first one."""
        self.tasks = tasks

    def elsewhere(self, cmd: int) -> int:  # noqa: ARG002 - routes go by it
        """The core mask of ``hbrt.mailbox.schedule`` for a command that no core of the board runs; 0 for any other."""
        return 0

    def publish(self, handle: int, given: tuple[int, ...]) -> int:
        """Bring a task to its core.

        Args:
            handle: The task, whose record is written, and which nobody else has yet: its state is SENT.
            given: As for ``Tasks.submit``.

        Returns:
            The handle; or a status, whose sentence ``Tasks.refuse`` has been given, and then nobody has the task.
        """
        raise NotImplementedError

    def cancel(self, slot: int) -> bool:
        """End a task that no core has claimed, which stays in its slot; False when one has, or it cannot be told."""
        tasks = self.tasks
        cancelled: int = tasks.lib.hbrt_cancel(tasks.client, slot, Status.HB_DSP_TASK_CANCELLED, _CANCELLED)
        return cancelled == 1

    def drop(self, slot: int, handle: int) -> None:  # noqa: ARG002 - the handle is not in use any more
        """Give up a task that has not ended: a queued one is cancelled, of a running one nobody hears any more.

        Its slot is used again later.
        """
        self.tasks.drop(slot)

    def state(self, handle: int, found: State) -> State:  # noqa: ARG002 - others ask
        """The state of a task that has not ended, by what its slot says."""
        return found

    # -- around them

    def load(
        self, image: str | None, report: Callable[[Finding], None], recording: tuple[str, int] | None = None
    ) -> None:
        """Become a core of the board, with the ops of an image, where ops run in this process.

        Args:
            image: Its file; None for the packaged ops.
            report: Takes findings.
            recording: Directory and limit of a recording of the calls, or None.

        Raises:
            BoardError: the image does not load.
        """

    def cause(self, handle: int) -> BaseException | None:  # noqa: ARG002 - only ops of this process have one
        """The exception of a failed task's op that ran in this process; None where only its text is known."""
        return None

    def own_ops(self) -> dict[int, str] | None:
        """Command numbers and names of the ops that run in this process; None where the board's cores run them."""
        return None

    def name_output(self, dtype: Any) -> None:
        """Say what the elements are of the output block of this thread's next task; None for bytes."""

    def discard_block(self, phy_addr: int) -> None:
        """Have nothing more to do with a block that is about to be freed."""

    def follow_trace(self, ring: Ring | None) -> None:
        """Note what else this does into a ring from now on, or with None no more."""

    def leave(self) -> list[Link]:
        """Before ``close``: the attachments to other boards, on which this process then has no memory anymore."""
        return []

    def close(self) -> None:
        """Close what this opened; no task is under way."""

    def detach_in_child(self) -> None:
        """In a forked child: connections and tasks are the parent's."""


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
            return tasks.refuse(tasks.link.fault or Status.HB_DSP_NOT_RUNNING, tasks.link.why_faulty())
        return tasks.refuse(*unserved(tasks.link.core_count))


@final
class Tasks:
    """The tasks of this process on one board.

    Attributes:
        carrier: Brings them to their cores.
        watchers: Who looks on.
        lost: Tasks that have left their slots with their carrier, by handle, until they are released.
    """

    def __init__(self, link: Link, carrier: Carrier | None = None, *, polls: bool = True) -> None:
        """Use the slots that ``link`` leases.

        Args:
            link: This process's attachment.
            carrier: ``Direct`` unless another one is given.
            polls: Whether waits may poll before they sleep.
        """
        self.link = link
        self.client_id = link.client_id
        self.mailbox: Mailbox = link.mailbox
        self.map = self.mailbox.map
        self.watchers: list[Watcher] = []
        self.lost: dict[int, Lost] = {}
        self.carrier = carrier or Direct()
        # Released while queued or running: emptied when they have ended. The thread that takes a slot out owns it.
        self._dropped: dict[int, None] = {}
        self._abandoned: deque[tuple[int, object]] = deque()
        self._lock = threading.RLock()  # a signal's handler may submit in the middle of a submission
        self._texts = threading.local()
        self._traced: list[RingFile] = []
        self._open(polls=polls)
        self.carrier.carry(self)

    def _open(self, *, polls: bool) -> None:
        """Make the attachment in C."""
        link, module = self.link, native()
        ffi, self.lib = module.ffi, module.lib
        layout = link.ddr.layout
        self.states, self.records = layout.states, layout.records
        # By the clock, so that handles of an earlier attachment, or of another process, differ from these.
        self._first_serial = monotonic_ns() // 1000 & (1 << SERIAL_BITS - 1) - 1
        self._place = ctypes.c_char.from_buffer(link.ddr.map)  # keeps the mapping while C may use it
        client = self.lib.hbrt_client_new(
            ffi.cast("void *", ctypes.addressof(self._place)),
            layout.file_bytes,
            layout._replace(core_count=len(link.core_doorbells)).pack_header(),
            link.client_id,
            link.doorbell,
            link.core_doorbells,
            link.urgent_bells or ffi.NULL,
            self._first_serial,
        )
        if client == ffi.NULL:
            raise MemoryError("The mailbox in C has no memory for this attachment.")
        self.client = ffi.gc(client, self.lib.hbrt_client_free)
        held = ffi.buffer(self.lib.hbrt_client_handles(client), SLOT_COUNT * 8)
        self.handles = memoryview(held).cast("B").cast("Q")  # a thread of Python's sees what C writes
        self.free = _FreeSlots(self.client, self.lib)
        self.lib.hbrt_slots_give(client, link.first_slots[::-1], len(link.first_slots))
        if polls:
            self.lib.hbrt_client_polls(client, poll_budget_ns())
        self.waiters = Waiters(link, self.client)

    # -- submit -------------------------------------------------------------------------------------------------

    def submit(self, *given: int) -> int:
        """Queue a task; returns its handle (> 0), or a status (< 0) and nothing was queued.

        Args:
            given: Plain integers: command number, 0..0xffff; priority, 0..255, larger first; core mask, 0 for any core,
                or bit i for core i; customId, smaller first among equal priorities; physical address and size of the
                input block, zeros for none; those of the output block.
        """
        if not 0 <= given[2] < 1 << self.link.core_count and not self.carrier.elsewhere(given[0]):
            # A core of no kind that a program names.
            return self.refuse(*self.refusal(*given) or unserved(self.link.core_count))
        return self._queue(*given)

    def accelerate(self, *given: int) -> int:
        """Like ``submit``, to accelerator cores: bit i of the mask is core i, of which they are the last."""
        return self._queue(*given)

    def rpc(self, ctrl: hbDSPRpcCtrlParam, input: hbSysMem, output: hbSysMem) -> int:
        """Queue the task of hbDSPRpc, where there is a short way. Its handle, or 0: then it is one for ``submit``."""
        if self.watchers or not self.carrier.is_direct or self.link.fault or not mark[0]:
            return 0
        at = addressof(ctrl), addressof(input), addressof(output)
        try:  # with one call in it: an interrupt before that finds an older task
            handle: int = self.lib.hbrt_rpc(self.client, *at)
        except BaseException:
            self._release_newest(ctrl.rpcCmd, 0, 0, 0, input.phyAddr, 0, output.phyAddr, 0)
            raise
        return handle if handle > 0 else 0  # noqa: FURB136 - an interrupt may come after a call

    def _queue(self, *given: int) -> int:
        if (self.link.fault or not mark[0]) and (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        if self.watchers or not self.carrier.is_direct:
            return self._carry(*given)
        try:
            request = _REQUEST.pack(*given)
        except struct.error:
            return self.refuse_unpacked(*given)
        try:
            handle: int = self.lib.hbrt_submit(self.client, request, 0)
            return handle if handle > 0 else self._submit_rarely(self.lib.hbrt_submit, handle, request, 0, *given)
        except BaseException:
            self._release_newest(*given)
            raise

    def _carry(self, *given: int) -> int:
        """Queue a task in steps: C prepares it, who looks on is told, and its carrier takes it."""
        before, elsewhere = self._last_serial(), self.carrier.elsewhere(given[0])
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
        """Write a task into a slot: its handle, whose task is SENT; or a status."""
        cmd, priority, core_mask, *rest = given
        if elsewhere == OF_ITS_OWNER and (found := self.refusal(*given)) is not None:
            return self._refuse_task(given, *found)
        try:
            request = _REQUEST.pack(cmd, priority, elsewhere or core_mask, *rest)
        except struct.error:
            return self.refuse_unpacked(*given)
        checked = _ELSEWHERE if elsewhere else 0
        handle: int = self.lib.hbrt_prepare(self.client, request, checked)
        return handle if handle > 0 else self._submit_rarely(self.lib.hbrt_prepare, handle, request, checked, *given)

    def _submit_rarely(self, call: Any, answer: int, request: bytes, checked: int, *given: int) -> int:
        """Go on with a task that C did not take, by hbrt_submit or hbrt_prepare, or that no core serves."""
        if answer == ASK and not checked and (found := self._refusal(*given)) is not None:
            return self._refuse_task(given, *found)
        while answer in {ASK, NO_SLOT}:
            if answer == NO_SLOT:
                slot = self.lease_more()
                if slot < 0:
                    return slot
                self.lib.hbrt_slots_give(self.client, (slot,), 1)
            answer = call(self.client, request, checked or _CHECKED)
            if answer == ASK:
                return self.refuse_unpacked(*given)
        return answer if answer > 0 else self.refuse(*unserved(self.link.core_count))

    def _take_back(self, handle: int, status: int) -> int:
        """Undo ``_prepare`` for a task that nobody has; returns the status."""
        slot = handle & SLOT_MASK
        if self._discard(handle):
            self.map[self.states + slot] = _EMPTY
            self.free.append(slot)
        return status

    def _release_newest(self, *given: int, since: int = 0) -> None:
        """Undo a submission whose caller never gets its handle: a signal's handler has raised.

        Args:
            given: As for ``submit``.
            since: A serial from before it: an older task stays.
        """
        cmd, _, _, _, input_phy, _, output_phy, _ = given
        handle: int = self.lib.hbrt_newest(self.client, cmd, input_phy, output_phy)
        if handle > 0 and serial_of(handle) > since:
            self.release(handle)

    def end_held(self, handle: int, state: State, answer: Answer, text: str, work: Work) -> None:
        """End a task of another board that is there still; any thread, which must not be interrupted."""
        slot, lock, link = handle & SLOT_MASK, self.mailbox.claim_lock, self.link
        if refusal := lock.try_acquire(lock.handle):
            lock.acquire_slowly(refusal, lambda: bool(link.fault))
        try:
            if self.handles[slot] == handle and self.map[self.states + slot] == _SENT:
                self.mailbox.write_work(slot, work)
                self.mailbox.write_answer(slot, answer, text)
                self.mailbox.move(slot, state, Actor.OWNER)
        finally:
            lock.release(lock.handle)
        eventfd_write(link.doorbell, 1)

    def is_held(self, slot: int) -> bool:
        """Whether another board runs the task in a slot: it stays SENT until ``end_held``."""
        mask: int
        (mask,) = CORE_MASK.unpack_from(self.map, self.records + slot * SLOT_RECORD_BYTES + CORE_MASK_AT)
        return mask == OF_ANOTHER_BOARD

    def refusal(self, cmd: int, priority: int, core_mask: int, custom_id: int, *blocks: int) -> Refusal | None:
        """The refusal of a task, None for a good one; arguments as for ``submit``."""
        if 0 <= core_mask < 1 << self.link.core_count:
            return self._refusal(cmd, priority, core_mask, custom_id, *blocks)
        request = Request(0, custom_id, cmd, priority, core_mask, self.client_id, self.client_id, *blocks)
        return submission.number_refusal(self.link.core_count, request)

    def _refusal(self, *given: int) -> Refusal | None:
        """Like ``refusal``, of a task that may be one for an accelerator."""
        if not mark[0]:
            notice()
        if self.link.fault:
            return self.link.fault, self.link.why_faulty()
        cmd, priority, core_mask, custom_id, *blocks = given
        request = Request(0, custom_id, cmd, priority, core_mask, self.client_id, self.client_id, *blocks)
        return submission.refusal(len(self.link.core_doorbells), request, self.link.block_refusal)

    def _refuse_task(self, given: tuple[int, ...], status: int, why: str) -> int:
        for watcher in self.watchers:
            watcher.refused(given, status, why)
        return self.refuse(status, why)

    def refuse_unpacked(self, *given: int) -> int:
        """Refuse a task whose fields do not fit a slot; arguments as for ``submit``."""
        found = self.refusal(*given) or (Status.HB_DSP_INVALID_ARGUMENT, f"The task {given} does not fit a slot.")
        return self._refuse_task(given, *found)

    def follow_trace(self, ring: Ring | None) -> None:
        """Note submissions and waits into a file beside a ring from now on, or with None no more: C does."""
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
        """Address of the attachment in C, for callers in C that queue and wait by themselves; 0 where it may not be."""
        if self.watchers or not self.carrier.is_direct:
            return 0
        self.waiters.watch_lease()
        return int(native().ffi.cast("uintptr_t", self.client))

    # -- slots --------------------------------------------------------------------------------------------------

    def lease_more(self) -> int:
        """A slot when none is free: one whose dropped task has ended, else more from the daemon."""
        from hbrt.errors import RequestRefusedError

        self.release_abandoned()
        self._empty_dropped()
        with self._lock:
            while True:
                try:
                    return self.free.pop()
                except IndexError:
                    pass  # none, or other threads, which need no lock for it, took all of them
                if not self.link.leases_slots:
                    return self.refuse(
                        Status.HB_DSP_TASK_NUM_EXCEED_LIMIT,
                        f"Client {self.client_id} has {len(self.link.first_slots)} tasks, the maximum of one "
                        "process; release finished tasks with hbDSPReleaseTask.",
                    )
                # What comes too late for a request that is interrupted, a later one adds in one call of C, too.
                asked = Question(undo=functools.partial(functools.partial, self.free.extend))
                try:
                    self.free.extend(self.link.request("slots", asked, count=SLOTS_AT_ONCE))
                except RequestRefusedError as error:
                    return self.refuse(error.status, str(error))

    def release_later(self, handle: int, keep: object) -> None:
        """Release a task at a later call, and drop ``keep`` when the task has ended: finalizers take no locks."""
        self._abandoned.append((handle, keep))

    def release_abandoned(self) -> None:
        """Release the ended tasks of ``release_later``; cancel its unclaimed ones."""
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
        """Empty the slots of tasks that were released while they ran and have ended since, as at an orderly end."""
        self.release_abandoned()
        self._empty_dropped()

    def _empty_dropped(self) -> None:
        for slot in list(self._dropped):
            if self.map[self.states + slot] < _RUNNING:
                self.carrier.cancel(slot)  # the claim lock could not be had when it was dropped
            self._regain(slot)

    def _regain(self, slot: int) -> None:
        """Reclaim the slot of a dropped task that has ended, once: an interrupt comes only at a call.

        So an interrupt may lose a slot until this process ends. It never frees one twice, which two tasks would share.
        """
        at, mm, dropped = self.states + slot, self.map, self._dropped
        try:
            del dropped[slot]
        except KeyError:
            return  # another thread's
        if mm[at] >= _DONE:
            mm[at] = _EMPTY
            self.free.append(slot)
        else:
            dropped[slot] = None

    # -- wait ---------------------------------------------------------------------------------------------------

    def wait(self, handle: int, timeout_ms: float) -> int:
        """Wait for a task; returns its status, 0 when it succeeded.

        Args:
            handle: What submit returned.
            timeout_ms: Milliseconds; <= 0 waits for ever. On expiry HB_DSP_TIMEOUT, and the task keeps running.
        """
        if not mark[0]:
            notice()
        if self.watchers and (status := self._tell_waiting(handle, timeout_ms)):
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
            return self._why_failed(slot)
        return self.refuse_handle(handle) if state == ASK else self.why_not_ended(timeout_ms)

    def finish(self, handle: int) -> int:
        """Wait for a task without a limit, and release it when it has succeeded; else as ``wait``."""
        slot = handle & SLOT_MASK
        if mark[0] and not self.watchers:
            self.waiters.watch_lease()
            state: int = self.lib.hbrt_finish(self.client, handle)
            if state == _DONE:
                return 0
            if state > _DONE:
                return self._why_failed(slot)
        return self.wait(handle, 0) or self.release(handle)

    def _tell_waiting(self, handle: int, timeout_ms: float) -> int:
        for watcher in self.watchers:
            if status := watcher.waiting(handle, timeout_ms):
                return status
        return 0

    def why_not_ended(self, timeout_ms: float) -> int:
        """The status of a wait that has timed out, or whose board is gone; ``why`` has the sentence."""
        if self.link.fault:
            return self.refuse(self.link.fault, self.link.why_faulty())
        why = self.mailbox.claim_lock.why_held()
        text = f"The task did not end within {timeout_ms:g} ms; it keeps running. {why}".rstrip()
        return self.refuse(Status.HB_DSP_TIMEOUT, text)

    def _why_failed(self, slot: int) -> int:
        result: int = RESULT.unpack_from(self.map, self.records + slot * SLOT_RECORD_BYTES + ANSWER_OFFSET)[1]
        return self.refuse(result, self.mailbox.text(slot))

    # -- the outcome --------------------------------------------------------------------------------------------

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one; one on its way to its core is READY."""
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
        """Whether there is nothing to wait for: the task has ended, or the handle is not a live one."""
        slot = handle & SLOT_MASK
        has_ended = self.handles[slot] != handle or self.map[self.states + slot] >= _DONE
        if has_ended and self.watchers:
            for watcher in self.watchers:
                watcher.ended(handle)
        return has_ended

    def answer(self, handle: int) -> Answer:
        """Core, result, times and cycles of a task."""
        lost = self.lost.get(handle)
        return self.mailbox.answer(handle & SLOT_MASK) if lost is None else lost.answer

    def work(self, handle: int) -> Work:
        """What the op of a task charged."""
        return NO_WORK if handle in self.lost else self.mailbox.work(handle & SLOT_MASK)

    def text(self, handle: int) -> str:
        """Text of a failed task's core: a sentence, or the op's traceback."""
        lost = self.lost.get(handle)
        return self.mailbox.text(handle & SLOT_MASK) if lost is None else lost.why

    def why(self) -> str:
        """Sentence for the last refusal that this thread got."""
        return getattr(self._texts, "text", "")

    # -- release ------------------------------------------------------------------------------------------------

    def release(self, handle: int) -> int:
        """Release a task: a queued one is cancelled, a running one finishes and its result is dropped."""
        if self.watchers:
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
        at, mm = self.states + slot, self.map
        if mm[at] >= _DONE:
            mm[at] = _EMPTY
            self.free.append(slot)
        else:
            self.carrier.drop(slot, handle)
        return 0

    def drop(self, slot: int) -> None:
        """Cancel a queued task; let a running one finish, and empty its slot some time later."""
        try:
            self.carrier.cancel(slot)
            self.waiters.wake()
        finally:
            self._dropped[slot] = None
        self._regain(slot)

    def lose(self, handle: int, end: Lost) -> bool:
        """End a task without its slot, which the caller drops then; False for one that was released meanwhile."""
        self.lost[handle] = end
        if self._discard(handle):
            return True
        self.lost.pop(handle, None)
        return False

    def cancel(self, handle: int) -> bool:
        """Cancel a queued task, keep its handle; False when it runs or has ended, or the claim lock cannot be had."""
        notice()
        slot = handle & SLOT_MASK
        if self.handles[slot] != handle or self.link.fault or not self.carrier.cancel(slot):
            return False
        self.waiters.wake()
        return True

    def _discard(self, handle: int) -> bool:
        """Take a handle out of the table; False when it is not a live one."""
        try:
            found: int = self.lib.hbrt_forget(self.client, handle)
        except OverflowError:
            return False
        return found > 0

    def live_count(self) -> int:
        """Tasks whose handles were not released."""
        return len(self.live_handles())

    def live_handles(self) -> list[int]:
        """Handles that were not released."""
        self.release_abandoned()
        return [handle for handle in self.handles if handle] + list(self.lost)

    def close(self) -> None:
        """End every wait with the link's fault."""
        self.carrier.close()
        self._discard_all()
        self.waiters.close()
        self.carrier = Carrier()  # no cycle keeps the board's memory

    def _last_serial(self) -> int:
        serial: int = self.lib.hbrt_client_serial(self.client)
        return serial

    def _discard_all(self) -> None:
        self.lost.clear()
        for slot in range(SLOT_COUNT):
            self.handles[slot] = 0

    def detach_in_child(self) -> None:
        """In a forked child: the tasks are the parent's; every handle is refused with the link's fault."""
        self._discard_all()
        self._abandoned.clear()
        self._lock = threading.RLock()
        self.carrier.detach_in_child()

    def refuse_handle(self, handle: int) -> int:
        """Refuse a handle that names no live task, with its kind."""
        if (lost := self.lost.get(handle)) is not None:
            return self.refuse(lost.status, lost.why)
        kind = kind_of(handle, self.client_id, range(self._first_serial + 1, self._last_serial() + 1))
        if kind is DeadHandle.NONE:
            return self.refuse(Status.HB_DSP_INVALID_TASK_HANDLE, f"{handle} is not a task handle; hbDSPRpc fills one.")
        if self.link.fault in {Status.HB_DSP_FORKED, Status.HB_DSP_NOT_RUNNING}:
            return self.refuse(self.link.fault, self.link.why_faulty())
        if kind is DeadHandle.RELEASED:
            return self.refuse(Status.HB_DSP_TASK_RELEASED, f"The task {handle:#x} was already released.")
        return self.refuse(
            Status.HB_DSP_FOREIGN_TASK_HANDLE,
            f"The task {handle:#x} is not of this process's attachment (client {self.link.client_id}).",
        )

    def refuse(self, status: int, sentence: str) -> int:
        """Answer a call of this thread with a status; ``why`` has the sentence."""
        self._texts.text = sentence
        return status
