"""The watchdog: an op that outlives its time limit costs its task, and its core is started again.

The limit is the op's latency budget (hb_dsp_register_fn), or the board's default when the op has none. Looking costs
nothing on the path of a task: the daemon reads the slots that are RUNNING, every LOOK_SECONDS while there are any and
less often while there are none. So a limit is noticed late by that much at the most.

An op that a task of priority 255 has interrupted does not use up its time meanwhile. A slot that says RUNNING although
no core runs it, which only something that scribbles over the task table can bring about, is settled here as well: its
owner would wait for ever.

A core that is over its limit is asked for a traceback (faulthandler writes it even when the interpreter is stuck in C),
then killed; its death settles the task. Nothing else could: a core that still ran might end the task at the same time.
"""

from __future__ import annotations

import signal
import time

from dsp_server.children import CoreChild
from dsp_server.clients import TaskKey
from dsp_server.cores import CoreSlot
from dsp_server.journal import Journal
from dsp_server.loop import Loop
from dsp_server.settle import Settler
from hbrt.mailbox import Answer, Mailbox, Request, State

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
        cores: list[CoreSlot],
        loop: Loop,
        journal: Journal,
        default_ms: int,
    ) -> None:
        self._mailbox = mailbox
        self._settler = settler
        self._cores = cores
        self._interrupted_ns: dict[TaskKey, int] = {}  # for how long so far
        self._looked_ns = 0
        self._loop = loop
        self._journal = journal
        self._default_ns = default_ms * 1_000_000

    def open(self) -> None:
        """Begin to look."""
        self._loop.later(IDLE_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        running = self._mailbox.slots_in(State.RUNNING)
        now_ns = time.monotonic_ns()
        interrupted: dict[TaskKey, int] = {}
        newest: dict[int, int] = {}  # core -> claim of what it runs now
        for slot in running:
            answer = self._mailbox.answer(slot)
            newest[answer.core] = max(answer.claim_ns, newest.get(answer.core, 0))
        for slot in running:
            request, answer = self._mailbox.request(slot), self._mailbox.answer(slot)
            task = (slot, request.sequence)
            spent_ns = self._interrupted_ns.get(task, 0)
            if answer.claim_ns < newest.get(answer.core, 0):
                spent_ns += now_ns - max(self._looked_ns, answer.claim_ns)
            else:
                self._check(slot, request, answer, now_ns - answer.claim_ns - spent_ns)
            interrupted[task] = spent_ns
        self._interrupted_ns, self._looked_ns = interrupted, now_ns
        self._loop.later(LOOK_SECONDS if running else IDLE_LOOK_SECONDS, self._look)

    def _check(self, slot: int, request: Request, answer: Answer, took_ns: int) -> None:
        core = self._cores[answer.core] if 0 <= answer.core < len(self._cores) else None
        child = core.child if core is not None else None
        if core is None or child is None:
            self._settler.lose_phantom(slot, request.sequence, -1)
            return
        if child.overdue is not None or self._settler.lose_phantom(slot, request.sequence, core.activity_at):
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
