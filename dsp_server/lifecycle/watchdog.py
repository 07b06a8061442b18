"""The watchdog: an op that outlives its time limit costs its task, and its core is started again.

The limit is the op's latency budget (hb_dsp_register_fn), or the board's default when the op has none. Looking costs
nothing on the path of a task: the daemon reads the slots that are RUNNING, every LOOK_SECONDS while there are any and
less often while there are none. So a limit is noticed late by that much at the most.

An op that a task of priority 255 has interrupted does not use up its time meanwhile. A slot that says RUNNING although
no core runs it, which only something that scribbles over the task table can bring about, is settled here as well: its
owner would wait for ever.

A core that runs no op and does not beat is stall_watch.py's, which looks at the same times.

A core that is over its limit is asked for a traceback (faulthandler writes it even when the interpreter is stuck in C),
then killed; its death settles the task. Nothing else could: a core that still ran might end the task at the same time.
"""

from __future__ import annotations

import signal
import time

from dsp_server.clients import TaskKey
from dsp_server.lifecycle.child import CoreChild
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.stall_watch import StallWatch
from dsp_server.lifecycle.task_ends import Settler
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.mailbox.table import Answer, Mailbox, Request, State

LOOK_SECONDS = 0.1
IDLE_LOOK_SECONDS = 0.5
TRACE_SECONDS = 0.05
TRACE_SIGNAL = signal.SIGUSR2


class Watchdog:
    """Watches the running tasks of a board.

    Args:
        mailbox: The task table.
        settler: Ends tasks that no core runs.
        cores: The board's cores.
        loop: Calls back.
        journal: Gets a line for each core that is killed.
        default_ms: Limit in milliseconds of ops that have no budget of their own; 0 for none.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        settler: Settler,
        cores: list[BoardCore],
        loop: Loop,
        journal: Journal,
        default_ms: int,
    ) -> None:
        self._mailbox = mailbox
        self._settler = settler
        self._cores = cores
        self._stalls = StallWatch(cores, journal, default_ms)
        self._interrupted_ns: dict[TaskKey, int] = {}  # for how long so far
        self._looked_ns = 0
        self._loop = loop
        self._journal = journal
        self._default_ns = default_ms * 1_000_000

    def open(self) -> None:
        """Begin to look."""
        self._loop.later(IDLE_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now_ns = time.monotonic_ns()
        seen = [(slot, self._seen_running(slot)) for slot in self._mailbox.slots_in(State.RUNNING)]
        running = [(slot, *found) for slot, found in seen if found is not None]
        newest: dict[int, int] = {}  # core -> claim of what it runs now
        for _, _, answer in running:
            newest[answer.core] = max(answer.claim_ns, newest.get(answer.core, 0))
        interrupted: dict[TaskKey, int] = {}
        for slot, request, answer in running:
            task = (slot, request.sequence)
            spent_ns = self._interrupted_ns.get(task, 0)
            if answer.claim_ns < newest[answer.core]:
                spent_ns += now_ns - max(self._looked_ns, answer.claim_ns)
            else:
                self._check(slot, request, answer, now_ns - answer.claim_ns - spent_ns)
            interrupted[task] = spent_ns
        self._interrupted_ns, self._looked_ns = interrupted, now_ns
        is_urgent = self._stalls.look(now_ns) or running
        self._loop.later(LOOK_SECONDS if is_urgent else IDLE_LOOK_SECONDS, self._look)

    def _seen_running(self, slot: int) -> tuple[Request, Answer] | None:
        """Both parts of one task: it was RUNNING before and after they were read, else they may be of two tasks."""
        mailbox = self._mailbox
        request = mailbox.request(slot)
        if mailbox.state(slot) is not State.RUNNING:
            return None
        answer = mailbox.answer(slot)
        is_same = mailbox.request(slot).sequence == request.sequence and mailbox.state(slot) is State.RUNNING
        return (request, answer) if is_same else None

    def _check(self, slot: int, request: Request, answer: Answer, took_ns: int) -> None:
        serving = {core.index: core.activity_at for core in self._cores if core.child is not None}
        if self._settler.lose_phantom(slot, serving) or answer.core not in serving:
            return
        child = self._cores[answer.core].child
        if child is None or child.overdue is not None:
            return
        limit_ns = child.budget_us(request.cmd) * 1000 or self._default_ns
        if not limit_ns or took_ns <= limit_ns or self._mailbox.state(slot) is not State.RUNNING:
            return
        child.overdue = (slot, request.sequence, limit_ns)
        self._journal.say(
            f"Core {answer.core} has run command {request.cmd:#x} for {took_ns / 1e6:.0f} ms; its limit is "
            f"{limit_ns / 1e6:g} ms. The core is ended."
        )
        child.signal(TRACE_SIGNAL)
        self._loop.later(TRACE_SECONDS, lambda: self._kill(child, slot, request.sequence))

    def _kill(self, child: CoreChild, slot: int, sequence: int) -> None:
        if self._mailbox.state(slot) is State.RUNNING and self._mailbox.request(slot).sequence == sequence:
            child.signal(signal.SIGKILL)
        else:
            child.overdue = None  # it has ended after all: the core runs something else, or nothing
