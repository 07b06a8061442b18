"""The life of a task in the process that submits it: a frequent step is one call into C, a rare one is here.

A process leases slots and reserves one for each task. How waiting is done is in hbrt/attach/waiting.py. A process
queues its tasks itself, or as arm_client/transport has it; the modes differ in how an early release ends a task, too:
``_let_go``.

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
from typing import TYPE_CHECKING, Any

from hbrt.attach.native_waiting import ASK, ASKED, INTERRUPTED, NO_SLOT, NOTHING, NativeWaiters
from hbrt.attach.question import Question
from hbrt.board.forked import mark, notice
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.layout import SLOT_COUNT, SLOT_RECORD_BYTES
from hbrt.mailbox import submission
from hbrt.mailbox.handle import SERIAL_BITS, SLOT_MASK, Kind, kind_of, serial_of
from hbrt.mailbox.native import native
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD
from hbrt.mailbox.spin import Spinner
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
from hbrt.profiles.work import Work
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link
    from hbrt.trace.ring import Ring, RingFile
    from hbrt.types import hbDSPRpcCtrlParam, hbSysMem

SLOTS_AT_ONCE = 64
_REQUEST = struct.Struct("=4q4Q")  # hbrt_request
_ELSEWHERE = 2  # of hbrt_prepare: another board runs the task
_GO_ON = frozenset({INTERRUPTED, ASKED, NOTHING})  # a wait that is not over
# Plain integers: comparing with a member of an enum costs a call.
_EMPTY, _SENT, _RUNNING, _DONE = int(State.EMPTY), int(State.SENT), int(State.RUNNING), int(FIRST_END)


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


class TaskSlots:
    """The task slots that this process leases on one board."""

    reaches_accelerators = True
    """Whether ``accelerate`` brings tasks to the board's accelerator cores."""
    is_asking = False
    """Whether a request to a board other than the link's is under way, as ``Link.is_asking``."""
    _SUBMIT = "submit"

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        """Use the slots that ``link`` leases.

        Args:
            link: This process's attachment.
            spins: Whether to poll before sleeping. A process that also sleeps on watched descriptors does not.
        """
        self.link = link
        self.client_id = link.client_id
        self.mailbox: Mailbox = link.mailbox
        self.map = self.mailbox.map
        layout = link.ddr.layout
        self.states = layout.states
        self.records = layout.records
        # By the clock, so that handles of an earlier attachment, or of another process, differ from these.
        self._first_serial = monotonic_ns() // 1000 & (1 << SERIAL_BITS - 1) - 1
        # Released while queued or running: emptied when they have ended. The thread that takes a slot out owns it.
        self._dropped: dict[int, None] = {}
        self._abandoned: deque[tuple[int, object]] = deque()
        self._lock = threading.RLock()  # a signal's handler may submit in the middle of a submission
        self._texts = threading.local()
        self._first_beyond = 1 << link.core_count
        module = native()
        self._ffi, self._lib = ffi, lib = module.ffi, module.lib
        self._place = ctypes.c_char.from_buffer(link.ddr.map)  # keeps the mapping while C may use it
        client = lib.hbrt_client_new(
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
        self._client = ffi.gc(client, lib.hbrt_client_free)
        self._c_release = lib.hbrt_release
        self._note: Callable[[int], None] | None = None
        self._traced: list[RingFile] = []
        held = ffi.buffer(lib.hbrt_client_handles(client), SLOT_COUNT * 8)
        self.handles = memoryview(held).cast("B").cast("Q")  # a thread of Python's sees what C writes
        self.free = _FreeSlots(self._client, lib)
        lib.hbrt_slots_give(client, link.first_slots[::-1], len(link.first_slots))
        self.waiters = NativeWaiters(link, self.handles, polls=spins, client=self._client)
        self._choose_calls()

    def _let_go(self, slot: int, handle: int) -> None:  # noqa: ARG002 - other modes need it
        """Cancel a released task that is queued, or let a running one finish and have its slot back then."""
        self.drop(slot)

    def _forget(self, slot: int, handle: int) -> bool:  # noqa: ARG002 - the handle has the slot
        """Take a handle out of the table; False when it is not a live one."""
        try:
            found: int = self._lib.hbrt_forget(self._client, handle)
        except OverflowError:
            return False
        return found > 0

    # -- submit -------------------------------------------------------------------------------------------------

    def submit(self, *given: int) -> int:
        """Queue a task; returns its handle (> 0), or a status (< 0) and nothing was queued.

        Args:
            given: Plain integers: command number, 0..0xffff; priority, 0..255, larger first; core mask, 0 for any core,
                or bit i for core i; customId, smaller first among equal priorities; physical address and size of the
                input block, zeros for none; those of the output block.
        """
        if not 0 <= given[2] < self._first_beyond:  # a core of no kind that a program names
            return self.refuse(*self.refusal(*given) or unserved(self.link.core_count))
        return self._queue_task(*given)

    def accelerate(self, *given: int) -> int:
        """As ``submit``, to accelerator cores: bit i of the mask is core i, of which they are the last."""
        return self._queue_task(*given)

    def _queue_task(self, *given: int) -> int:
        if (self.link.fault or not mark[0]) and (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        try:
            request = _REQUEST.pack(*given)
        except struct.error:
            return self.refuse_unpacked(*given)
        try:
            handle: int = self._c_submit(self._client, request, 0)
            return handle if handle > 0 else self._submit_rarely(handle, request, *given)
        except BaseException:
            self._release_newest(*given)
            raise

    def hold(self, *given: int) -> int:
        """Have a handle for a task that another board runs: its slot stays SENT until ``end_held``.

        Args:
            given: As of ``submit``; the core mask is one of the other board's.

        Returns:
            The handle, or a status.
        """
        cmd, priority, _, *rest = given
        handle = self._reserve(cmd, priority, 0, *rest)
        if handle > 0:
            record = self.records + (handle & SLOT_MASK) * SLOT_RECORD_BYTES
            CORE_MASK.pack_into(self.map, record + CORE_MASK_AT, OF_ANOTHER_BOARD)
        return handle

    def _reserve(self, *given: int) -> int:
        """A handle, whose task is SENT, for a task that C does not queue; or a status. Arguments as of ``submit``."""
        try:
            request = _REQUEST.pack(*given)
        except struct.error:
            return self.refuse_unpacked(*given)
        try:
            while (handle := self._c_prepare(self._client, request, _ELSEWHERE)) == NO_SLOT:
                slot = self.lease_more()
                if slot < 0:
                    return slot
                self._lib.hbrt_slots_give(self._client, (slot,), 1)
        except BaseException:
            self._release_newest(*given)
            raise
        if handle <= 0:
            return self.refuse_unpacked(*given)
        return int(handle)

    def end_held(self, handle: int, state: State, answer: Answer, text: str, work: Work) -> None:
        """End a task of ``hold`` that is there still; any thread, which must not be interrupted."""
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
        """Whether the task in a slot is one of ``hold``."""
        mask: int
        (mask,) = CORE_MASK.unpack_from(self.map, self.records + slot * SLOT_RECORD_BYTES + CORE_MASK_AT)
        return mask == OF_ANOTHER_BOARD

    def rpc(self, ctrl: hbDSPRpcCtrlParam, input: hbSysMem, output: hbSysMem) -> int:
        """Queue the task of hbDSPRpc, where there is a short way. Its handle, or 0: then it is one for ``submit``."""
        if self._c_rpc is None or self.link.fault or not mark[0]:
            return 0
        at = addressof(ctrl), addressof(input), addressof(output)
        try:  # with one call in it: an interrupt before that finds an older task
            handle: int = self._c_rpc(self._client, *at)
        except BaseException:
            self._release_newest(ctrl.rpcCmd, 0, 0, 0, input.phyAddr, 0, output.phyAddr, 0)
            raise
        return handle if handle > 0 else 0  # noqa: FURB136 - an interrupt may come after a call

    def _release_newest(self, *given: int, since: int = 0) -> None:
        """Undo a submission whose caller never gets its handle: a signal's handler has raised.

        Args:
            given: As of ``submit``.
            since: A serial from before it: an older task stays.
        """
        cmd, _, _, _, input_phy, _, output_phy, _ = given
        handle: int = self._lib.hbrt_newest(self._client, cmd, input_phy, output_phy)
        if handle > 0 and serial_of(handle) > since:
            self.release(handle)

    def _submit_rarely(self, answer: int, request: bytes, *given: int) -> int:
        """Go on with a task that C did not queue, or that no core serves."""
        if answer == ASK and (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        while answer in {ASK, NO_SLOT}:
            if answer == NO_SLOT:
                slot = self.lease_more()
                if slot < 0:
                    return slot
                self._lib.hbrt_slots_give(self._client, (slot,), 1)
            answer = self._c_submit(self._client, request, 1)
            if answer == ASK:
                return self.refuse_unpacked(*given)
        return answer if answer > 0 else self.refuse(*unserved(self.link.core_count))

    def forget_block(self, phy_addr: int) -> None:
        """Have nothing more to do with a block that is about to be freed."""

    def refusal(self, cmd: int, priority: int, core_mask: int, custom_id: int, *blocks: int) -> Refusal | None:
        """The refusal of a task, None for a good one; arguments as of ``submit``."""
        if 0 <= core_mask < self._first_beyond:
            return self._refusal(cmd, priority, core_mask, custom_id, *blocks)
        request = Request(0, custom_id, cmd, priority, core_mask, self.client_id, self.client_id, *blocks)
        return submission.number_refusal(self.link.core_count, request)

    def _refusal(self, *given: int) -> Refusal | None:
        """As ``refusal``, of a task that may be one for an accelerator."""
        if not mark[0]:
            notice()
        if self.link.fault:
            return self.link.fault, self.link.why_faulty()
        cmd, priority, core_mask, custom_id, *blocks = given
        request = Request(0, custom_id, cmd, priority, core_mask, self.client_id, self.client_id, *blocks)
        return submission.refusal(len(self.link.core_doorbells), request, self.block_refusal)

    def block_refusal(self, what: str, phy_addr: int, size_bytes: int) -> Refusal | None:
        """The refusal of a task for a block, None for a good one; as ``submission.block_refusal``."""
        return submission.block_refusal(self.link.ddr, self.client_id, what, phy_addr, size_bytes)

    def refuse_unpacked(self, *given: int) -> int:
        """Refuse a task whose fields do not fit a slot; arguments as of ``submit``."""
        found = self.refusal(*given)
        return self.refuse(*found or (Status.HB_DSP_INVALID_ARGUMENT, f"The task {given} does not fit a slot."))

    def follow_trace(self, ring: Ring | None) -> None:
        """Note submissions and waits into a file beside a ring from now on, or with None no more: C does."""
        records, count = self._ffi.NULL, 0
        if ring is not None:
            try:
                file = ring.beside("calls")
            except OSError:
                return  # the disk is full
            self._traced.append(file)  # C may be in the middle of a call when the trace ends
            records, count = self._ffi.from_buffer(file.map) + file.start, file.records
        self._lib.hbrt_client_note(self._client, records, count)

    def _choose_calls(self) -> None:
        """Choose the functions of C that submit, as a checker needs them."""
        lib, note = self._lib, self._note
        self._c_end, self._c_finish, self._c_prepare = lib.hbrt_end, lib.hbrt_finish, lib.hbrt_prepare
        self._c_submit: Callable[..., int] = lib.hbrt_submit if self._SUBMIT == "submit" else lib.hbrt_prepare
        self._c_rpc = lib.hbrt_rpc if note is None and self._SUBMIT == "submit" else None
        if note is None:
            return
        prepare, publish = self._c_prepare, self._hand_over

        def noted(client: Any, request: bytes, is_checked: int) -> int:
            handle: int = prepare(client, request, is_checked)
            if handle <= 0:
                return handle
            try:
                note(handle & SLOT_COUNT - 1)
                published = publish(client, handle)
            except BaseException:
                self.release(handle)
                raise
            if published == ASK:
                self.release(handle)  # this attachment is leaving the board
            return published

        self._c_submit = noted

    def lend(self) -> int:
        """Address of the attachment in C, for callers in C that queue and wait by themselves; 0 where it may not be.

        The borrower polls by its own habit.
        """
        self._lib.hbrt_client_polls(self._client, Spinner().budget_ns)
        self.waiters.see_lease()
        return int(self._ffi.cast("uintptr_t", self._client))

    def note_each(self, note: Callable[[int], None] | None) -> None:
        """Have ``note(slot)`` called before each task is handed over: the core reads what it writes. None: no more."""
        self._note = note
        self._choose_calls()

    def _hand_over(self, client: Any, handle: int) -> int:
        """Queue a task that C has prepared."""
        published: int = self._lib.hbrt_publish(client, handle)
        return published

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
                self._cancel(slot)  # the claim lock could not be had when it was dropped
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
        waiters = self.waiters
        try:
            state: int = self._c_end(self._client, handle, timeout_ms <= 0 and waiters.only_sleeps)
            if state in _GO_ON:
                state = waiters.state_at_end(handle & SLOT_COUNT - 1, handle, timeout_ms)
            elif state == _DONE and waiters.choice.measures:
                waiters.measure(handle & SLOT_COUNT - 1)
        except OverflowError:
            return self.refuse_handle(handle)
        if state == _DONE:
            return 0
        if state > _DONE:
            return self._why_failed(handle & SLOT_COUNT - 1)
        return self.refuse_handle(handle) if state == ASK else self.why_not_ended(timeout_ms)

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

    def finish(self, handle: int) -> int:
        """Wait for a task without a limit, and release it when it has succeeded; else as ``wait``."""
        waiters = self.waiters
        if mark[0] and waiters.only_sleeps:
            state = self._c_finish(self._client, handle, 0, waiters.polled)
            if state == _DONE:
                return 0
            if state > _DONE:
                return self._why_failed(handle & SLOT_COUNT - 1)
        return self.wait(handle, 0) or self.release(handle)

    # -- the outcome --------------------------------------------------------------------------------------

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one."""
        slot = handle & SLOT_MASK
        return State(self.map[self.states + slot]) if self.handles[slot] == handle else None

    def has_ended(self, handle: int) -> bool:
        """Whether there is nothing to wait for: the task has ended, or the handle is not a live one."""
        slot = handle & SLOT_MASK
        return self.handles[slot] != handle or self.map[self.states + slot] >= _DONE

    def answer(self, handle: int) -> Answer:
        """Core, result, times and cycles of a task."""
        return self.mailbox.answer(handle & SLOT_MASK)

    def work(self, handle: int) -> Work:
        """What the op of a task charged."""
        return self.mailbox.work(handle & SLOT_MASK)

    def text(self, handle: int) -> str:
        """Text of a failed task's core: a sentence, or the op's traceback."""
        return self.mailbox.text(handle & SLOT_MASK)

    def cause(self, handle: int) -> BaseException | None:  # noqa: ARG002 - other classes know it
        """The exception of a failed task's op that ran in this process; None where only its text is known."""
        return None

    def own_ops(self) -> dict[int, str] | None:
        """Command numbers and names of the ops that run in this process; None where the board's cores run them."""
        return None

    def why(self) -> str:
        """Sentence for the last refusal that this thread got."""
        return getattr(self._texts, "text", "")

    # -- release ------------------------------------------------------------------------------------------------

    def release(self, handle: int) -> int:
        """Release a task: a queued one is cancelled, a running one finishes and its result is dropped."""
        if not mark[0]:
            notice()
        else:
            try:
                if self._c_release(self._client, handle) > 0:
                    return 0
            except OverflowError:
                return self.refuse_handle(handle)
        slot = handle & SLOT_MASK
        if not self._forget(slot, handle):
            return self.refuse_handle(handle)
        if self.link.fault:
            return 0
        at, mm = self.states + slot, self.map
        if mm[at] >= _DONE:
            mm[at] = _EMPTY
            self.free.append(slot)
        else:
            self._let_go(slot, handle)
        return 0

    def drop(self, slot: int) -> None:
        """Cancel a queued task; let a running one finish, and empty its slot some time later."""
        try:
            self._cancel(slot)
            self.waiters.wake()
        finally:
            self._dropped[slot] = None
        self._regain(slot)

    def cancel(self, handle: int) -> bool:
        """Cancel a queued task, keep its handle; False when it runs or has ended, or the claim lock cannot be had."""
        notice()
        slot = handle & SLOT_MASK
        if self.handles[slot] != handle or self.link.fault or not self._cancel(slot):
            return False
        self.waiters.wake()
        return True

    def _cancel(self, slot: int) -> bool:
        mailbox, lock = self.mailbox, self.mailbox.claim_lock
        # No "with": a signal's handler that raises in the lock's own methods would leave the whole board without it.
        try:
            if refusal := lock.try_acquire(lock.handle):
                lock.acquire_slowly(refusal)
            if mailbox.state(slot) not in {State.SENT, State.READY}:
                return False
            gone = Answer(-1, Status.HB_DSP_TASK_CANCELLED, 0, 0, 0, 0, monotonic_ns(), 0)
            mailbox.write_answer(slot, gone, "The task was cancelled before a core claimed it.")
            mailbox.move(slot, State.CANCELLED, Actor.OWNER)
            return True
        except ClaimLockError:
            return False  # as one that runs: a core may claim it before the lock can be had again
        finally:
            lock.release(lock.handle)  # a thread that does not hold it is refused, without an effect

    def live_count(self) -> int:
        """Tasks whose handles were not released."""
        return len(self.live_handles())

    def live_handles(self) -> list[int]:
        """Handles that were not released."""
        self.release_abandoned()
        return [handle for handle in self.handles if handle]

    def leave(self) -> list[Link]:
        """Before ``close``: the attachments to other boards, on which this process then has no memory anymore."""
        return []

    def close(self) -> None:
        """End every wait with the link's fault, then close the descriptors of this object."""
        self._forget_all()
        self.waiters.close()

    def _last_serial(self) -> int:
        serial: int = self._lib.hbrt_client_serial(self._client)
        return serial

    def _forget_all(self) -> None:
        for slot in range(SLOT_COUNT):
            self.handles[slot] = 0

    def abandon_in_child(self) -> None:
        """In a fork's child: the tasks are the parent's; every handle is refused with the link's fault."""
        self._forget_all()
        self._abandoned.clear()
        self._lock = threading.RLock()

    def refuse_handle(self, handle: int) -> int:
        """Refuse a handle that names no live task, with its kind."""
        kind = kind_of(handle, self.client_id, range(self._first_serial + 1, self._last_serial() + 1))
        if kind is Kind.NONE:
            return self.refuse(Status.HB_DSP_INVALID_TASK_HANDLE, f"{handle} is not a task handle; hbDSPRpc fills one.")
        if self.link.fault in {Status.HB_DSP_FORKED, Status.HB_DSP_NOT_RUNNING}:
            return self.refuse(self.link.fault, self.link.why_faulty())
        if kind is Kind.RELEASED:
            return self.refuse(Status.HB_DSP_TASK_RELEASED, f"The task {handle:#x} was released before.")
        return self.refuse(
            Status.HB_DSP_FOREIGN_TASK_HANDLE,
            f"The task {handle:#x} is not of this process's attachment (client {self.link.client_id}).",
        )

    def refuse(self, status: int, sentence: str) -> int:
        """Answer a call of this thread with a status; ``why`` has the sentence."""
        self._texts.text = sentence
        return status
