"""A core dies at each point of a task's life; see points.py. One task at most is lost, and no caller waits forever."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from hbrt.mailbox.table import FIRST_END
from hbrt.status import Status
from tests.faults import ops
from tests.faults.points import Point
from tests.faults.world import World, is_stopped
from tests.waiting import await_end, until

actor = "core"


def outcome_at(world: World, point: Point, how: str) -> str:
    """Have core 0 die at a point with one waiting caller, one task behind it and one that any core may run."""
    victim = world.core_pid(0)
    warm = world.call(1)  # a core that has ended a task is started again at once
    assert warm.end() == 0
    warm.let_go()
    world.await_asleep(0)
    world.tokens.arm(point, how)
    first = world.call(1, gate_open=False).start_waiting()
    queued, anywhere = world.call(1), world.call(0)
    if not (how == "stop" and point.has_lock):
        until(lambda: world.mailbox.state(anywhere.slot) >= FIRST_END, "the end of the task for any core")
        world.await_asleep(1)  # it has rung for that; whom it woke says that it sleeps again
    until(lambda: world.sleeps(world.session.link.client_id) or first.status is not None, "a sleeping caller")
    first.open_gate()
    if how == "stop":
        until(lambda: is_stopped(victim), f"the stop at {point.key}")
        if not point.has_lock:  # who is stopped with the lock in hand stops all who claim
            beside = world.call(2)
            assert beside.end() == 0
            beside.let_go()
        os.kill(victim, signal.SIGKILL)
    calls = [first, queued, anywhere]
    statuses = [call.end() for call in calls]
    if not world.tokens.was_taken(point, how):
        world.await_asleep(0)  # the last points are come by when all has ended
    fired = world.tokens.was_taken(point, how)
    if fired:
        await_end(victim)
    world.tokens.clear()
    outcome = check(statuses, [call.runs for call in calls])
    for call in calls:
        call.let_go()
    assert world.serves() == []
    world.settle()
    if not fired:
        return "not come by"
    assert world.core_pid(0) != victim
    return outcome


def check(statuses: list[int], runs: list[int]) -> str:
    """One end each: done is one run of the op, lost is at most one; never more than one task is lost."""
    assert set(statuses) <= {0, Status.HB_DSP_CORE_LOST}, statuses
    assert all(ran == 1 if status == 0 else ran <= 1 for status, ran in zip(statuses, runs, strict=True)), runs
    assert statuses.count(Status.HB_DSP_CORE_LOST) <= 1, statuses
    return "done" if statuses[0] == 0 else "lost"


def test_killed(world: World, point: Point, note: Callable[..., None]) -> None:
    outcome = outcome_at(world, point, "kill")
    note(point.key, point.what, "SIGKILL", outcome)
    if point.is_numbered:
        assert outcome == point.outcome


def test_stopped_and_killed(world: World, point: Point, note: Callable[..., None]) -> None:
    outcome = outcome_at(world, point, "stop")
    note(point.key, point.what, "SIGSTOP, SIGKILL", outcome)
    assert outcome == point.outcome


test_stopped_and_killed.points = lambda point: point.number in {"C03", "C05", "C07", "C08", "C15", "C19", "C22"}  # type: ignore[attr-defined]


def test_killed_while_an_urgent_task_interrupts_another(world: World, note: Callable[..., None]) -> None:
    """Both tasks were in its hands; what is queued continues."""
    outer = world.call(1, ops.SPIN, gate_open=False).start_waiting()
    until(lambda: outer.block.view[0], "the outer op")
    inner = world.call(1, ops.SPIN, gate_open=False, priority=255)
    until(lambda: inner.block.view[0], "the inner op")
    queued = world.call(1)
    os.kill(world.core_pid(0), signal.SIGKILL)
    assert (outer.end(), inner.end(), queued.end()) == (Status.HB_DSP_CORE_LOST, Status.HB_DSP_CORE_LOST, 0)
    for call in (outer, inner, queued):
        call.let_go()
    assert world.serves() == []
    world.settle()
    note("core-P01", "an urgent op has interrupted another one", "SIGKILL", "both lost")
