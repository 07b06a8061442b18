"""The watchdog: an op that outlives its time limit costs its task, and its core is started again.

The limit is the op's latency budget (hb_dsp_register_fn), or the board's default when the op has none. Looking costs
nothing on the path of a task: the daemon reads the slots that are RUNNING, every LOOK_SECONDS while there are any and
less often while there are none. So a limit is noticed late by that much at the most.

An op that a task of priority 255 has interrupted does not use up its time meanwhile. A slot that says RUNNING although
no core runs it, which only something that scribbles over the task table can bring about, is settled here as well: its
owner would wait for ever.

A core that runs no op and does not beat is seen at the same times. A submitter rings one core for a task; while that is
a core that is stopped, each call would wait for another core's beat to find the task. A claim lock that is
kept is daemon/lock_watch.py's, which looks at the same times.

A core that is over its limit is asked for a traceback (faulthandler writes it even when the interpreter is stuck in C),
then killed; its death settles the task. Nothing else could: a core that still ran might end the task at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress

from dsp_server.clients import TaskKey
from dsp_server.lifecycle import events
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.task_ends import Settler
from dsp_server.process.event_loop import Loop
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.mailbox.table import Answer, Mailbox, Request, State

LOOK_SECONDS = 0.1
IDLE_LOOK_SECONDS = 0.5
_MOST_STEP_SECONDS = 1.0  # between two looks: the rest is a time in which the daemon itself did not run


class Watchdog:
    """Watches the running tasks of a board.

    Args:
        mailbox: The task table.
        settler: Ends tasks that no core runs.
        cores: The board's cores.
        handle: Hears of one that hangs or does not beat.
        look_at_lock: Looks at the claim lock at a time of CLOCK_MONOTONIC; returns whether somebody keeps it.
        loop: Calls back.
        default_ms: Limit in milliseconds of ops that have no budget of their own; 0 for none.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        settler: Settler,
        cores: list[BoardCore],
        handle: Callable[[events.Event], None],
        look_at_lock: Callable[[int], bool],
        loop: Loop,
        default_ms: int,
    ) -> None:
        self._mailbox = mailbox
        self._settler = settler
        self._cores = cores
        self._handle = handle
        self._look_at_lock = look_at_lock
        self._interrupted_ns: dict[TaskKey, int] = {}  # for how long so far
        self._looked_ns = self._beats_seen_ns = 0
        self._loop = loop
        self._default_ns = default_ms * 1_000_000

    def open(self) -> None:
        """Begin to look."""
        self._loop.later(IDLE_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now_ns = time.monotonic_ns()
        is_held_up = self._look_at_lock(now_ns)
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
        is_urgent = self._look_at_hearts(now_ns, newest.keys()) or running or is_held_up
        self._loop.later(LOOK_SECONDS if is_urgent else IDLE_LOOK_SECONDS, self._look)

    def _look_at_hearts(self, now_ns: int, in_op: Collection[int]) -> bool:
        """See which cores run no op and do not beat; returns whether there is one.

        The slots say who runs an op, and not the activity bytes: a core says RUNNING there before it first looks, too,
        and when it has just answered.
        """
        step_s = min((now_ns - self._beats_seen_ns) / 1e9, _MOST_STEP_SECONDS)
        self._beats_seen_ns = now_ns
        idle = (core for core in self._cores if core.child is not None and core.index not in in_op)
        stalled = [core.index for core in idle if core.is_stalled(now_ns)]
        for core in self._cores:
            if core.index in stalled and core.child is not None:
                how = "stopped" if core.is_stopped else "stalled"
                self._handle(events.Stalls(core.index, core.child.pid, how, step_s))
            elif core.life.process is not None and core.life.process.stalled_s is not None:
                self._handle(events.Beats(core.index))
        return bool(stalled)

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
        with suppress(ClaimLockError):  # a limit holds, whoever keeps the lock
            if self._settler.lose_phantom(slot, serving):
                return
        if answer.core not in serving:
            return
        child = self._cores[answer.core].child
        if child is None:
            return
        limit_ns = child.budget_us(request.cmd) * 1000 or self._default_ns
        if limit_ns and took_ns > limit_ns and self._settler.is_running(slot, request.sequence):
            sentence = (
                f"Core {answer.core} has run command {request.cmd:#x} for {took_ns / 1e6:.0f} ms; its limit is "
                f"{limit_ns / 1e6:g} ms. The core is ended."
            )
            self._handle(events.Hangs(answer.core, (slot, request.sequence, limit_ns), sentence))
