"""The wait graph at one moment, for ``hbrt why``: the daemon asks programs and cores where they are waiting.

A program answers with the verb "waits", from the thread that sleeps on its doorbell; a core answers by faulthandler,
which also works while the op is in C. Each gets at most ANSWER_SECONDS: if it hangs or is stopped, it is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dsp_server.clients import RELAY, Client, Clients
from dsp_server.daemon.report import Report, RunningTask
from dsp_server.daemon.watches.lock_watch import LockWatch
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.health import CoreHealth
from dsp_server.lifecycle.lifecycle import Lifecycle
from dsp_server.process.event_loop import Loop
from dsp_server.process.proc_state import STOPPED, line_of, state_of
from dsp_server.waits.records import Core, Lock, Program, Records, Task, with_hops
from dsp_server.waits.sentences import last_words
from hbrt import settings
from hbrt.board.files import lock_holder
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import CLIENT_ASKED, CLIENT_ASLEEP
from hbrt.ddr.lock_holder import holder
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD, OF_ITS_OWNER, TaskKey, rank, task_key
from hbrt.mailbox.table import Mailbox, Request, State
from hbrt.protocol.stacks import waits_of

ANSWER_SECONDS = 1.0
TRACE_SECONDS = 0.05
POLL_SECONDS = 0.01
_NO_CORES = {OF_ITS_OWNER: "inline", OF_ANOTHER_BOARD: "elsewhere"}
_UNFINISHED = {State.SENT: "sent", State.READY: "ready", State.RUNNING: "running"}


class WaitLook:
    """Gathers the records of one moment; changes nothing.

    Args:
        paths: The board's paths, to find its relay's process.
        mailbox: The task table.
        clients: The attached clients.
        lifecycle: The cores.
        report: The health of the cores.
        locks: Tells who keeps the claim lock.
        loop: The daemon's event loop.
        limit_ms: Time limit for ops that have none of their own; 0 for none.
    """

    def __init__(
        self,
        paths: BoardPaths,
        mailbox: Mailbox,
        clients: Clients,
        lifecycle: Lifecycle,
        report: Report,
        locks: LockWatch,
        loop: Loop,
        limit_ms: int,
    ) -> None:
        self._paths = paths
        self._mailbox = mailbox
        self._clients = clients
        self._lifecycle = lifecycle
        self._report = report
        self._locks = locks
        self._loop = loop
        self._limit_s = limit_ms / 1000
        self._aging_ns = settings.integer("HBRT_AGING_MS") * 1_000_000

    def say(self, slot: int, done: Callable[[str], None]) -> None:
        """Ask everybody; ``done`` gets the sentence about the task in a slot, which is about to be ended."""
        self._ask(lambda records: done(last_words(with_hops(records, RELAY), slot)))

    def begin(self, done: Callable[[dict[str, Any]], None]) -> None:
        """Ask everybody; ``done`` gets the records as plain data."""
        self._ask(lambda records: done(records.as_dict()))

    def _ask(self, done: Callable[[Records], None]) -> None:
        running = [
            core.child
            for core in self._lifecycle.cores
            if core.child is not None and not core.is_stopped and self._runs_op(core)
        ]
        for child in running:  # cores first, to see where an op that is itself a client waits
            child.ask_stack()
        asked = [one for one in self._present() if self._clients.has_unfinished_tasks(one)]
        for client in asked:
            client.wait_report = None
            self._mailbox.map[self._mailbox.layout.client(client.id) + CLIENT_ASKED] = 1
            self._clients.ring(client.id)
        begin = time.monotonic()

        def look() -> None:
            age_s = time.monotonic() - begin
            has_all = all(map(self._has_told, asked)) and all(child.has_stack for child in running)
            if age_s < ANSWER_SECONDS and (age_s < TRACE_SECONDS or not has_all):
                self._loop.later(POLL_SECONDS, look)
            else:
                done(self._records())

        self._loop.later(POLL_SECONDS, look)

    def _has_told(self, client: Client) -> bool:
        """Whether a program has answered, or cannot: nobody in it is asleep, or it is stopped."""
        is_asleep = self._mailbox.map[self._mailbox.layout.client(client.id) + CLIENT_ASLEEP]
        return client.wait_report is not None or client.has_gone or not is_asleep or state_of(client.pid) in STOPPED

    def _present(self) -> list[Client]:
        return [client for client in self._clients.by_id.values() if not client.has_gone]

    def _runs_op(self, core: BoardCore) -> bool:
        return any(self._mailbox.answer(slot).core == core.index for slot in self._mailbox.slots_in(State.RUNNING))

    def _records(self) -> Records:
        now_ns = time.monotonic_ns()
        running = self._report.running(now_ns)
        healths = self._report.healths(running, now_ns)
        cores = self._lifecycle.present
        relay_pid = lock_holder(self._paths.relay_lock) or 0
        claims = {one.on.core: one.on.claim_ns for one in running}
        return Records(
            tuple(self._program(client) for client in self._present()),
            tuple(self._tasks(running, now_ns)),
            tuple(_core(core, *health, claims.get(core.index, 0)) for core, health in zip(cores, healths, strict=True)),
            self._lock(),
            relay_pid,
            relay_pid > 0 and state_of(relay_pid) in STOPPED,
        )

    def _program(self, client: Client) -> Program:
        mm, record = self._mailbox.map, self._mailbox.layout.client(client.id)
        mm[record + CLIENT_ASKED] = 0
        line = line_of(client.pid)
        return Program(
            client.id,
            client.pid,
            client.name,
            "",
            state_of(client.pid) in STOPPED,
            bool(mm[record + CLIENT_ASLEEP]),
            None if client.wait_report is None else waits_of(client.wait_report),
            tuple(core.index for core in self._lifecycle.cores if core.child is not None and core.child.pid in line),
        )

    @property
    def _any(self) -> int:
        """What mask 0 means if it does not mean every running core."""
        has_others = len(self._lifecycle.present) > len(self._lifecycle.dsp_cores)
        return (1 << len(self._lifecycle.dsp_cores)) - 1 if has_others else 0

    def _tasks(self, running: list[RunningTask], now_ns: int) -> list[Task]:
        claims = {one.slot: one.on for one in running}
        tasks = []
        for slot in self._mailbox.slots_in(*_UNFINISHED):
            request = self._mailbox.request(slot)
            state = self._mailbox.state(slot)
            on = claims.get(slot)
            if state not in _UNFINISHED or (state is State.RUNNING and on is None):
                continue  # ended meanwhile
            mask = (request.core_mask or self._any) % OF_ITS_OWNER or -1
            serving = [
                core.child for core in self._lifecycle.cores if core.child is not None and mask >> core.index & 1
            ]
            child = self._lifecycle.cores[on.core].child if on else next(iter(serving), None)
            tasks.append(
                Task(
                    slot,
                    request.sequence,
                    _NO_CORES.get(request.core_mask, _UNFINISHED[state]),
                    child.op_of(request.cmd) if child else f"command {request.cmd:#x}",
                    request.owner,
                    request.core_mask or self._any,
                    self._order(request),
                    max(0, now_ns - request.sequence) / 1e9,
                    on.core if on else -1,
                    (now_ns - on.claim_ns) / 1e9 if on else 0.0,
                    (child.budget_us(request.cmd) / 1e6 if child else 0.0) or self._limit_s,
                    (request.output_phy, request.output_bytes),
                )
            )
        return tasks

    def _order(self, request: Request) -> TaskKey:
        level = rank(request.priority, request.sequence, self._aging_ns)
        return task_key(level, request.custom_id, request.sequence)

    def _lock(self) -> Lock | None:
        thread = self._mailbox.claim_lock.thread
        if not thread:
            return None
        who = holder(thread)
        is_kept = bool(self._locks.problem) or who.is_stopped
        return Lock(str(who), who.advice, who.pid, is_kept)


def _core(core: BoardCore, beat: CoreHealth, problem: str, claim_ns: int) -> Core:
    child, seen = core.child, core.progress(claim_ns)
    return Core(
        core.index,
        child.pid if child else 0,
        core.life.state,
        beat.word,
        problem,
        core.life.is_wanted,
        core.is_stopped,
        beat.beat_age_s or 0.0,
        seen.still_ns / 1e9,
        child.stack() if child is not None and claim_ns else (),
        seen.dma_handle,
        seen.dma_outstanding,
        core.flag(seen),
    )
