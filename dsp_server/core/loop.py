"""A core: wait, claim, run, answer. native/mailbox/core.c has its queue, claims, answers, waits, and runs ops in C.

A core that claimed a task writes RUNNING, and wakes another core for a READY task that it leaves. A core that found no
task writes ASLEEP, scans once more, and waits for its doorbell. Here are the ops in Python, what interrupts one, and
what the heartbeat repairs; core/process.py has the rest of a core's process, and its messages with the supervisor.
"""

from __future__ import annotations

import contextlib
import ctypes
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, cast

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
from dsp_server.hardware.engine_trace import EngineTrace
from dsp_server.hardware.engines import Engines, make_engines
from dsp_server.hardware.tcm import Tile, bits_in_use
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.registry import Op, Registration
from hbrt import settings
from hbrt.ddr.claim_lock import ClaimLockHeldError
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import (
    CLIENT_CHECKS,
    CLIENT_COUNT,
    CLIENT_RECORD_BYTES,
    CORE_ACTIVITY,
    CORE_TASKS,
    CORE_TCM,
    SLOT_RECORD_BYTES,
    TCM_BITS,
)
from hbrt.mailbox.doorbell import empty, has_room, ring
from hbrt.mailbox.native import native
from hbrt.mailbox.schedule import (
    ASLEEP,
    LOOKING,
    PRIORITY_PREEMPT,
    PRIORITY_URGENT,
    RUNNING,
    STALLED,
    may_run,
)
from hbrt.mailbox.spin import poll_budget_ns, usable_cpus
from hbrt.mailbox.table import ANSWER_OFFSET, CLAIM, REQUEST, REQUEST_CLIENT_AT, RUN, SUBMITTED, Answer, Mailbox, State
from hbrt.profiles.work import MAPPED_BYTES
from hbrt.trace.kinds import Kind

if TYPE_CHECKING:
    from types import FrameType

    from dsp_server.c_images.runtime_calls import COp, Runtime
    from hbrt.trace.ring import Ring

ANNOUNCED = b"\1"
PREEMPT_SIGNAL = signal.SIGUSR1
_IMPORTS = "<frozen importlib._bootstrap>"  # the file of the interpreter's own frames of an import
_FREE = frozenset({ASLEEP, LOOKING})
_TASKS = struct.Struct("<Q8xQ")  # tasks and modelled cycles, from CORE_TASKS on
# Answers of native/mailbox/mailbox.h.
_LOCKED, _CONTROL, _RAN = range(-7, -10, -1)
_UNKNOWN_OWNER = -11
_ENDING = struct.Struct("=2I2i4Q")  # hbrt_ending


def _in_c(registration: Registration) -> COp | None:
    calls = sys.modules.get("dsp_server.c_images.runtime_calls")  # of a process that has an image in C
    return registration.op if calls is not None and isinstance(registration.op, calls.COp) else None


class Core:
    """One virtual core over a board's DDR file.

    C runs a C op and answers its task. At the op's first call into the runtime, this side takes the task
    over (``_adopt``). It answers such tasks, failed ones, and those of ops in Python.

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
        self._ddr, self._map, self._layout = ddr, ddr.map, layout
        self.mailbox, self._views = Mailbox(ddr), Views(ddr)
        self._context = runtime.context
        self._ops = runtime.context.registry.by_cmd
        self._claim_ns = 0
        self._records, self._checks = layout.records, layout.clients + CLIENT_CHECKS
        self._announced = layout.announced(index)
        self._record = layout.core(index)
        self._activity = self._record + CORE_ACTIVITY
        self._activities = [layout.core(core) + CORE_ACTIVITY for core in range(len(doorbells))]
        self._doorbells, self._client_doorbells, self._urgent_doorbell = doorbells, client_doorbells, urgent_doorbell
        self._listen = listen
        self._main_thread = 0
        self._is_in_op = False
        self._depth = 0  # how many ops are interrupted
        self._priority = 0  # of the running task
        self.spare_engines: list[Engines] = []  # for ops that interrupt, by depth
        self._trace: EngineTrace | None = None
        self._epoll = select.epoll()
        # Edge-triggered: every ring wakes once, and no read of the counter is needed.
        self._epoll.register(doorbells[index], select.EPOLLIN | select.EPOLLET)
        self._epoll.register(control_fd, select.EPOLLIN)
        self._own, self._faults = forked.mark, faults
        self._is_rescan_due = self._is_interrupt_due = False
        self._unrung: set[int] = set()  # owners without a doorbell here when one of their tasks ended
        _, self.engines.counter.cycles = _TASKS.unpack_from(ddr.map, self._record + CORE_TASKS)
        self._image: Runtime | None = None  # of the ops in C
        self._adopted_cycles = 0  # the counter when the running C op was adopted
        module = native()
        self._ffi, self._lib = ffi, lib = module.ffi, module.lib
        self._place = ctypes.c_char.from_buffer(ddr.map)  # keeps the mapping while C may use it
        core = lib.hbrt_core_new(
            ffi.cast("void *", ctypes.addressof(self._place)),
            layout.file_bytes,
            layout._replace(core_count=len(doorbells)).pack_header(),
            index,
            doorbells,
            self._epoll.fileno(),
            control_fd,
            usable_cpus() == 1,
        )
        if core == ffi.NULL:
            raise MemoryError("The mailbox in C has no memory for this core.")
        self._core = ffi.gc(core, lib.hbrt_core_free)
        self._c_claim, self._c_answer, self._c_next = lib.hbrt_core_claim, lib.hbrt_core_answer, lib.hbrt_core_next
        self._owners, self._last_ns = ffi.new("uint32_t[]", CLIENT_COUNT), ffi.new("uint64_t *")
        lib.hbrt_core_age(self._core, settings.integer("HBRT_AGING_MS") * 1_000_000)
        lib.hbrt_core_polls(self._core, poll_budget_ns())

    def serve(self) -> None:
        """Serve tasks until ``is_stopping``."""
        self._ddr.imports.on_change = lambda is_any: self._lib.hbrt_core_imports(self._core, is_any)
        for registration in self._context.registry.listing():
            self._offer(registration)
        self._context.registry.on_put = self._offer
        signal.signal(PREEMPT_SIGNAL, lambda *_: self._preempt())
        self._main_thread = threading.get_ident()
        progress = Progress(self._ddr.bytes, self._record, self._main_thread, self._running_op, self._ops)
        on_beat = (self._rescan, progress.look, self._show_tcm)
        Heartbeat(self._ddr.bytes, self._record, on_beat, self._urgent_doorbell, self._interrupt).start()
        self._announce_all()
        while not self.is_stopping:
            slot = self._next()
            if slot >= 0:
                self._run(slot)

    # -- wait

    def _next(self) -> int:
        """Claim a task; where there is none, wait for one. -1 without a task for this side."""
        if self._image is None:
            slot: int = self._c_next(self._core)
        else:
            self._image.engine.give()
            slot = self._c_next(self._core)
            self._take_cycles()
            self._image.engine.take()
        if slot >= 0:
            return slot
        if slot == _RAN:
            self._end()
        elif slot == _LOCKED:
            return self._claim_locked(0)
        elif slot == _UNKNOWN_OWNER:
            self._ring_late(self._lib.hbrt_core_ran(self._core).owner)
        elif slot == _CONTROL:
            self._listen()
        if self._is_rescan_due:
            self._is_rescan_due = False
            self._announce_all()
        return -1

    def _unannounced(self) -> list[int]:
        """Slots that are READY for this core and not in its queue yet."""
        core, is_queued, core_count = self._core, self._lib.hbrt_core_is_queued, self._layout.core_count
        return [
            slot
            for slot in self.mailbox.slots_in(State.READY)
            if not is_queued(core, slot) and may_run(self.index, self.mailbox.request(slot).core_mask, core_count)
        ]

    def _announce_all(self) -> None:
        """Announce all READY tasks by their state bytes: a lost announce byte never loses a task."""
        for slot in self._unannounced():
            self._map[self._announced + slot] = 1

    # -- the heartbeat's thread

    def _rescan(self) -> None:
        """Once a heartbeat, in its thread: wake sleepers that missed a wake-up."""
        mm = self._map
        if self._take_runs():
            # A signal that came while C ran its ops is not handled yet.
            self._lib.hbrt_core_interrupt(self._core)
            if mm[self._activity] == ASLEEP:
                self._interrupt()
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
        announced_end = self._announced + self._layout.slot_count
        is_missed = not is_any_core_free and mm.find(ANNOUNCED, self._announced, announced_end) >= 0
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

    def _take_runs(self) -> int:
        """Note the number and the times of the ops that have run in C since the last call; returns the number."""
        total = 0
        for cmd, op in list(self._ops.items()) if self._image else ():
            if runs := self._lib.hbrt_core_runs(self._core, cmd, self._last_ns):
                op.runs += runs
                op.last_ns = self._last_ns[0]
                total += runs
        return total

    def _take_unrung(self) -> set[int]:
        """Owners that seemed awake when one of their tasks ended, or had no doorbell here, since the last time."""
        count = self._lib.hbrt_core_unrung(self._core, self._owners, CLIENT_COUNT)
        owners, self._unrung = self._unrung, set()
        return {*self._ffi.unpack(self._owners, count), *owners}

    def _running_op(self) -> Run | None:
        """The op that runs, for the heartbeat's thread."""
        engine = self._image.engine if self._image is not None and self._image.engine.is_on else None
        slot = self._lib.hbrt_core_running(self._core)
        if slot >= 0:
            cmd, _, _, _, claim_ns = RUN.unpack_from(self._map, self._layout.record(slot))
        elif self._is_in_op and self._context.task:
            cmd, claim_ns = self._context.task[0], self._claim_ns
        else:
            return None
        op = self._ops.get(cmd)
        return None if op is None else Run(claim_ns, op, engine or self.engines.idma)

    def _show_tcm(self) -> None:
        """Once a heartbeat, in its thread: write which TCM is in use."""
        with contextlib.suppress(RuntimeError):  # the op has changed the list meanwhile; the next beat looks again
            tiles: list[Tile] = self.engines.tile_manager.live()
            if self._image is not None and self._image.engine.is_on:
                tiles = [*self._image.engine.tiles(), *tiles]
            TCM_BITS.pack_into(self._map, self._record + CORE_TCM, bits_in_use(tiles, 0), bits_in_use(tiles, 1))

    def _free_stuck_ring(self) -> None:
        """Empty the full doorbells of clients: a ring of a full one would block this core for ever."""
        ended = -1
        if self._map[self._activity] == LOOKING:
            ended, _ = _TASKS.unpack_from(self._map, self._record + CORE_TASKS)
        if ended >= 0 and ended == self._ended_at_last_beat:
            with doorbells_in_use:
                for doorbell in list(self._client_doorbells.values()):
                    if not has_room(doorbell):
                        empty(doorbell)
        self._ended_at_last_beat = ended

    # -- claim

    def _claim(self, least_priority: int = 0) -> int:
        """Take the best task that this core may run, of an urgent priority or of any; negative when there is none."""
        slot: int = self._c_claim(self._core, least_priority)
        return self._claim_locked(least_priority) if slot == _LOCKED else slot

    def _claim_locked(self, least_priority: int) -> int:
        """Claim when another process holds the lock; -1 when this core is stopping, or has waited too long in an op."""
        lock = self.mailbox.claim_lock
        if refusal := lock.try_acquire(lock.handle):
            try:
                lock.acquire_slowly(refusal, None if self._depth else lambda: self.is_stopping)
            except ClaimLockHeldError:
                return -1
        try:
            slot: int = self._c_claim(self._core, least_priority)  # the lock is recursive
        finally:
            lock.release(lock.handle)
        return slot

    def _best_rank(self) -> int:
        """Rank of the best announced task: its priority, if that is urgent; one below every rank for none."""
        rank: int = self._lib.hbrt_core_first_rank(self._core)
        return rank

    # -- run

    def follow_trace(self, ring: Ring | None) -> None:
        """Note ops, and what their engines do, into a ring from now on, or with None no more. Only between ops."""
        self._trace = None if ring is None else EngineTrace(ring)
        if self._image is not None:
            self._image.engine.follow_trace(ring)
        for engines in (self.engines, *self.spare_engines):
            engines.follow_trace(self._trace)

    def close(self) -> None:
        """Close what this object opened: for a process that continues without its core."""
        self._epoll.close()

    def count_apart(self) -> None:
        """Count no task in the core's record from now on: the board's own core runs none of them."""
        self._lib.hbrt_core_apart(self._core)

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
        cycles_before, trace = counter.cycles, self._trace
        newest = 0 if trace is None else trace.ring.newest
        text, has_raised = "", False
        op = self._ops.get(cmd)
        start_ns = done_ns = monotonic_ns()
        try:
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
        except BaseException as error:  # noqa: BLE001 - an op may raise anything; its task fails, the core keeps running
            self._is_in_op, has_raised = False, True
            result, text = self._raised(op, cmd, error)
            done_ns = monotonic_ns()
        if idma.queue or tile_manager.live_count or context.mappings:
            sweep(cmd, op.name if op else "", idma, tile_manager, has_raised=has_raised)
        if trace is not None and trace.ring.newest != newest:
            # The history has the op itself; an event says which of the others were inside it.
            self._note_run(trace, slot, start_ns, done_ns, cycles_before)
        self._answer(slot, owner, result, text, start_ns, done_ns, counter.cycles - cycles_before)

    def _note_run(self, trace: EngineTrace, slot: int, start_ns: int, done_ns: int, before: int) -> None:
        (sequence,) = SUBMITTED.unpack_from(self._map, self._layout.record(slot))
        trace.ring.note(Kind.RUN, start_ns, done_ns, sequence, before, self.engines.counter.cycles)

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
        if self._image is not None:
            self._image.engine.call()
        signal.pthread_kill(self._main_thread, PREEMPT_SIGNAL)

    def _preempt(self) -> None:
        """Run an urgent task (priority 254 or 255) in the middle of an op of lower priority, which then continues.

        A signal calls this between two bytecodes of the main thread; a long call into C ends first. The interrupting op
        has its own TCM, iDMA engine and cycle counter. One of 255 also interrupts one of 254 that interrupts another.
        None interrupts an import: it would be given the module that is being imported, of which half is there.
        """
        self._adopt()
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
        self.use_engines(*spare)
        try:
            slot = self._claim(least)
            if slot >= 0:
                self._run(slot)
        finally:
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
        self.engines.follow_trace(self._trace)
        self.engines.install()

    # -- an op in C

    def _adopt(self) -> None:
        """Take over the task that C runs: for the calls of its op, for an urgent task inside it, and for its answer."""
        slot = self._lib.hbrt_core_adopt(self._core)
        if slot < 0:
            return
        ran, context, engines = self._lib.hbrt_core_ran(self._core), self._context, self.engines
        _, self._priority, _, _, self._claim_ns = RUN.unpack_from(self._map, self._layout.record(slot))
        context.task, context.client_id = (ran.cmd, ran.owner, ran.client), ran.client
        context.map_failure, context.mapped_bytes = "", 0
        image = self._op_in_c(ran.cmd).image
        idma = engines.idma
        if (first := image.engine.first_handle) is not None:
            idma.last_handle = first
        idma.begin_task()
        self._take_cycles()
        self._adopted_cycles = engines.counter.cycles
        image.tile_manager = engines.tile_manager
        self._is_in_op = True

    def _take_cycles(self) -> None:
        """Count the cycles of the ops that C has answered."""
        self.engines.counter.cycles += self._lib.hbrt_core_cycles(self._core)

    def _op_in_c(self, cmd: int) -> COp:
        return cast("COp", self._ops[cmd].op)

    def _end(self) -> None:
        """Answer a task that C has run."""
        self._adopt()
        ran, context = self._lib.hbrt_core_ran(self._core), self._context
        tile_manager, counter, idma = self.engines
        registration, op = self._ops[ran.cmd], self._op_in_c(ran.cmd)
        op.image.tile_manager = None
        op.image.engine.take()
        cycles, *work = ran.spent
        counter.cycles += cycles
        counter.add_work(work)
        result, text, has_raised = 0, "", False
        try:
            returned = op.ended(ran.result)
            self._is_in_op = False
            if not self._own[0]:
                forked.leave(f"{registration.name} (command {ran.cmd:#x})")
            if returned:
                result, text = self._returned(registration, returned)
        except BaseException as error:  # noqa: BLE001 - as in _run
            self._is_in_op, has_raised = False, True
            result, text = self._raised(registration, ran.cmd, error)
        if idma.queue or tile_manager.live_count or context.mappings:
            sweep(ran.cmd, registration.name, idma, tile_manager, has_raised=has_raised)
        spent = counter.cycles - self._adopted_cycles
        if self._trace is not None:
            self._note_run(self._trace, ran.slot, ran.start_ns, ran.done_ns, self._adopted_cycles)
        self._answer(ran.slot, ran.owner, result, text, ran.start_ns, ran.done_ns, spent)

    def _offer(self, registration: Registration) -> None:
        """Have C run a C op."""
        ffi, lib, op = self._ffi, self._lib, _in_c(registration)
        if op is not None:
            if self._image is None:
                self._image = op.image
                op.image.on_begin, op.image.on_look = self._adopt, self._preempt
                op.image.engine.open(self.engines, self._ddr, len(self._doorbells))
            lib.hbrt_core_calls(self._core, ffi.cast("hbrt_call *", op.image.caller), ffi.from_buffer(self._own))
        lib.hbrt_core_op(self._core, registration.cmd, ffi.cast("void *", op.address if op else 0))

    # -- answer

    def _answer(
        self, slot: int, owner: int, result: int, text: str, start_ns: int, done_ns: int, spent_cycles: int
    ) -> None:
        """Publish the answer of a task, write LOOKING, and wake the owner if it sleeps."""
        has_work = self._write_work(slot, spent_cycles)
        if result:
            answer = Answer(self.index, result, 0, has_work, self._claim_ns, start_ns, done_ns, spent_cycles)
            self.mailbox.write_answer(slot, answer, with_output(text))
        ending = _ENDING.pack(slot, owner, result, self._depth > 0, start_ns, done_ns, spent_cycles, has_work)
        if self._c_answer(self._core, ending) != 1:
            self._ring_late(owner)

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
        """Forget a client that is gone, or whose id has a new owner: its doorbell is about to be closed."""
        self._unrung.discard(client)
        self._lib.hbrt_core_client(self._core, client, -1)

    def _ring_late(self, owner: int) -> None:
        """Ring an owner whose doorbell C does not know: it may lie in a message that this core has not read yet.

        Where the daemon could not send it, as this core's socket was full, the heartbeat rings.
        """
        while owner not in self._client_doorbells and self._listen():
            pass
        doorbell = self._client_doorbells.get(owner)
        if doorbell is None:
            self._unrung.add(owner)
            return
        ring(doorbell)
        self._lib.hbrt_core_client(self._core, owner, doorbell)


def _is_importing() -> bool:
    """Whether the running op, or what the core loads for it, is in the middle of an import."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no public way
    while frame is not None and frame.f_code is not Core.serve.__code__:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False
