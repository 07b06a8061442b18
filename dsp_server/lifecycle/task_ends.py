"""The task reaper: fails tasks of dead cores, tasks that no core may run, and all tasks when the board stops."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Set as AbstractSet

from dsp_server.clients import Clients
from dsp_server.lifecycle.child import CoreChild
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.layout import MAX_CORES
from hbrt.mailbox.history import HistoryRing
from hbrt.mailbox.schedule import ASLEEP, may_run
from hbrt.mailbox.table import Actor, Mailbox, State
from hbrt.status import Status


class TaskReaper:
    """Fails tasks on behalf of the supervisor."""

    def __init__(self, mailbox: Mailbox, clients: Clients) -> None:
        self._mailbox = mailbox
        self._clients = clients
        self._history = HistoryRing(mailbox, MAX_CORES)
        self._failed = 0

    def fail_running(self, child: CoreChild, how: str) -> list[str]:
        """Fail the tasks that a dead core was running; return one sentence per task."""
        lost = []
        for slot in self._mailbox.slots_in(State.RUNNING):
            if self._mailbox.answer(slot).core == child.index:
                request = self._mailbox.request(slot)
                op = child.call_of(request.cmd)
                if child.overdue is not None and child.overdue[:2] == (slot, request.sequence):
                    text = (
                        f"{op} exceeded its time limit of {child.overdue[2] / 1e6:g} ms; core {child.index} was ended."
                        f"{child.last_place()}"
                    )
                    end, status = State.TIMED_OUT, Status.HB_DSP_WATCHDOG
                else:
                    text = f"Core {child.index} (process {child.pid}) {how} while running {op}."
                    end, status = State.LOST, Status.HB_DSP_CORE_LOST
                if self._fail(slot, status, f"{text}\n{child.trace}".rstrip(), end, lock=self._lock_if_available()):
                    lost.append(text)
        self._clients.ring_all()  # the core may have finished a task but died before ringing its owner
        return lost

    def fail_phantom(self, slot: int, activities: Mapping[int, int]) -> bool:
        """Fail a RUNNING task that no core is running: something other than a core wrote its state.

        Args:
            slot: The task's slot.
            activities: Offset of the activity byte of each core that has a process.

        Raises:
            ClaimLockError: the lock is not available; nothing was changed.
        """
        mailbox = self._mailbox
        # A core writes LOOKING before it takes this lock to claim, marks the slot before it writes RUNNING, and writes
        # ASLEEP only after its task has ended: so under the lock the three are consistent.
        with mailbox.claim_lock:
            activity_at = activities.get(mailbox.answer(slot).core)
            runs = activity_at is not None and mailbox.map[activity_at] != ASLEEP
            is_phantom = mailbox.map[mailbox.states + slot] == State.RUNNING and not runs
            sequence = mailbox.request(slot).sequence
        text = "No core is running the task, although its slot says so: something other than a core wrote there."
        return is_phantom and self._fail(slot, Status.HB_DSP_CORE_LOST, text, sequence=sequence)

    def is_running(self, slot: int, sequence: int) -> bool:
        """Whether the task with this sequence is running in a slot."""
        return self._mailbox.state(slot) is State.RUNNING and self._mailbox.request(slot).sequence == sequence

    def is_awaited(self, core: int) -> bool:
        """Whether a core is running a task whose owner still exists."""
        running = (slot for slot in self._mailbox.slots_in(State.RUNNING) if self._mailbox.answer(slot).core == core)
        owners = (self._clients.by_id.get(self._mailbox.request(slot).owner) for slot in running)
        return any(owner is not None and not owner.has_gone for owner in owners)

    def fail_unservable(self, served_by: AbstractSet[int]) -> None:
        """Fail queued tasks that none of these cores may run.

        Raises:
            ClaimLockError: the lock is not available; call again when it is.
        """
        # A submitter either sees that the cores are offline, or made its task READY before this lock was taken.
        with self._mailbox.claim_lock:
            pass
        text = "None of the cores that may run the task is running; see 'hbrt status'."
        for slot in self._mailbox.slots_in(State.READY):
            task = self._mailbox.request(slot)
            if not any(may_run(core, task.core_mask, self._mailbox.layout.core_count) for core in served_by):
                self._fail(slot, Status.HB_DSP_NOT_RUNNING, text, sequence=task.sequence)

    def fail_all(self, *states: State) -> None:
        """Fail every task in these states because the board ends."""
        for slot in self._mailbox.slots_in(*states):
            self._fail(slot, Status.HB_DSP_BOARD_LOST, "The board was stopped.", lock=self._lock_if_available())

    @contextlib.contextmanager
    def _lock_if_available(self) -> Iterator[None]:
        """Hold the claim lock if available, for tasks that no other process can change, or that must end now."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(ClaimLockError):
                stack.enter_context(self._mailbox.claim_lock)
            yield

    def _fail(
        self,
        slot: int,
        status: Status,
        text: str,
        end: State = State.LOST,
        *,
        sequence: int | None = None,
        lock: contextlib.AbstractContextManager[None] | None = None,
    ) -> bool:
        """Fail the task in a slot if it has this sequence (None: any), under the claim lock or ``lock``."""
        mailbox = self._mailbox
        with lock or mailbox.claim_lock:
            state = mailbox.map[mailbox.states + slot]
            is_another = sequence is not None and mailbox.request(slot).sequence != sequence
            if is_another or state not in {State.SENT, State.READY, State.RUNNING}:
                return False
            answer = mailbox.answer(slot)
            if state != State.RUNNING:  # these values are left from an earlier task
                answer = answer._replace(core=-1, has_work=0, claim_ns=0, start_ns=0, cycles=0)
            mailbox.write_answer(slot, answer._replace(result=status, done_ns=time.monotonic_ns()), text)
            self._failed += 1
            self._history.note(self._failed, slot, end)
            mailbox.move(slot, end, Actor.SUPERVISOR)
        self._clients.ring(mailbox.request(slot).owner)
        return True
