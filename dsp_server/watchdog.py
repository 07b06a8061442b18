"""The watchdog: an op that outlives its time limit costs its task, and its core is started again.

The limit is the op's latency budget (hb_dsp_register_fn), or the board's default when the op has none. Looking costs
nothing on the path of a task: the daemon reads the slots that are RUNNING, every LOOK_SECONDS while there are any and
less often while there are none. So a limit is noticed late by that much at the most.

A core that is over its limit is asked for a traceback (faulthandler writes it even when the interpreter is stuck in C),
then killed; its death settles the task. Nothing else could: a core that still ran might end the task at the same time.
"""

from __future__ import annotations

import signal
import time

from dsp_server.children import CoreChild
from dsp_server.cores import CoreSlot
from dsp_server.journal import Journal
from dsp_server.loop import Loop
from hbrt.mailbox import Mailbox, State

LOOK_SECONDS = 0.1
IDLE_LOOK_SECONDS = 0.5
TRACE_SECONDS = 0.05
TRACE_SIGNAL = signal.SIGUSR2


class Watchdog:
    """Watches the running tasks of a board.

    Args:
        mailbox: The task table.
        cores: The board's cores.
        loop: Calls back.
        journal: Gets a line for each core that is killed.
        default_ms: Limit in milliseconds of ops that have no budget of their own; 0 for none.
    """

    def __init__(self, mailbox: Mailbox, cores: list[CoreSlot], loop: Loop, journal: Journal, default_ms: int) -> None:
        self._mailbox = mailbox
        self._cores = cores
        self._loop = loop
        self._journal = journal
        self._default_ns = default_ms * 1_000_000

    def open(self) -> None:
        """Begin to look."""
        self._loop.later(IDLE_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        running = self._mailbox.slots_in(State.RUNNING)
        for slot in running:
            self._check(slot)
        self._loop.later(LOOK_SECONDS if running else IDLE_LOOK_SECONDS, self._look)

    def _check(self, slot: int) -> None:
        request, answer = self._mailbox.request(slot), self._mailbox.answer(slot)
        child = self._cores[answer.core].child if 0 <= answer.core < len(self._cores) else None
        if child is None or child.overdue is not None:
            return
        limit_ns = child.budget_us(request.cmd) * 1000 or self._default_ns
        took_ns = time.monotonic_ns() - answer.claim_ns
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
