"""A core: wait, claim, run, answer.

The loop follows hbrt/mailbox/schedule.py. A core that claimed a task writes RUNNING, and wakes another core for a
READY task that it leaves. A core that found no task writes ASLEEP, scans once more, and waits for its doorbell.
core/process.py has the rest of a core's process, and its messages with the supervisor.
"""

from __future__ import annotations

import contextlib
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from time import monotonic_ns
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.core import forked
from dsp_server.core.builtin import answer_builtin, as_status, explain, is_refusal
from dsp_server.core.fault_log import Faults
from dsp_server.core.heartbeat import Heartbeat, doorbells_in_use
from dsp_server.core.op_checks import sweep, unknown_handle
from dsp_server.core.op_output import with_output
from dsp_server.core.progress import Progress, Run
from dsp_server.core.views import Views
from dsp_server.hardware import cycles
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.engines import Engines, make_engines
from dsp_server.hardware.tcm import Tile, bits_in_use
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.registry import Op, Registration
from hbrt import settings
from hbrt.ddr.claim_lock import ClaimLockHeldError
from hbrt.ddr.fence import Fence
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import (
    CLIENT_ASLEEP,
    CLIENT_CHECKS,
    CLIENT_COUNT,
    CLIENT_RECORD_BYTES,
    CLIENT_SLEEPS,
    CORE_ACTIVITY,
    CORE_TASKS,
    CORE_TCM,
    SLOT_RECORD_BYTES,
    TCM_BITS,
)
from hbrt.mailbox.doorbell import empty, has_room, ring
from hbrt.mailbox.history import HistoryRing
from hbrt.mailbox.schedule import (
    ASLEEP,
    LOOKING,
    PRIORITY_PREEMPT,
    PRIORITY_URGENT,
    RUNNING,
    STALLED,
    Entry,
    core_to_chain,
    may_run,
    rank,
    task_key,
)
from hbrt.mailbox.spin import Spinner, usable_cpus
from hbrt.mailbox.table import (
    ANSWER,
    ANSWER_OFFSET,
    CLAIM,
    ORDER,
    REQUEST,
    REQUEST_CLIENT_AT,
    RUN,
    Answer,
    Mailbox,
    State,
)
from hbrt.profiles.work import MAPPED_BYTES

if TYPE_CHECKING:
    from types import FrameType

    from hbrt.trace.ring import Ring

ANNOUNCED = b"\1"
PREEMPT_SIGNAL = signal.SIGUSR1
SHORT_OP_NS = 20_000  # a deferred wake-up may wait for an op whose last run took no longer
MOST_DEFERRED_NS = 50_000
_READY = int(State.READY)
_RUNNING = int(State.RUNNING)
_SEQUENCE_AND_MASK = struct.Struct("<Q14xH")  # of REQUEST
_ANY_RANK = 1 << 62
_IMPORTS = "<frozen importlib._bootstrap>"  # the file of the interpreter's own frames of an import
_FREE = frozenset({ASLEEP, LOOKING})
COUNTERS = struct.Struct("<QQQ")  # tasks, busy ns, modelled cycles, from CORE_TASKS on


class Core:
    """One virtual core over a board's DDR file.

    Args:
        index: Which core of the board this is.
        ddr: The board's DDR.
        doorbells: Every core's doorbell, an eventfd each.
        urgent_doorbell: This core's doorbell for tasks that may interrupt its op.
        control_fd: Readable when the supervisor has sent a message.
        listen: Handles one message of the supervisor, without waiting; False when there is none.
        client_doorbells: Doorbells of the attached clients by id; ``listen`` fills it.
        faults: Takes the exceptions of ops.
    """

    _ended_at_last_beat = -1  # number of ended tasks when the last heartbeat found this core LOOKING

    def __init__(
        self,
        index: int,
        ddr: Ddr,
        doorbells: list[int],
        urgent_doorbell: int,
        control_fd: int,
        listen: Callable[[], bool],
        client_doorbells: dict[int, int],
        faults: Faults,
    ) -> None:
        layout = ddr.layout
        self.index = index
        self.is_stopping = False
        self.engines = make_engines(runtime.context.tile_manager or TileManager(), cycles.current(), unknown_handle)
        self.engines.install()
        self._map, self._ddr_bytes = ddr.map, ddr.bytes
        self._layout = layout
        self.mailbox, self._history = Mailbox(ddr), HistoryRing(ddr, index)
        self._claim_lock = self.mailbox.claim_lock
        self._views = Views(ddr)
        self._context = runtime.context
        self._ops = runtime.context.registry.by_cmd
        self._claim_ns = 0
        self._aging_ns = settings.integer("HBRT_AGING_MS") * 1_000_000
        self._queue: list[Entry] = []
        self._states, self._records = layout.states, layout.records
        self._announced = layout.announced(index)
        self._announced_end = self._announced + layout.slot_count
        self._record = layout.core(index)
        self._activity = self._record + CORE_ACTIVITY
        self._activities = [layout.core(core) + CORE_ACTIVITY for core in range(len(doorbells))]
        self._others = [at for at in self._activities if at != self._activity]
        self._doorbells = doorbells
        self._client_doorbells = client_doorbells
        self._urgent_doorbell = urgent_doorbell
        self._listen = listen
        self._main_thread = 0
        self._is_in_op = False
        self._depth = 0  # how many ops are interrupted
        self._priority = 0  # of the running task
        self._nested_cycles = 0
        self.spare_engines: list[Engines] = []  # for ops that interrupt, by depth
        self._spinner, self._polls = Spinner(), True
        self._fence = Fence()
        # Its halves, for the hot lines. No signal handler interrupts them: the process's handler returns outside an op.
        self._fence_in, self._fence_out = self._fence.enter, self._fence.leave
        self._clients, self._checks = layout.clients + CLIENT_ASLEEP, layout.clients + CLIENT_CHECKS
        # It ends with the client table: an invalid owner has no byte here.
        self._asleep = ddr.bytes[self._clients : layout.client(CLIENT_COUNT)]
        self._epoll = select.epoll()
        # Edge-triggered: every ring wakes once, and no read of the counter is needed.
        self._epoll.register(doorbells[index], select.EPOLLIN | select.EPOLLET)
        self._epoll.register(control_fd, select.EPOLLIN)
        self._poll = self._epoll.poll
        self._control_fd = control_fd
        self._is_alone = usable_cpus() == 1
        self._own, self._faults = forked.mark, faults
        self._deferred: set[int] = set()  # owners of deferred wake-ups
        self._deferred_since_ns = 0
        self._is_rescan_due = self._is_interrupt_due = False
        # Owners that seemed awake when one of their tasks ended, or had no doorbell here.
        self._unrung: set[int] = set()
        counters = COUNTERS.unpack_from(ddr.map, self._record + CORE_TASKS)
        self._tasks, self._busy_ns, self.engines.counter.cycles = counters

    def serve(self) -> None:
        """Serve tasks until ``is_stopping``."""
        signal.signal(PREEMPT_SIGNAL, lambda *_: self._preempt())
        self._main_thread = threading.get_ident()
        progress = Progress(self._ddr_bytes, self._record, self._main_thread, self._running_op, self._ops)
        on_beat = (self._rescan, progress.look, self._show_tcm)
        Heartbeat(self._ddr_bytes, self._record, on_beat, self._urgent_doorbell, self._interrupt).start()
        self._announce_all()
        while not self.is_stopping:
            slot = self._next()
            if slot >= 0:
                self._run(slot)
        self._count()  # the next process of this core continues the counters

    # -- wait

    def _next(self) -> int:
        """Claim a task; where there is none, wait for one and return -1."""
        slot = self._claim()
        if slot < 0:
            if self._deferred:
                self._flush_deferred()
            self._wait()
        return slot

    def _wait(self) -> None:
        """Poll for a while, then sleep until the doorbell rings."""
        mm, start, end = self._map, self._announced, self._announced_end
        mm[self._activity] = LOOKING
        if self._polls and self._spinner.budget_ns and self._spinner.spin(lambda: mm.find(ANNOUNCED, start, end) >= 0):
            return
        self._count()
        mm[self._activity] = ASLEEP
        self._fence.full()
        if mm.find(ANNOUNCED, start, end) < 0:
            for fd, _ in self._poll(None, 2):
                if fd == self._control_fd:
                    self._listen()
        mm[self._activity] = LOOKING
        self._announce_again()

    def _announce_again(self) -> None:
        """Announce all READY tasks when a heartbeat has found that a hint was lost."""
        if self._is_rescan_due:
            self._is_rescan_due = False
            self._announce_all()

    def _rescan(self) -> None:
        """Once a heartbeat, in its thread: write the counters, and wake sleepers that missed a wake-up."""
        mm = self._map
        self._count()
        if mm[self._activity] == STALLED:  # the supervisor missed heartbeats and marked this core
            mm[self._activity] = RUNNING if self._running_op() else LOOKING
            self._is_rescan_due = True
            ring(self._doorbells[self.index])
        if mm[self._activity] == ASLEEP and self._unannounced():
            self._is_rescan_due = True
            empty(self._doorbells[self.index])  # a ring of a full counter would wait
            ring(self._doorbells[self.index])
        self._free_stuck_ring()
        is_any_core_free = any(mm[at] in _FREE for at in self._activities)
        is_missed = not is_any_core_free and mm.find(ANNOUNCED, self._announced, self._announced_end) >= 0
        if is_missed or self._is_interrupt_due:
            self._is_interrupt_due = False
            self._interrupt()  # an urgent ring may be lost; a free core would be quicker
        with doorbells_in_use:
            for owner in self._take_unrung():
                doorbell = self._client_doorbells.get(owner)
                if doorbell is None:
                    self._unrung.add(owner)  # its message is still to be read
                # Also an owner that seems awake: the core that cleared its flag may have been stopped before its ring.
                elif has_room(doorbell):
                    ring(doorbell)

    def _take_unrung(self) -> Collection[int]:
        """Owners that seemed awake when one of their tasks ended, since the last time."""
        owners, self._unrung = self._unrung, set()
        return owners

    def _running_op(self) -> Run | None:
        """The op that runs, for the heartbeat's thread."""
        op = self._ops.get(self._context.task[0]) if self._is_in_op and self._context.task else None
        return None if op is None else Run(self._claim_ns, op, self.engines.idma)

    def _show_tcm(self) -> None:
        """Once a heartbeat, in its thread: write which TCM is in use."""
        with contextlib.suppress(RuntimeError):  # the op has changed the list meanwhile; the next beat looks again
            tiles = self._tiles()
            TCM_BITS.pack_into(self._map, self._record + CORE_TCM, bits_in_use(tiles, 0), bits_in_use(tiles, 1))

    def _tiles(self) -> list[Tile]:
        """The live buffers in TCM."""
        return self.engines.tile_manager.live()

    def _free_stuck_ring(self) -> None:
        """Empty the full doorbells of clients: a ring of a full one would block this core for ever."""
        ended = self._ended() if self._map[self._activity] == LOOKING else -1
        if ended >= 0 and ended == self._ended_at_last_beat:
            with doorbells_in_use:
                for doorbell in list(self._client_doorbells.values()):
                    if not has_room(doorbell):
                        empty(doorbell)
        self._ended_at_last_beat = ended

    def _ended(self) -> int:
        """How many tasks this core has ended."""
        return int(self._tasks)

    def _count(self) -> None:
        spent = self.engines.counter.cycles + self._nested_cycles
        COUNTERS.pack_into(self._map, self._record + CORE_TASKS, self._tasks, self._busy_ns, spent)

    def _unannounced(self) -> list[int]:
        """Slots that are READY for this core and not in its queue yet."""
        ready = self.mailbox.slots_in(State.READY)
        known = self._queued(ready)
        mine = (slot for slot in ready if slot not in known)
        return [
            slot
            for slot in mine
            if may_run(self.index, self.mailbox.request(slot).core_mask, self.mailbox.layout.core_count)
        ]

    def _queued(self, among: list[int]) -> set[int]:  # noqa: ARG002 - C is asked slot by slot
        return {slot for _, slot in self._queue.copy()}

    def _announce_all(self) -> None:
        """Announce all READY tasks by their state bytes: a lost announce byte never loses a task."""
        for slot in self._unannounced():
            self._map[self._announced + slot] = 1

    # -- claim

    def _claim(self, worst: int = _ANY_RANK) -> int:
        """Take the best task that this core may run; -1 when there is none.

        Args:
            worst: Largest first part of the task key.
        """
        mm, queue, lock = self._map, self._queue, self._claim_lock
        self._collect()
        while queue and queue[0][0][0] <= worst:
            (_, _, sequence), slot = heappop(queue)
            at, record = self._states + slot, self._records + slot * SLOT_RECORD_BYTES
            if mm[at] != _READY:
                continue  # another core was first: not worth the lock
            if (refusal := lock.try_acquire(lock.handle)) and not self._await_lock(refusal):
                mm[self._announced + slot] = 1  # for the next claim
                return -1
            # The mask too: an earlier task in the slot may have made the announcement.
            found, mask = _SEQUENCE_AND_MASK.unpack_from(mm, record)
            if mm[at] == _READY and found == sequence and may_run(self.index, mask, self.mailbox.layout.core_count):
                # The mark comes before the state: a reader that finds RUNNING finds the core too.
                CLAIM.pack_into(mm, record + ANSWER_OFFSET, self.index, 0, 0, 0, monotonic_ns())
                mm[at] = _RUNNING
                lock.release(lock.handle)
                mm[self._activity] = RUNNING
                if self._others:
                    self._chain()
                return slot
            lock.release(lock.handle)
        return -1

    def _await_lock(self, refusal: int) -> bool:
        """Take the claim lock; False when this core is stopping, or has waited too long inside another op."""
        try:
            self._claim_lock.acquire_slowly(refusal, None if self._depth else lambda: self.is_stopping)
        except ClaimLockHeldError:
            return False
        return True

    def _collect(self) -> None:
        """Queue the announced tasks. The announce byte is cleared before the record is read."""
        mm, start, end, queue = self._map, self._announced, self._announced_end, self._queue
        at = mm.find(ANNOUNCED, start, end)
        while at >= 0:
            mm[at] = 0
            slot = at - start
            if mm[self._states + slot] == _READY:
                record = self._records + slot * SLOT_RECORD_BYTES
                sequence, custom_id, _, priority, _ = ORDER.unpack_from(mm, record)
                if self._aging_ns:
                    priority = rank(priority, sequence, self._aging_ns)
                entry = (task_key(priority, custom_id, sequence), slot)
                if queue:  # nothing to order when the queue is empty
                    heappush(queue, entry)
                else:
                    queue.append(entry)
            at = mm.find(ANNOUNCED, at + 1, end)

    def _best_rank(self) -> int:
        """Rank of the best announced task: its priority, if that is urgent; one below every rank for none."""
        self._collect()
        return -self._queue[0][0][0] if self._queue else -_ANY_RANK

    def _chain(self) -> None:
        """Ring a sleeping core for a task that this one, now busy, leaves READY."""
        mm = self._map
        self._fence_in()
        self._fence_out()
        for at in self._others:
            if mm[at] == ASLEEP:
                if self._queue or mm.find(ANNOUNCED, self._announced, self._announced_end) >= 0:
                    self._ring_another()
                return

    def _ring_another(self) -> None:
        mm = self._map
        self._collect()
        masks = (
            ORDER.unpack_from(mm, self._layout.record(slot))[4]
            for _, slot in self._queue
            if mm[self._states + slot] == _READY
        )
        wake = core_to_chain(self.index, masks, [mm[at] for at in self._activities], self.mailbox.layout.core_count)
        if wake is not None:
            ring(self._doorbells[wake])

    # -- run

    def trace_c(self, ring: Ring | None) -> None:
        """Have what this core does in C noted beside a ring from now on, or with None no more. Only between ops."""

    def close(self) -> None:
        """Close what this object opened: for a process that goes on without its core."""
        self._epoll.close()

    def run_now(self, slot: int) -> None:
        """Run the task in a slot that no other core may claim: for a process that is its own core (see inline.py)."""
        CLAIM.pack_into(self._map, self._layout.record(slot) + ANSWER_OFFSET, self.index, 0, 0, 0, monotonic_ns())
        self._run(slot)

    def _run(self, slot: int) -> None:
        """Run the op of a claimed slot and answer, unless the op ends the process."""
        mm = self._map
        record = self._records + slot * SLOT_RECORD_BYTES
        context = self._context
        cmd, self._priority, owner, context.client_id, self._claim_ns = RUN.unpack_from(mm, record)
        context.task = cmd, owner, context.client_id
        context.map_failure = ""
        context.mapped_bytes = 0
        tile_manager, counter, idma = self.engines
        cycles_before = counter.cycles
        text, has_raised = "", False
        op = self._ops.get(cmd)
        start_ns = done_ns = monotonic_ns()
        try:
            if self._deferred and (
                op is None or op.last_ns > SHORT_OP_NS or start_ns - self._deferred_since_ns > MOST_DEFERRED_NS
            ):
                self._flush_deferred()
            if op is None:
                result, text = answer_builtin(context.registry, self._views, self.mailbox.request(slot))
            else:
                views = self._views.of(mm[record + REQUEST_CLIENT_AT : record + REQUEST.size])
                function = op.op or op.resolve()
                idma.begin_task()
                self._is_in_op = True
                checks = mm[self._checks + context.client_id * CLIENT_RECORD_BYTES]
                result = (
                    function(*views, tile_manager)
                    if not checks
                    else self._run_checked(op, function, views, checks, slot)
                )
                self._is_in_op = False
                if not self._own[0]:
                    forked.leave(f"{op.name} (command {cmd:#x})")
                done_ns = monotonic_ns()
                op.last_ns = done_ns - start_ns
                op.runs += 1
                if type(result) is not int or result:
                    result, text = self._returned(op, result)
        except BaseException as error:  # noqa: BLE001 - an op may raise anything; its task fails, the core goes on
            self._is_in_op, has_raised = False, True
            result, text = self._raised(op, cmd, error)
            done_ns = monotonic_ns()
        if idma.queue or tile_manager.live_count or context.mappings:
            sweep(cmd, op.name if op else "", idma, tile_manager, has_raised=has_raised)
        self._answer(slot, owner, result, text, start_ns, done_ns, counter.cycles - cycles_before)

    def _returned(self, op: Registration, returned: object) -> tuple[int, str]:
        """Status and text for an op's return value other than 0."""
        result = as_status(returned)
        return result, f"{op.name} (command {op.cmd:#x}) returned {result}. {self._context.map_failure}".rstrip()

    def _raised(self, op: Registration | None, cmd: int, error: BaseException) -> tuple[int, str]:
        """Status and text for an exception while a command was served."""
        name = f"{'The core' if op is None else op.name} (command {cmd:#x})"
        if not self._own[0]:
            forked.leave(name, error)
        result, text = explain(error, self._context.map_failure, name)
        if not is_refusal(error):
            self._faults.note(name, error, text)
        return result, text

    def _run_checked(
        self, op: Registration, function: Op, views: tuple[memoryview, memoryview], checks: int, slot: int
    ) -> int:
        from dsp_server.core.checked_run import run_op

        return run_op(self, op, function, views, checks, slot)

    def read_messages(self) -> None:
        """Handle every message of the supervisor that has come."""
        while self._listen():
            pass

    def _interrupt(self) -> None:
        """Send the main thread a signal: an urgent task may interrupt its op."""
        signal.pthread_kill(self._main_thread, PREEMPT_SIGNAL)

    def _preempt(self) -> None:
        """Run an urgent task (priority 254 or 255) in the middle of an op of lower priority, which then continues.

        A signal calls this between two bytecodes of the main thread; a long call into C ends first. The interrupting op
        has its own TCM, iDMA engine and cycle counter. One of 255 also interrupts one of 254 that interrupts another.
        None interrupts an import: it would be given the module that is being imported, of which half is there.
        """
        # Outside an op the loop claims by priority anyway. Repeated: a ring during the nested task has no other effect.
        while self._own[0] and self._is_in_op and self._priority < PRIORITY_PREEMPT:
            if _is_importing():
                self._is_interrupt_due = True  # at the next heartbeat
                return
            least = max(PRIORITY_URGENT, self._priority + 1)
            if self._best_rank() < least or not self._run_nested(least):
                return  # with no claim, the next heartbeat rescans

    def _run_nested(self, least: int) -> bool:
        """Run one task of a priority inside the running op; False when none could be claimed."""
        context = self._context
        before = (self._claim_ns, context.task, context.client_id, context.map_failure, self._priority)
        mapped_bytes = context.mapped_bytes
        mappings, context.mappings = context.mappings, []
        engines = self.engines
        self._is_in_op = False
        if len(self.spare_engines) == self._depth:
            spare = make_engines(TileManager(*engines.tile_manager.pool_bytes), CycleCounter(), unknown_handle)
            self.spare_engines.append(spare)
        spare = self.spare_engines[self._depth]
        self._depth += 1
        cycles_before, busy_ns_before = spare.counter.cycles, self._busy_ns
        self.use_engines(*spare)
        try:
            slot = self._claim(-least)
            if slot >= 0:
                self._run(slot)
        finally:
            self._nested_cycles += spare.counter.cycles - cycles_before
            self._busy_ns = busy_ns_before  # the interrupted op's time includes this
            self.use_engines(*engines)
            self._claim_ns, context.task, context.client_id, context.map_failure, self._priority = before
            context.mappings, context.mapped_bytes = mappings, mapped_bytes
            self._depth -= 1
            self._is_in_op = True
            self._map[self._activity] = RUNNING
        return slot >= 0

    def use_engines(self, tile_manager: TileManager, counter: CycleCounter, idma: Idma) -> None:
        """Give these engines to the running op, or to the next one; they are an ``Engines``."""
        self.engines = Engines(tile_manager, counter, idma)
        self.engines.install()

    # -- answer

    def _answer(
        self, slot: int, owner: int, result: int, text: str, start_ns: int, done_ns: int, spent_cycles: int
    ) -> None:
        """Publish the answer of a task, write LOOKING, and wake the owner if it sleeps."""
        mm = self._map
        at = self._records + slot * SLOT_RECORD_BYTES + ANSWER_OFFSET
        has_work = self._write_work(slot, spent_cycles)
        if result:
            answer = Answer(self.index, result, 0, has_work, self._claim_ns, start_ns, done_ns, spent_cycles)
            self.mailbox.write_answer(slot, answer, with_output(text))
        else:
            ANSWER.pack_into(mm, at, self.index, 0, 0, has_work, self._claim_ns, start_ns, done_ns, spent_cycles)
        self._tasks += 1
        end = State.FAILED if result else State.DONE
        self._history.note(self._tasks, slot, end)
        mm[self._states + slot] = end
        self._busy_ns += done_ns - start_ns
        # Before the owner wakes: its next submission then finds a core that is LOOKING, and rings none.
        mm[self._activity] = RUNNING if self._depth else LOOKING
        self._fence_in()
        self._fence_out()
        asleep = owner * CLIENT_RECORD_BYTES
        try:
            sleeps = self._asleep[asleep]
            self._polls = not self._asleep[asleep + CLIENT_SLEEPS]
        except IndexError:
            return  # the slot has an invalid owner
        if not sleeps:
            self._unrung.add(owner)
        elif self._is_alone and self._queue and not self._depth:
            self._defer_wakeup(owner, done_ns)
        else:
            self._asleep[asleep] = 0  # rung: no other core needs to ring it before its next sleep
            doorbell = self._client_doorbells.get(owner)
            if doorbell is None:
                self._ring_late(owner)
            else:
                ring(doorbell)

    def _write_work(self, slot: int, spent_cycles: int) -> int:
        """Write what the op charged, if anything; returns whether."""
        mapped_bytes = self._context.mapped_bytes
        if not spent_cycles and not mapped_bytes:
            return 0
        work = self.engines.counter.take_work()
        work[MAPPED_BYTES] += mapped_bytes
        self.mailbox.write_work(slot, work)
        return 1

    def forget_client(self, client: int) -> None:
        """Forget a client that has gone, or whose id has a new owner: its doorbell is about to be closed."""
        self._unrung.discard(client)

    def _defer_wakeup(self, owner: int, now_ns: int) -> None:
        """Defer a ring: on a single CPU, the woken caller would stop this core in the middle of its queue."""
        if not self._deferred:
            self._deferred_since_ns = now_ns
        self._deferred.add(owner)
        self._unrung.add(owner)  # an op may hang that was short before: the heartbeat rings too

    def _flush_deferred(self) -> None:
        """Ring the owners of deferred wake-ups."""
        deferred, self._deferred = self._deferred, set()
        for owner in deferred:
            self._map[self._clients + owner * CLIENT_RECORD_BYTES] = 0
            self._ring_late(owner)

    def _ring_late(self, owner: int) -> int | None:
        """Ring an owner whose doorbell may lie in a message that this core has not read yet.

        Returns:
            The doorbell; None where the daemon could not send it, as this core's socket was full: the heartbeat rings.
        """
        while owner not in self._client_doorbells and self._listen():
            pass
        doorbell = self._client_doorbells.get(owner)
        if doorbell is None:
            self._unrung.add(owner)
        else:
            ring(doorbell)
        return doorbell


def _is_importing() -> bool:
    """Whether the running op, or what the core loads for it, is in the middle of an import."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no public way
    while frame is not None and frame.f_code is not Core.serve.__code__:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False
