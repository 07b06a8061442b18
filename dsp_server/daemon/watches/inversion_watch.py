"""Looks for priority inversions while a program has the check ``advice`` on, and reports each one once.

It reads the task table as ``hbrt status`` does; tasks themselves do not pass through it.
"""

from __future__ import annotations

import time

from dsp_server.clients import Clients
from dsp_server.daemon.report import Report
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from dsp_server.process.proc_state import line_of
from dsp_server.waits.inversions import Inversion, Task, Why, inversions
from dsp_server.waits.span import span
from hbrt import settings
from hbrt.ddr.layout import ACTIVITY_ASLEEP, ACTIVITY_LOOKING, CLIENT_ASLEEP, CLIENT_CHECKS
from hbrt.findings.checks import Check
from hbrt.findings.record import Place
from hbrt.mailbox.schedule import PRIORITY_URGENT, may_run, rank
from hbrt.mailbox.table import Mailbox, Request, State

MIN_SECONDS = 0.1
"""How long counts as a long wait: longer than a busy workstation delays an op of a few milliseconds."""
POLL_SECONDS = 0.05
IDLE_POLL_SECONDS = 0.25


class InversionWatch:
    """Watches the order of tasks for programs that have asked for advice.

    Args:
        mailbox: The task table.
        clients: The attached clients.
        cores: The board's cores.
        report: Provides the running tasks.
        journal: Receives the findings.
        loop: The daemon's event loop.
    """

    def __init__(
        self, mailbox: Mailbox, clients: Clients, cores: list[BoardCore], report: Report, journal: Journal, loop: Loop
    ) -> None:
        self._mailbox = mailbox
        self._clients = clients
        self._cores = cores
        self._report = report
        self._journal = journal
        self._loop = loop
        self._aging_ns = settings.integer("HBRT_AGING_MS") * 1_000_000
        self._known: set[tuple[int, int]] = set()  # tasks, by slot and sequence, whose inversion has been reported

    def poll(self) -> None:
        """Look now, and again later."""
        is_wanted = any(self._has_advice(client) for client in self._clients.by_id)
        if is_wanted and (slots := self._mailbox.slots_in(State.READY)):
            self._look(slots, time.monotonic_ns())
        self._loop.later(POLL_SECONDS if is_wanted else IDLE_POLL_SECONDS, self.poll)

    def _look(self, slots: list[int], now_ns: int) -> None:
        ready = [self._task(slot, self._mailbox.request(slot), now_ns) for slot in slots]
        running = [
            self._task(one.slot, one.task, now_ns)._replace(core=one.on.core, ran_s=(now_ns - one.on.claim_ns) / 1e9)
            for one in self._report.running(now_ns)
        ]
        serving = [core.index for core in self._cores if core.child is not None and not core.is_stopped]
        found = [
            one
            for one in inversions(ready, running, serving, self._waiting_ops(), MIN_SECONDS)
            if self._has_advice(one.task.owner)
        ]
        for one in found:
            if (one.task.slot, one.task.sequence) not in self._known and self._is_so(one):
                self._tell(one)
        self._known = {(one.task.slot, one.task.sequence) for one in found}

    def _task(self, slot: int, request: Request, now_ns: int) -> Task:
        level = rank(request.priority, request.sequence, self._aging_ns)
        age_s = (now_ns - request.sequence) / 1e9
        return Task(slot, request.sequence, level, request.core_mask, request.owner, age_s)

    def _waiting_ops(self) -> dict[int, int]:
        """Map each program that a core runs as its op, and that sleeps until a task of its own ends, to that core."""
        mm, layout = self._mailbox.map, self._mailbox.layout
        asleep = [one for one in self._clients.by_id.values() if mm[layout.client(one.id) + CLIENT_ASLEEP]]
        of_pid = {core.child.pid: core.index for core in self._cores if core.child is not None}
        parents = {one.id: next((pid for pid in line_of(one.pid) if pid in of_pid), 0) for one in asleep}
        return {client: of_pid[pid] for client, pid in parents.items() if pid}

    def _has_advice(self, client: int) -> bool:
        at = self._mailbox.layout.client(client) + CLIENT_CHECKS
        return client in self._clients.by_id and bool(self._mailbox.map[at] & Check.ADVICE)

    def _is_so(self, found: Inversion) -> bool:
        """Whether the tasks are still as they were when they were read, so that nothing happened in between."""
        mailbox = self._mailbox
        states = (State.READY, State.RUNNING)
        queued, lower = ((one.slot, one.sequence) for one in (found.queued, found.lower))
        return all(
            mailbox.state(slot) is state and mailbox.request(slot).sequence == sequence
            for (slot, sequence), state in zip((queued, lower), states, strict=True)
        )

    def _tell(self, found: Inversion) -> None:
        task, queued, lower = found.task, found.queued, found.lower
        waited, core = span(queued.age_s), f"core {lower.core}"
        if found.why is Why.HELD:
            sentence = (
                f"{self._name(task)} runs on core {task.core} and waits for {self._name(queued)}, which has waited "
                f"{waited} for {core} behind {self._name(lower)}. So the first task waits for one of lower priority: "
                "submit tasks that an op waits for with at least the priority of the op's own task."
            )
        else:
            sentence = (
                f"{self._name(task)} has waited {waited} for {core}, which runs {self._name(lower)}. "
                f"{self._remedy(task)}"
            )
        places = [self._place("waiting", task), self._place("running", lower)]
        if found.why is Why.HELD:
            places.insert(1, self._place("queued", queued))
        self._journal.find("priority-inversion", sentence, *places, client=task.owner)

    def _remedy(self, task: Task) -> str:
        free = [
            core.index
            for core in self._cores
            if self._mailbox.map[core.activity_at] in {ACTIVITY_ASLEEP, ACTIVITY_LOOKING}
            and not may_run(core.index, task.core_mask)
        ]
        if free:
            return f"Core {free[0]} is free, but its dspCoreId is {task.core_mask}: set 0 for any core."
        if task.rank >= PRIORITY_URGENT:
            return (
                "It interrupts C only in calls to the runtime, and Python only between two bytecodes: call C or numpy "
                "for parts of the work instead of for all of it."
            )
        return (
            "A priority below 254 never interrupts: split the longer op into several tasks, reserve a core for the "
            "other one, or submit that one with 254 if it may interrupt."
        )

    def _name(self, task: Task) -> str:
        request = self._mailbox.request(task.slot)
        site = self._site(task)
        return f"{self._op(request)} (priority {request.priority}{f', submitted at {site}' if site else ''})"

    def _op(self, request: Request) -> str:
        child = next((core.child for core in self._cores if core.child is not None), None)
        return f"{child.name_of(request.cmd) if child else 'command'} ({request.cmd:#x})"

    def _site(self, task: Task) -> str:
        """The line that submitted a task, if its program has checks on."""
        has_sites = self._mailbox.map[self._mailbox.layout.client(task.owner) + CLIENT_CHECKS]
        return self._mailbox.site(task.slot) if has_sites else ""

    def _place(self, what: str, task: Task) -> Place:
        request = self._mailbox.request(task.slot)
        return Place(
            what,
            self._site(task) or None,
            client=task.owner,
            core=task.core if task.core >= 0 else None,
            cmd=request.cmd,
            op=self._op(request),
        )
