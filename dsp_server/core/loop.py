"""A core: wait, claim, run, answer.

A core that has claimed a task writes RUNNING, and wakes another core if it leaves a READY task. A core that finds no
task writes ASLEEP, scans once more, and waits for its doorbell. This module runs the Python ops. C's share is in
core_mailbox.py and ops_in_c.py, interruption of ops in preemption.py, the heartbeat's repairs in heartbeat.py, and
the rest of a core's process, including messages from the supervisor, in process.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.core import forked
from dsp_server.core.builtin import answer_builtin, as_status, explain, is_refusal
from dsp_server.core.core_mailbox import CoreMailbox, Running
from dsp_server.core.fault_log import Faults
from dsp_server.core.heartbeat import Heartbeat, Repairs
from dsp_server.core.op_effects import sweep, unknown_handle, with_output
from dsp_server.core.ops_in_c import OpsInC
from dsp_server.core.preemption import Preemption
from dsp_server.core.progress import Progress, Run
from dsp_server.core.views import Views
from dsp_server.hardware import cycles
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.engine_trace import EngineTrace
from dsp_server.hardware.engines import Engines, make_engines
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.registry import Op, Registration
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CLIENT_CHECKS, CORE_TASKS
from hbrt.mailbox.native import CONTROL, LOCKED, RAN, UNKNOWN_OWNER
from hbrt.mailbox.table import ANSWER_OFFSET, CLAIM, REQUEST, REQUEST_CLIENT_AT, RUN, SUBMITTED, Answer
from hbrt.profiles.work import MAPPED_BYTES
from hbrt.trace.kinds import EventKind

if TYPE_CHECKING:
    from hbrt.trace.ring import Ring

_TASKS = struct.Struct("<Q8xQ")  # tasks and modeled cycles, from CORE_TASKS on


class Core:
    """One virtual core over a board's DDR file.

    Args:
        index: Index of the core on its board.
        ddr: The board's DDR.
        doorbells: Doorbells of all cores, each an eventfd.
        control_fd: Becomes readable when the supervisor has sent a message.
        listen: Handles one message from the supervisor without blocking; returns False if there is none.
        client_doorbells: Doorbells of attached clients, keyed by attachment number; filled by ``listen``.
        faults: Receives the exceptions of ops.

    Attributes:
        engines: The engines that the running op, or the next one, computes with.
        now: The op that is running.
        ops: Its ops by command number.
    """

    def __init__(
        self,
        index: int,
        ddr: Ddr,
        doorbells: list[int],
        control_fd: int,
        listen: Callable[[], bool],
        client_doorbells: dict[int, int],
        faults: Faults,
    ) -> None:
        self.index = index
        self.is_stopping = False
        self.mailbox = CoreMailbox(index, ddr, doorbells, control_fd, listen, client_doorbells)
        self.engines = make_engines(runtime.context.tile_manager or TileManager(), cycles.current(), unknown_handle)
        self.engines.install()
        _, self.engines.counter.cycles = _TASKS.unpack_from(ddr.map, ddr.layout.core(index) + CORE_TASKS)
        self.now = Running()
        self.ops_in_c = OpsInC(self)
        self.preemption = Preemption(self, self.ops_in_c)
        self.ops_in_c.on_look = self.preemption.preempt
        self._repairs = Repairs(self, self.ops_in_c, self.preemption)
        self._views = Views(ddr)
        self._faults = faults
        self.ops = runtime.context.registry.by_cmd
        self._trace: EngineTrace | None = None

    def serve(self, urgent_doorbell: int) -> None:
        """Serve tasks until ``is_stopping`` is true.

        Args:
            urgent_doorbell: This core's doorbell for tasks that may interrupt its op, an eventfd.
        """
        mailbox, registry, repairs = self.mailbox, runtime.context.registry, self._repairs
        ddr, record = mailbox.ddr, mailbox.ddr.layout.core(self.index)
        ddr.imports.on_change = lambda is_any: mailbox.lib.hbrt_core_imports(mailbox.core, is_any)
        for registration in registry.listing():
            self.ops_in_c.offer(registration)
        registry.on_put = self.ops_in_c.offer
        progress = Progress(ddr.bytes, record, self.preemption.begin(), self.running_op, self.ops)
        on_beat = (repairs.rescan, progress.look, repairs.show_tcm)
        Heartbeat(ddr.bytes, record, on_beat, urgent_doorbell, self.preemption.interrupt).start()
        mailbox.announce_all()
        while not self.is_stopping:
            slot = self._next()
            if slot >= 0:
                self.run(slot)

    def _next(self) -> int:
        """Claim a task, or wait for one; -1 if there is no task for Python to run."""
        mailbox = self.mailbox
        slot = self.ops_in_c.next()
        if slot >= 0:
            return slot
        if slot == RAN:
            self.ops_in_c.end()
        elif slot == LOCKED:
            return mailbox.claim_locked(0, lambda: self.is_stopping)
        elif slot == UNKNOWN_OWNER:
            mailbox.ring_late(mailbox.lib.hbrt_core_ran(mailbox.core).owner)
        elif slot == CONTROL:
            mailbox.listen()
        if self._repairs.is_rescan_due:
            self._repairs.is_rescan_due = False
            mailbox.announce_all()
        return -1

    def running_op(self) -> Run | None:
        """Return the running op, for the heartbeat thread."""
        engine, slot, ddr, now = self.ops_in_c.engine(), self.ops_in_c.running(), self.mailbox.ddr, self.now
        task = runtime.context.task
        if slot >= 0:
            cmd, _, _, _, claim_ns = RUN.unpack_from(ddr.map, ddr.layout.record(slot))
        elif now.is_in_op and task:
            cmd, claim_ns = task[0], now.claim_ns
        else:
            return None
        op = self.ops.get(cmd)
        return None if op is None else Run(claim_ns, op, engine or self.engines.idma)

    def close(self) -> None:
        """Close what this object has opened; for a process that carries on without its core."""
        self.mailbox.close()
        del self.preemption, self.ops_in_c, self._repairs  # break the cycle that would keep the board's memory mapped

    def count_apart(self) -> None:
        """Stop counting tasks in the core's record: this core runs them in place of the board's own."""
        self.mailbox.lib.hbrt_core_apart(self.mailbox.core)

    def follow_trace(self, ring: Ring | None) -> None:
        """Trace ops and their engines into a ring from now on; None stops it. Call only between ops."""
        self._trace = None if ring is None else EngineTrace(ring)
        self.ops_in_c.follow_trace(ring)
        self.engines.follow_trace(self._trace)  # engines of an interrupting op follow when they are first used

    # -- run

    def run_now(self, slot: int) -> None:
        """Run the task in a slot that no other core may claim; for a process that is its own core (see inline.py)."""
        ddr = self.mailbox.ddr
        CLAIM.pack_into(ddr.map, ddr.layout.record(slot) + ANSWER_OFFSET, self.index, 0, 0, 0, monotonic_ns())
        self.run(slot)

    def run(self, slot: int) -> None:
        """Run the op of a claimed slot and answer its task, unless the op ends the process."""
        ddr, context, now = self.mailbox.ddr, runtime.context, self.now
        mm, record = ddr.map, ddr.layout.record(slot)
        cmd, now.priority, owner, context.client_id, now.claim_ns = RUN.unpack_from(mm, record)
        context.task = cmd, owner, context.client_id
        context.map_failure = ""
        context.mapped_bytes = 0
        tile_manager, counter, idma = self.engines
        cycles_before, text, has_raised = counter.cycles, "", False
        op = self.ops.get(cmd)
        newest = 0 if self._trace is None else self._trace.ring.newest
        start_ns = done_ns = monotonic_ns()
        try:
            if op is None:
                result, text = answer_builtin(context.registry, self._views, self.mailbox.table.request(slot))
            else:
                views = self._views.of(mm[record + REQUEST_CLIENT_AT : record + REQUEST.size])
                function = op.op or op.resolve()
                idma.begin_task()
                now.is_in_op = True
                checks = mm[ddr.layout.client(context.client_id) + CLIENT_CHECKS]
                result = (
                    function(*views, tile_manager)
                    if not checks
                    else self._run_checked(op, function, views, checks, slot)
                )
                now.is_in_op = False
                if not forked.mark[0]:
                    forked.leave(f"{op.name} (command {cmd:#x})")
                done_ns = monotonic_ns()
                op.last_ns = done_ns - start_ns
                op.runs += 1
                if type(result) is not int or result:
                    result, text = self.returned(op, result)
        except BaseException as error:  # noqa: BLE001 - ops may raise anything; the task fails, the core carries on
            now.is_in_op, has_raised = False, True
            result, text = self.raised(op, cmd, error)
            done_ns = monotonic_ns()
        if idma.queue or tile_manager.live_count or context.mappings:
            sweep(cmd, op.name if op else "", idma, tile_manager, has_raised=has_raised)
        self.answer(slot, owner, (result, text), (start_ns, done_ns), cycles_before, newest)

    def returned(self, op: Registration, returned: object) -> tuple[int, str]:
        """Return status and text for an op's return value other than 0."""
        result = as_status(returned)
        return result, f"{op.name} (command {op.cmd:#x}) returned {result}. {runtime.context.map_failure}".rstrip()

    def raised(self, op: Registration | None, cmd: int, error: BaseException) -> tuple[int, str]:
        """Return status and text for an exception raised while a command was served."""
        name = f"{'The core' if op is None else op.name} (command {cmd:#x})"
        if not forked.mark[0]:
            forked.leave(name, error)
        result, text = explain(error, runtime.context.map_failure, name)
        if not is_refusal(error):
            self._faults.note(name, error, text)
        return result, text

    def _run_checked(
        self, op: Registration, function: Op, views: tuple[memoryview, memoryview], checks: int, slot: int
    ) -> int:
        from dsp_server.core.checked_run import run_op

        return run_op(self, op, function, views, checks, slot)

    def use_engines(self, tile_manager: TileManager, counter: CycleCounter, idma: Idma) -> None:
        """Give these engines, an ``Engines``, to the running op or to the next one."""
        self.engines = Engines(tile_manager, counter, idma)
        self.engines.follow_trace(self._trace)
        self.engines.install()

    # -- answer

    def answer(
        self,
        slot: int,
        owner: int,
        outcome: tuple[int, str],
        times_ns: tuple[int, int],
        cycles_before: int,
        newest: int = -1,
    ) -> None:
        """Publish a task's answer, write LOOKING, and wake the owner if it sleeps.

        Args:
            slot: Slot of the task.
            owner: Client id to ring.
            outcome: The result, and the text if the task failed.
            times_ns: When its op started and ended.
            cycles_before: The cycle counter before the op ran.
            newest: Number of the newest trace event before the op; -1 records the op in any case.
        """
        (result, text), spent, mailbox = outcome, self.engines.counter.cycles - cycles_before, self.mailbox
        if self._trace is not None and self._trace.ring.newest != newest:
            # The history has the op itself; the event records which other events happened inside it.
            (sequence,) = SUBMITTED.unpack_from(mailbox.ddr.map, mailbox.ddr.layout.record(slot))
            self._trace.ring.note(EventKind.RUN, *times_ns, sequence, cycles_before, self.engines.counter.cycles)
        has_work = self._write_work(slot, spent)
        if result:
            answer = Answer(self.index, result, 0, has_work, self.now.claim_ns, *times_ns, spent)
            mailbox.table.write_answer(slot, answer, with_output(text))
        mailbox.answer(owner, slot, result, self.preemption.depth > 0, *times_ns, spent, has_work)

    def _write_work(self, slot: int, spent_cycles: int) -> int:
        """Write the work that the op charged, if any; return whether there was any."""
        mapped_bytes = runtime.context.mapped_bytes
        if not spent_cycles and not mapped_bytes:
            return 0
        work = self.engines.counter.take_work()
        work[MAPPED_BYTES] += mapped_bytes
        self.mailbox.table.write_work(slot, work)
        return 1
