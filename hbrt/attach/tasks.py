"""The life of a task on the side of the process that submits it: submit, wait, release.

Submitting fills a slot in shared memory and rings a core only when it sleeps. How waiting is done is in
hbrt/attach/waiting.py.

A handle is (client id, serial, slot) in one integer; a slot's present handle is remembered, so that a stale one is
told from a foreign one. Calls answer with a status and never raise; ``why`` has the sentence behind a refusal.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING

from hbrt.attach.waiting import Waiters
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.fence import Fence
from hbrt.ddr.layout import (
    ACTIVITY_ASLEEP,
    ACTIVITY_LOOKING,
    ACTIVITY_OFFLINE,
    SLOT_COUNT,
    SLOT_RECORD_BYTES,
)
from hbrt.mailbox import wake_targets
from hbrt.mailbox.handle import SERIAL_BITS, SLOT_BITS, SLOT_MASK, Kind, kind_of, make
from hbrt.mailbox.table import (
    ANSWER_OFFSET,
    FIRST_END,
    PRIORITY_PREEMPT,
    RESULT,
    RPC_ALIGNMENT,
    SUBMISSION,
    Actor,
    Answer,
    Mailbox,
    State,
)
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.attach.link import Link

SLOTS_AT_ONCE = 64
# Plain integers: comparing with a member of an enum costs a call.
_EMPTY, _READY, _RUNNING, _DONE = int(State.EMPTY), int(State.READY), int(State.RUNNING), int(FIRST_END)


class Tasks:
    """The task slots that this process leases on one board."""

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        """Use the slots that ``link`` leases.

        Args:
            link: This process's attachment.
            spins: Whether to poll before sleeping. A process that also sleeps on watched descriptors does not.
        """
        self._link = link
        self.mailbox: Mailbox = link.mailbox
        self._map = self.mailbox.map
        layout = link.ddr.layout
        self._states = layout.states
        self._records = layout.records
        self._free = list(reversed(link.first_slots))
        self._handles = [0] * SLOT_COUNT  # present handle of each slot, 0 when none
        # By the clock, so that a handle of an earlier attachment, or of another process, is not taken for one of these.
        self._first_serial = self._serial = monotonic_ns() // 1000 & (1 << SERIAL_BITS - 1) - 1
        self._sequence = 0
        # Released while queued or running: emptied when they have ended. Who takes a slot out owns it.
        self._dropped: dict[int, None] = {}
        self._abandoned: deque[tuple[int, object]] = deque()
        self._lock = threading.RLock()  # a signal's handler may submit in the middle of a submission
        self._texts = threading.local()
        self._known: dict[int, int] = {}  # this process's own blocks: phy_addr -> bytes
        self._targets = wake_targets.targets(layout, link.core_doorbells, link.urgent_bells)
        self._client_id = link.client_id
        self._handle_base = make(link.client_id, 0, 0)
        fence = Fence()
        self._fence_in, self._fence_out = fence.enter, fence.leave
        self.waiters = Waiters(link, self._handles, polls=spins)

    # -- submit -------------------------------------------------------------------------------------------------

    def submit(  # noqa: C901, PLR0912, PLR0915 - the hot path: its checks and the ring rule are in one place on purpose
        self,
        cmd: int,
        priority: int,
        core_mask: int,
        custom_id: int,
        input_phy: int,
        input_bytes: int,
        output_phy: int,
        output_bytes: int,
    ) -> int:
        """Queue a task; returns its handle (> 0), or a status (< 0) and nothing was queued. All are plain integers.

        Args:
            cmd: Command number, 0..0xffff.
            priority: 0..255, larger first.
            core_mask: 0 for any core, or bit i for core i.
            custom_id: Smaller first among equal priorities.
            input_phy: Physical address of the input block; 0 with 0 bytes for none.
            input_bytes: Its size.
            output_phy: As input_phy, of the output block.
            output_bytes: Its size.
        """
        targets = self._targets.get(core_mask)
        if targets is None or self._link.fault:
            return self._refuse_submit(cmd, priority, core_mask, custom_id)
        known = self._known
        if known.get(input_phy, -1) < input_bytes or known.get(output_phy, -1) < output_bytes:
            refused = self._refuse_range("input", input_phy, input_bytes) or self._refuse_range(
                "output", output_phy, output_bytes
            )
            if refused:
                return refused
        sequence = monotonic_ns()
        if sequence <= self._sequence:
            sequence = self._sequence + 1
        self._sequence = sequence
        try:
            slot = self._free.pop()
        except IndexError:
            slot = self._more_slots()
            if slot < 0:
                return slot
        self._serial += 1
        handle = self._handle_base + (self._serial << SLOT_BITS) + slot
        us, mm = self._client_id, self._map
        try:
            SUBMISSION.pack_into(
                mm,
                self._records + slot * SLOT_RECORD_BYTES,
                sequence,
                custom_id,
                cmd,
                priority,
                core_mask,
                us,
                us,
                input_phy,
                input_bytes,
                output_phy,
                output_bytes,
            )
        except BaseException as error:
            self._free.append(slot)
            if isinstance(error, struct.error):
                return self._refuse_submit(cmd, priority, core_mask, custom_id)
            raise
        self._handles[slot] = handle
        mm[self._states + slot] = _READY
        try:
            for announced in targets.announced:
                mm[announced + slot] = 1
            try:  # Fence.full, inlined: the hot path
                self._fence_in(False)
            finally:
                try:  # noqa: SIM105 - as below
                    self._fence_out()
                except RuntimeError:
                    pass
            doorbell, offline = -1, 0  # wake_targets.ring, inlined: the hot path
            for activity, bell in targets.bells:
                doing = mm[activity]
                if doing == ACTIVITY_LOOKING:
                    return handle
                if doing == ACTIVITY_ASLEEP:
                    if doorbell < 0:
                        doorbell = bell
                elif doing == ACTIVITY_OFFLINE:
                    offline += 1
            if doorbell >= 0:
                try:  # noqa: SIM105 - the hot path: a context manager costs, this does not
                    eventfd_write(doorbell, 1)
                except BlockingIOError:
                    pass  # somebody has filled its counter: the core's beat finds the task
            elif offline == len(targets.bells):
                return self._take_back(slot, handle)
            elif priority == PRIORITY_PREEMPT:
                wake_targets.ring_urgently(targets)
        except BaseException:
            self.release(handle)  # a signal's handler has raised: nobody will ever know this handle
            raise
        return handle

    def remember_block(self, phy_addr: int, size_bytes: int) -> None:
        """Note a block of this process, so that a submission need not look it up."""
        if phy_addr % RPC_ALIGNMENT == 0:
            self._known[phy_addr] = size_bytes

    def forget_block(self, phy_addr: int) -> None:
        """Note that a block is no longer this process's."""
        self._known.pop(phy_addr, None)

    def _refuse_submit(self, cmd: int, priority: int, core_mask: int, custom_id: int) -> int:
        link = self._link
        if link.fault:
            return self._say(link.fault, link.why_faulty())
        if core_mask not in self._targets:
            return self._say(
                Status.HB_DSP_INVALID_CORE,
                f"dspCoreId is {core_mask}; this board has {link.core_count} cores: write 0 for any, or the sum of "
                f"{', '.join(f'{1 << core} (core {core})' for core in range(link.core_count))}.",
            )
        if not 0 <= priority <= 255:
            return self._say(Status.HB_DSP_INVALID_PRIORITY, f"The priority is {priority}; write 0 to 255.")
        if not 0 <= cmd <= 0xFFFF:
            return self._say(Status.HB_DSP_INVALID_ARGUMENT, f"rpcCmd is {cmd:#x}; a command is 0x0 to 0xffff.")
        return self._say(
            Status.HB_DSP_INVALID_ARGUMENT, f"The custom_id is {custom_id}; it is a signed 64-bit integer."
        )

    def _refuse_range(self, what: str, phy_addr: int, size_bytes: int) -> int:
        ddr = self._link.ddr
        if not phy_addr and not size_bytes:
            return 0  # no block at all
        if not ddr.contains(phy_addr, size_bytes):
            return self._say(Status.HB_DSP_INVALID_ADDRESS, f"The {what} block: {ddr.explain(phy_addr, size_bytes)}")
        if not ddr.may_use(phy_addr, self._client_id):
            return self._say(
                Status.HB_DSP_INVALID_ADDRESS,
                f"The {what} block at {phy_addr:#x} belongs to another process; register it first (hbSysRegisterMem).",
            )
        if phy_addr % RPC_ALIGNMENT:
            return self._say(
                Status.HB_DSP_UNALIGNED_ADDRESS,
                f"The {what} block at {phy_addr:#x} must start at a multiple of {RPC_ALIGNMENT} bytes.",
            )
        return 0

    def _more_slots(self) -> int:
        """A slot when none is free: one whose dropped task has ended, else more from the daemon."""
        from hbrt.errors import RequestRefusedError

        self.release_abandoned()
        self._empty_dropped()
        with self._lock:
            while True:
                for slots in (self._free, self._link.spare_slots):
                    try:
                        return slots.pop()
                    except IndexError:
                        pass  # none, or other threads, which need no lock for it, took all of them
                try:
                    self._free.extend(self._link.request("slots", count=SLOTS_AT_ONCE))
                except RequestRefusedError as error:
                    if not self._link.spare_slots:
                        return self._say(error.status, str(error))

    def release_later(self, handle: int, keep: object) -> None:
        """Release a task at a later call, and let ``keep`` go when it has ended: finalizers take no locks."""
        self._abandoned.append((handle, keep))

    def release_abandoned(self) -> None:
        """Release what ``release_later`` left and has ended; cancel what no core has claimed."""
        for _ in range(len(self._abandoned)):
            try:
                handle, keep = self._abandoned.popleft()
            except IndexError:
                return  # another thread took the last one
            if self.state(handle) == State.READY:
                self.cancel(handle)
            state = self.state(handle)
            if state is None or state >= FIRST_END or self._link.fault:
                self.release(handle)
            else:
                self._abandoned.append((handle, keep))

    def empty_released(self) -> None:
        """Empty the slots of tasks that were released while they ran and have ended since, as at an orderly end."""
        self.release_abandoned()
        self._empty_dropped()

    def _empty_dropped(self) -> None:
        for slot in list(self._dropped):
            if self._map[self._states + slot] < _RUNNING:
                self._cancel(slot)  # the claim lock could not be had when it was dropped
            self._regain(slot)

    def _regain(self, slot: int) -> None:
        """Have the slot of a dropped task that has ended back, once: an interrupt comes only where something is called.

        So it may lose a slot to this process's end, but never has one free twice, which two tasks would then share.
        """
        at, mm, dropped = self._states + slot, self._map, self._dropped
        try:
            del dropped[slot]
        except KeyError:
            return  # another thread's
        if mm[at] >= _DONE:
            mm[at] = _EMPTY
            self._free.append(slot)
        else:
            dropped[slot] = None

    def _take_back(self, slot: int, handle: int) -> int:
        """Undo a submission that no core can serve; one that has started meanwhile did claim it."""
        if not self._cancel(slot):
            return handle
        self.release(handle)
        return self._say_no_core()

    def _say_no_core(self) -> int:
        return self._say(
            Status.HB_DSP_NOT_RUNNING,
            "No core that may run the task is running; see 'hbrt status', then 'hbrt restart'.",
        )

    # -- wait ---------------------------------------------------------------------------------------------------

    def wait(self, handle: int, timeout_ms: float) -> int:
        """Wait for a task; returns its status, 0 when it succeeded.

        Args:
            handle: What submit returned.
            timeout_ms: Milliseconds; <= 0 waits for ever. On expiry HB_DSP_TIMEOUT, and the task goes on.
        """
        slot = handle & SLOT_MASK
        handles = self._handles
        if handles[slot] != handle:
            return self._refuse_handle(handle)
        at = self._states + slot
        mm, waiters = self._map, self.waiters
        if mm[at] >= _DONE:
            if waiters.choice.measures:
                waiters.measure(slot)
        elif not (
            waiters.sleep_alone(slot, handle)
            if timeout_ms <= 0 and not waiters.polls
            else waiters.wait_for(slot, handle, timeout_ms)
        ):
            if self._link.fault:
                return self._say(self._link.fault, self._link.why_faulty())
            why = self.mailbox.claim_lock.why_held()
            text = f"The task did not end within {timeout_ms:g} ms; it goes on. {why}".rstrip()
            return self._say(Status.HB_DSP_TIMEOUT, text)
        if handles[slot] != handle:
            return self._refuse_handle(handle)  # another thread released it meanwhile; the slot may be in use again
        if mm[at] == _DONE:
            return 0
        result: int = RESULT.unpack_from(mm, self._records + slot * SLOT_RECORD_BYTES + ANSWER_OFFSET)[1]
        return self._say(result, self.mailbox.text(slot))

    def finish(self, handle: int) -> int:
        """Wait for a task without a limit, and release it when it has succeeded; else as ``wait``."""
        slot = handle & SLOT_MASK
        at, mm, handles, waiters = self._states + slot, self._map, self._handles, self.waiters
        if handles[slot] != handle:
            return self._refuse_handle(handle)  # a board that was closed has no memory to look at
        if mm[at] < _DONE:
            if waiters.polls:
                waiters.wait_for(slot, handle, 0)
            else:
                waiters.sleep_alone(slot, handle)
        elif waiters.choice.measures:
            waiters.measure(slot)
        if handles[slot] != handle or mm[at] != _DONE:
            return self.wait(handle, 0)
        handles[slot] = 0
        mm[at] = _EMPTY
        self._free.append(slot)
        return 0

    # -- what became of it --------------------------------------------------------------------------------------

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one."""
        slot = handle & SLOT_MASK
        return State(self._map[self._states + slot]) if self._handles[slot] == handle else None

    def has_ended(self, handle: int) -> bool:
        """Whether there is nothing to wait for: the task has ended, or the handle is not a live one."""
        slot = handle & SLOT_MASK
        return self._handles[slot] != handle or self._map[self._states + slot] >= _DONE

    def answer(self, handle: int) -> Answer:
        """Core, result, times and cycles of a task."""
        return self.mailbox.answer(handle & SLOT_MASK)

    def text(self, handle: int) -> str:
        """Text that a failed task's core left: a sentence, or the op's traceback."""
        return self.mailbox.text(handle & SLOT_MASK)

    def why(self) -> str:
        """Sentence for the last refusal that this thread got."""
        return getattr(self._texts, "text", "")

    # -- release ------------------------------------------------------------------------------------------------

    def release(self, handle: int) -> int:
        """Let a task go: a queued one is cancelled, a running one finishes and its result is dropped."""
        slot = handle & SLOT_MASK
        if self._handles[slot] != handle:
            return self._refuse_handle(handle)
        self._handles[slot] = 0
        if self._link.fault:
            return 0
        at, mm = self._states + slot, self._map
        if mm[at] >= _DONE:
            mm[at] = _EMPTY
            self._free.append(slot)
        else:
            self._drop(slot)
        return 0

    def _drop(self, slot: int) -> None:
        """Cancel a queued task; let a running one finish, and empty its slot some time later."""
        try:
            self._cancel(slot)
            self.waiters.wake()
        finally:
            self._dropped[slot] = None
        self._regain(slot)

    def cancel(self, handle: int) -> bool:
        """Cancel a queued task, keep its handle; False when it runs or has ended, or the claim lock cannot be had."""
        slot = handle & SLOT_MASK
        if self._handles[slot] != handle or self._link.fault or not self._cancel(slot):
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
            lock.release(lock.handle)  # by a thread that does not hold it: refused, and nothing happens

    def live_count(self) -> int:
        """Tasks whose handles were not released."""
        return len(self.live_handles())

    def live_handles(self) -> list[int]:
        """Handles that were not released."""
        self.release_abandoned()
        return [handle for handle in self._handles if handle]

    def close(self) -> None:
        """Let every waiting thread go with the link's fault, then close what this object opened."""
        self._handles[:] = [0] * SLOT_COUNT
        self.waiters.close()

    def abandon_in_child(self) -> None:
        """In a fork's child: the tasks are the parent's; every handle is refused with the link's fault."""
        self._handles[:] = [0] * SLOT_COUNT
        self._abandoned.clear()
        self._lock = threading.RLock()

    def _refuse_handle(self, handle: int) -> int:
        kind = kind_of(handle, self._client_id, range(self._first_serial + 1, self._serial + 1))
        if kind is Kind.NONE:
            return self._say(Status.HB_DSP_INVALID_TASK_HANDLE, f"{handle} is not a task handle; hbDSPRpc fills one.")
        if self._link.fault in {Status.HB_DSP_FORKED, Status.HB_DSP_NOT_RUNNING}:
            return self._say(self._link.fault, self._link.why_faulty())
        if kind is Kind.RELEASED:
            return self._say(Status.HB_DSP_TASK_RELEASED, f"The task {handle:#x} was released before.")
        return self._say(
            Status.HB_DSP_FOREIGN_TASK_HANDLE,
            f"The task {handle:#x} is not of this process's attachment (client {self._link.client_id}).",
        )

    def _say(self, status: int, sentence: str) -> int:
        self._texts.text = sentence
        return status
