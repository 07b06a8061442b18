"""The watchdog: when an op exceeds its time limit, its task fails and its core restarts.

The limit is the op's latency budget (hb_dsp_register_fn), or the board's default if the op has none. Checking costs
nothing on the path of a task: the daemon polls the RUNNING slots every POLL_SECONDS, less often while there are none.
So the watchdog is late by at most this interval.

The clock stops while a task of priority 255 interrupts an op. The watchdog also fails a task whose slot is RUNNING
although no core is running it; only a stray write to the task table causes that, and the owner would wait forever.

A core that runs a model is ended, too, if it does not end a run that its program no longer wants (the program has
released the task, or is gone) within STOP_GRACE_SECONDS.

The same poll finds cores that run no op and have no heartbeat, and cores that are stopped while running a model, for
which no time limit would end soon enough. A submitter rings one core per task; if that core is stopped, each call
waits until another core's heartbeat finds the task. The same poll also has LockWatch check
the claim lock.

The watchdog asks a core over its limit for a traceback (faulthandler writes one even if the interpreter is stuck in
C) and then kills it; its death fails the task. Nothing else is safe: a live core might end the task at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress

from dsp_server.clients import TaskKey
from dsp_server.lifecycle import events
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.life import STOP_GRACE_SECONDS
from dsp_server.lifecycle.task_ends import TaskReaper
from dsp_server.process.event_loop import Loop
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.mailbox.table import Answer, Mailbox, Request, State

POLL_SECONDS = 0.1
IDLE_POLL_SECONDS = 0.5
_MAX_STEP_SECONDS = 1.0  # between two polls; after a longer gap the daemon itself was not running


class Watchdog:
    """Watches the running tasks of a board.

    Args:
        mailbox: The task table.
        reaper: Fails tasks that no core runs.
        cores: The board's cores.
        handle: Receives the event of a core that hangs or has no heartbeat.
        check_lock: Checks the claim lock, given the time by CLOCK_MONOTONIC; returns whether a process keeps it.
        loop: The daemon's event loop.
        default_ms: Limit in milliseconds for ops without a budget; 0 for none.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        reaper: TaskReaper,
        cores: list[BoardCore],
        handle: Callable[[events.Event], None],
        check_lock: Callable[[int], bool],
        loop: Loop,
        default_ms: int,
    ) -> None:
        self._mailbox = mailbox
        self._reaper = reaper
        self._cores = cores
        self._handle = handle
        self._check_lock = check_lock
        self._interrupted_ns: dict[TaskKey, int] = {}  # total so far
        self._unwanted_since: dict[TaskKey, int] = {}  # model runs that their programs no longer want
        self._polled_ns = self._beats_checked_ns = 0
        self._loop = loop
        self._default_ns = default_ms * 1_000_000

    def open(self) -> None:
        """Start polling."""
        self._loop.later(IDLE_POLL_SECONDS, self._poll)

    def interrupted_ns(self, task: TaskKey) -> int:
        """How long a running task has been interrupted by tasks of priority 255 so far."""
        return self._interrupted_ns.get(task, 0)

    def _poll(self) -> None:
        now_ns = time.monotonic_ns()
        is_held_up = self._check_lock(now_ns)
        seen = [(slot, self._read_running(slot)) for slot in self._mailbox.slots_in(State.RUNNING)]
        running = [(slot, *found) for slot, found in seen if found is not None]
        models = self._mailbox.layout.core_count  # cores from this index on run models
        newest: dict[int, int] = {}  # core -> claim time of its newest task
        for _, _, answer in running:
            newest[answer.core] = max(answer.claim_ns, newest.get(answer.core, 0))
        interrupted: dict[TaskKey, int] = {}
        unwanted: dict[TaskKey, int] = {}
        for slot, request, answer in running:
            task = (slot, request.sequence)
            spent_ns = self._interrupted_ns.get(task, 0)
            if answer.claim_ns < newest[answer.core]:
                spent_ns += now_ns - max(self._polled_ns, answer.claim_ns)
            else:
                self._check_limit(slot, request, answer, now_ns - answer.claim_ns - spent_ns)
            interrupted[task] = spent_ns
            if models <= answer.core < len(self._cores) and self._cores[answer.core].is_unwanted(request):
                unwanted[task] = since_ns = self._unwanted_since.get(task, now_ns)
                self._check_unwanted(task, answer.core, now_ns - since_ns)
        self._interrupted_ns, self._unwanted_since, self._polled_ns = interrupted, unwanted, now_ns
        is_urgent = self._check_heartbeats(now_ns, newest.keys()) or running or is_held_up
        self._loop.later(POLL_SECONDS if is_urgent else IDLE_POLL_SECONDS, self._poll)

    def _check_heartbeats(self, now_ns: int, in_op: Collection[int]) -> bool:
        """Report cores with neither op nor heartbeat, and cores stopped in a model; return whether there are any.

        The slots show which cores run an op. The activity bytes do not: a core also writes RUNNING there before its
        first scan and right after an answer.
        """
        step_s = min((now_ns - self._beats_checked_ns) / 1e9, _MAX_STEP_SECONDS)
        self._beats_checked_ns = now_ns
        models = self._mailbox.layout.core_count
        must_beat = (
            core for core in self._cores if core.index not in in_op or (core.index >= models and core.is_stopped)
        )
        stalled = [core.index for core in must_beat if core.child is not None and core.is_stalled(now_ns)]
        for core in self._cores:
            if core.index in stalled and core.child is not None:
                how = "stopped" if core.is_stopped else "stalled"
                self._handle(events.Stalls(core.index, core.child.pid, how, step_s, core.index in in_op))
            elif core.life.process is not None and core.life.process.stalled_s is not None:
                self._handle(events.Beats(core.index))
        return bool(stalled)

    def _read_running(self, slot: int) -> tuple[Request, Answer] | None:
        """Read both parts of a task; None unless it is RUNNING before and after, as they could be of two tasks."""
        mailbox = self._mailbox
        request = mailbox.request(slot)
        if mailbox.state(slot) is not State.RUNNING:
            return None
        answer = mailbox.answer(slot)
        is_same = mailbox.request(slot).sequence == request.sequence and mailbox.state(slot) is State.RUNNING
        return (request, answer) if is_same else None

    def _check_unwanted(self, task: TaskKey, core: int, for_ns: int) -> None:
        slot, sequence = task
        if for_ns > STOP_GRACE_SECONDS * 1e9 and self._reaper.is_running(slot, sequence):
            sentence = (
                f"Core {core} has not finished a model's run {for_ns / 1e9:.0f} s after its program released the "
                "task or exited. hbrt ends the core."
            )
            self._handle(events.Hangs(core, (slot, sequence, for_ns), sentence))

    def _check_limit(self, slot: int, request: Request, answer: Answer, took_ns: int) -> None:
        serving = {core.index: core.activity_at for core in self._cores if core.child is not None}
        with suppress(ClaimLockError):  # a time limit applies even while a process keeps the lock
            if self._reaper.fail_phantom(slot, serving):
                return
        if answer.core not in serving:
            return
        child = self._cores[answer.core].child
        if child is None:
            return
        limit_ns = child.budget_us(request.cmd) * 1000 or self._default_ns
        if limit_ns and took_ns > limit_ns and self._reaper.is_running(slot, request.sequence):
            sentence = (
                f"Core {answer.core} has run {child.call_of(request.cmd)} for {took_ns / 1e6:.0f} ms; its limit is "
                f"{limit_ns / 1e6:g} ms. hbrt ends the core."
            )
            self._handle(events.Hangs(answer.core, (slot, request.sequence, limit_ns), sentence))
