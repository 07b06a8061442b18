"""The rules of the cores' lives: in every state that a small board can come to, and in any order of events.

A ``World`` is a board's life with what the rules cannot see: which processes are there, which requests wait for an
answer, which timers run. Each step checks what must hold whatever happens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from dsp_server.lifecycle import actions, events
from dsp_server.lifecycle.decide import ACTIVITY_REPLACING, decide, refusal
from dsp_server.lifecycle.life import CRASHED, OFFLINE, RUNNING, Core, Life, Process, new_board
from dsp_server.lifecycle.restart_policy import MAX_IDLE_DEATHS, History
from dsp_server.lifecycle.snapshots import Image
from hbrt.ddr.layout import ACTIVITY_OFFLINE
from hbrt.status import Status
from tests.each import each

IMAGE = Image(Path("image.py"), Path("image-1.py"), 0.0)
OTHER = Image(Path("other.py"), Path("image-2.py"), 0.0)
LIMIT_S = 5.0
PID = 77
MOVES = {(OFFLINE, RUNNING), (RUNNING, OFFLINE), (RUNNING, CRASHED), (CRASHED, RUNNING), (CRASHED, OFFLINE)}
TASK = (3, 7, 1000)


class World(NamedTuple):
    """A board's life, and what is around it."""

    life: Life
    alive: tuple[tuple[int, int, bool], ...] = ()  # process, its core, whether it was told to end
    served: frozenset[int] = frozenset()  # processes that were let go
    waiting: frozenset[int] = frozenset()  # requests
    timers: frozenset[int] = frozenset()  # cores
    activities: tuple[int, ...] = ()
    next_request: int = 1


def new_world(cores: int) -> World:
    return World(new_board([IMAGE] * cores, 1.0, LIMIT_S), activities=(ACTIVITY_OFFLINE,) * cores)


def step(world: World, event: events.Event) -> tuple[World, list[actions.Action]]:  # noqa: C901, PLR0912 - a table
    """What happens, and what follows; fails where a promise is broken."""
    alive = {process: (core, is_told) for process, core, is_told in world.alive}
    waiting, timers, served, activities = (
        set(world.waiting),
        set(world.timers),
        set(world.served),
        list(world.activities),
    )
    next_request = world.next_request
    if isinstance(event, events.RolloutAsked | events.StopAsked):
        waiting.add(event.request)
        next_request += 1
    elif isinstance(event, events.Ended):
        alive.pop(event.process, None)
        served.discard(event.process)
    elif isinstance(event, events.Failed) and isinstance(event.action, actions.Start):
        alive.pop(event.action.process, None)
    elif isinstance(event, events.StartDue):
        timers.discard(event.core)
    life, done = decide(world.life, event)
    serving = wanted = frozenset(index for index, core in enumerate(life.cores) if core.is_wanted)
    for action in done:
        match action:
            case actions.Start(process, core):
                assert process not in alive
                alive[process] = (core, False)
            case actions.End(process) | actions.Kill(process):
                if process in alive:
                    alive[process] = (alive[process][0], True)
            case actions.Go(process):
                core, is_told = alive[process]
                assert not is_told, "a process that was told to end is let go"
                assert not any(alive[other][0] == core for other in served), "two processes are one core"
                served.add(process)
            case actions.StartLater(core):
                assert core not in timers
                timers.add(core)
            case actions.CancelStart(core):
                timers.remove(core)
            case actions.Answer(request):
                waiting.remove(request)
            case actions.Publish(core, activity) if activity is not None:
                activities[core] = activity
            case actions.FailUnservable(served_by):  # of several, the last one counts
                serving = served_by
    assert serving == wanted
    now = World(
        life,
        tuple((process, *rest) for process, rest in sorted(alive.items())),
        frozenset(served),
        frozenset(waiting),
        frozenset(timers),
        tuple(activities),
        next_request,
    )
    check(world, now, done)
    return now, done


def check(before: World, now: World, done: list[actions.Action]) -> None:
    """What holds after each step."""
    life, alive = now.life, {process: is_told for process, _, is_told in now.alive}
    mine = [one for core in life.cores for one in (core.process, core.candidate) if one is not None]
    assert {one.id for one in mine} <= set(alive)
    assert all(is_told for process, is_told in alive.items() if process not in {one.id for one in mine}), (
        "one is forgotten"
    )
    stops = {core.stop for core in life.cores} - {None}
    assert now.waiting == stops | ({life.rollout.request} if life.rollout else set()), (
        "an answer is owed, or came twice"
    )
    assert now.timers == {index for index, core in enumerate(life.cores) if core.is_due}
    assert not now.served - {core.process.id for core in life.cores if core.process}
    for index, (core, was) in enumerate(zip(life.cores, before.life.cores, strict=True)):
        assert core.state == was.state or (was.state, core.state) in MOVES
        assert (core.state == RUNNING) == (core.process is not None)
        assert not (core.is_due and core.candidate)
        assert core.process is None or core.process.id in now.served
        assert core.process is None or not core.process.is_ending or alive[core.process.id]
        if core.process is None:
            assert not core.is_wanted or core.is_due or core.candidate, "a core that should run is forgotten"
            assert now.activities[index] == (ACTIVITY_REPLACING if core.is_wanted else ACTIVITY_OFFLINE)
    if life.is_closing:
        assert not any(isinstance(action, actions.Start | actions.StartLater | actions.Go) for action in done)
        assert all(alive.values())


def not_started(process: int, core: int) -> events.Failed:
    return events.Failed(actions.Start(process, core, IMAGE, 1.0), "no process left")


def possible(world: World, *, steady: bool, hearts: bool = True) -> Iterator[events.Event]:
    """Whatever may happen next; with ``steady`` no process dies early, without ``hearts`` none hangs or stalls."""
    life, request = world.life, world.next_request
    yield from (events.SupersedeAsked(), events.RecoverySet(is_enabled=not life.is_recovering))
    if not life.is_closing:
        yield events.CloseAsked()
    every = range(len(life.cores))
    for index in every:
        yield events.StartAsked((index,))
        if not refusal(life, index, wants_stop=True):
            yield events.StopAsked(request, index)
        if not refusal(life, index):
            yield events.RolloutAsked(request, ((index, IMAGE),), 1.0)
    if not refusal(life, -1):
        yield events.RolloutAsked(request, tuple((index, OTHER) for index in every), 1.0)
    yield from (events.StartDue(index) for index in world.timers)
    for process, core, _ in world.alive:
        served_s = 10.0 if process in world.served and steady else 0.0
        yield events.Ended(process, PID, "ended", served_s=served_s)
        yield events.Ended(
            process, PID, "ended", "It fell.", is_late=True, lost=("A task is lost.",), served_s=served_s
        )
        if process not in world.served:
            yield from (events.Ready(process, PID), not_started(process, core))
        elif hearts:
            yield from (events.Hangs(core, TASK, "It hangs."), events.Stalls(core, PID, "stopped", 1.0))
            yield from (events.Traced(process, still_hangs=False), events.Beats(core))


def canonical(world: World, *, keeps_history: bool) -> World:
    """The same world with its processes and requests numbered anew, without what is counted or was killed before."""
    mine = {one.id for core in world.life.cores for one in (core.process, core.candidate) if one}
    world = world._replace(alive=tuple(process for process in world.alive if process[0] in mine))
    numbers = {process: at for at, (process, _, _) in enumerate(world.alive, 1)}
    requests = {request: at for at, request in enumerate(sorted(world.waiting), 1)}

    def process_of(one: Process | None) -> Process | None:
        if one is None:
            return None
        return one._replace(id=numbers[one.id], image=IMAGE, stalled_s=None if one.stalled_s is None else 0.0)

    def core_of(core: Core) -> Core:
        return core._replace(
            image=IMAGE,
            process=process_of(core.process),
            candidate=process_of(core.candidate),
            stop=requests.get(core.stop or 0),
            epoch=min(core.epoch, 1),
            crashes=0,
            last_crash="",
            history=core.history._replace(early=min(core.history.early, 2)) if keeps_history else History(),
        )

    change = world.life.rollout
    return world._replace(
        life=world.life._replace(
            cores=tuple(map(core_of, world.life.cores)),
            rollout=change
            and change._replace(request=requests[change.request], failure=change.failure and "It failed."),
            next_process=len(numbers) + 1,
        ),
        alive=tuple((numbers[process], core, is_told) for process, core, is_told in world.alive),
        served=frozenset(numbers[process] for process in world.served),
        waiting=frozenset(requests.values()),
        next_request=len(requests) + 1,
    )


def settle(world: World) -> World:
    """Everything goes well from here on: who was told to end ends, who loads gets ready, each pause ends."""
    for _ in range(50):
        coming: list[events.Event] = [events.Ended(process, PID, "ended") for process, _, told in world.alive if told]
        coming += [
            events.Ready(one.id, PID) for core in world.life.cores if (one := core.candidate) and not one.is_ready
        ]
        coming += [events.StartDue(index) for index in world.timers]
        if not coming:
            return world
        world, _ = step(world, coming[0])
    raise AssertionError("the board does not come to rest")


@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=pytest.mark.long)])
def test_every_state_that_a_board_can_come_to_is_sound_and_comes_to_rest(cores: int) -> None:
    """Of two cores none hangs, stalls or dies early: that is each one's own matter, and there are states enough."""
    is_alone = cores == 1
    first = canonical(new_world(cores), keeps_history=is_alone)
    seen, todo = {first}, deque([first])
    while todo:
        world = todo.popleft()
        rest = settle(world)
        assert not rest.waiting
        assert all(core.state == RUNNING for core in rest.life.cores if core.is_wanted)
        for event in possible(world, steady=not is_alone, hearts=is_alone):
            following = canonical(step(world, event)[0], keeps_history=is_alone)
            if following not in seen:
                seen.add(following)
                todo.append(following)
    assert {core.state for world in seen for core in world.life.cores} == {OFFLINE, RUNNING, CRASHED}
    assert len(seen) > 100


@settings(max_examples=60)
@given(st.data())
def test_any_order_of_events_is_sound_also_of_ones_that_come_late(data: st.DataObject) -> None:
    world = new_world(data.draw(st.integers(1, 3)))
    for _ in range(data.draw(st.integers(1, 40))):
        late = data.draw(st.integers(1, world.life.next_process))
        candidates = [one for core in world.life.cores for one in (core.process, core.candidate) if one]
        strangers: list[events.Event] = []
        if late not in {one.id for one in candidates}:  # of a process that the board has forgotten
            strangers = [events.Ready(late, PID), not_started(late, 0), events.Traced(late, still_hangs=True)]
        event = data.draw(st.sampled_from([*possible(world, steady=data.draw(st.booleans())), *strangers]))
        before = world
        world, done = step(world, event)
        if any(event is stranger for stranger in strangers):
            assert (world.life, done) == (before.life, [])


def running(cores: int = 1) -> World:
    """A board whose cores run."""
    world, _ = step(new_world(cores), events.RolloutAsked(1, tuple((index, IMAGE) for index in range(cores)), 1.0))
    return settle(world)


def typed(done: Iterable[actions.Action]) -> list[tuple[object, ...]]:
    """To compare actions by: as tuples alone, ``End(1)`` and ``Kill(1)`` are equal."""
    return [(type(action), *action) for action in done]


def said(done: list[actions.Action]) -> list[str]:
    return [action.sentence for action in done if isinstance(action, actions.Log | actions.Report)]


def test_a_change_takes_over_when_all_are_ready_and_each_after_its_predecessor() -> None:
    world, _ = step(running(2), events.RolloutAsked(2, ((0, OTHER), (1, OTHER)), 1.0))
    world, done = step(world, events.Ready(3, PID))
    assert done == []
    world, done = step(world, events.Ready(4, PID))
    assert typed(done) == typed([actions.End(1), actions.End(2)])
    world, done = step(world, events.Ended(2, PID, "exited"))
    assert typed([actions.Go(4)])[0] in typed(done)
    assert [core.image for core in world.life.cores] == [IMAGE, OTHER]
    world, done = step(world, events.Ended(1, PID, "exited"))
    ends: list[actions.Action] = [
        actions.Go(3),
        actions.ImagesChanged(""),
        actions.Answer(2, Status.HB_SYS_SUCCESS, ""),
    ]
    assert typed(done[-3:]) == typed(ends)


def test_a_change_of_which_one_fails_changes_nothing() -> None:
    world, _ = step(running(2), events.RolloutAsked(2, ((0, OTHER), (1, OTHER)), 1.0))
    world, _ = step(world, events.Ready(3, PID))
    world, done = step(world, events.Ended(4, PID, "exited", "It fell.", is_late=True))
    text = "The image other.py did not load on core 1:\nIt fell."
    ends: list[actions.Action] = [
        actions.Kill(3),
        actions.ImagesChanged("It fell."),
        actions.Answer(2, Status.HB_DSP_TIMEOUT, text),
    ]
    assert typed(done) == typed(ends)
    assert [core.image for core in world.life.cores] == [IMAGE, IMAGE]


def test_a_core_that_crashes_after_it_took_over_starts_again_while_the_others_still_end() -> None:
    world, _ = step(running(2), events.RolloutAsked(2, ((0, OTHER), (1, OTHER)), 1.0))
    for event in (events.Ready(3, PID), events.Ready(4, PID), events.Ended(2, PID, "exited")):
        world, _ = step(world, event)
    world, _ = step(world, events.Ended(4, PID, "exited", served_s=10.0))  # core 0's old process has not ended yet
    world, _ = step(world, events.StartDue(1))
    world, done = step(world, events.Ready(5, PID))
    assert typed([actions.Go(5)])[0] in typed(done)
    _, done = step(world, events.Ended(1, PID, "exited"))
    assert typed(done[-1:]) == typed([actions.Answer(2, Status.HB_SYS_SUCCESS, "")])


def test_a_process_that_still_ends_for_an_earlier_change_lets_none_take_over_before_all_are_ready() -> None:
    world, _ = step(running(2), events.RolloutAsked(2, ((0, OTHER),), 1.0))
    world, done = step(world, events.Ready(3, PID))
    assert typed(done) == typed([actions.End(1)])
    world, _ = step(world, events.Ended(3, PID, "fell"))  # the change has failed, and process 1 is still ending
    world, _ = step(world, events.RolloutAsked(3, ((0, OTHER), (1, OTHER)), 1.0))
    world, _ = step(world, events.Ready(4, PID))
    world, done = step(world, events.Ended(1, PID, "exited"))
    assert not [action for action in done if isinstance(action, actions.Go)]
    world, done = step(world, events.Ready(5, PID))
    assert set(typed([actions.Go(4), actions.End(2)])) <= set(typed(done))


def test_the_cores_of_a_process_domain_end_and_start_again_as_one() -> None:
    world = running(3)
    world = world._replace(life=world.life._replace(domains=((0, 1), (2,))))
    world, done = step(world, events.Ended(1, PID, "fell", lost=("A task was lost.",)))
    killed = [action for action in done if isinstance(action, actions.Kill)]
    assert [one.process for one in killed] == [2]
    assert "with core 0" in killed[0].problem
    world, done = step(world, events.Ended(2, PID, "ended with core 0"))
    assert not [action for action in done if isinstance(action, actions.Kill)]
    assert typed([actions.StartLater(1, 0.0)])[0] in typed(done)
    world = settle(world)
    assert [(one.state, one.epoch) for one in world.life.cores] == [(RUNNING, 2), (RUNNING, 2), (RUNNING, 1)]


def test_a_core_that_never_gets_to_serve_stays_down() -> None:
    world, done = running(), list[actions.Action]()
    for death in range(MAX_IDLE_DEATHS):
        process = world.life.cores[0].process
        assert process is not None
        world, done = step(world, events.Ended(process.id, PID, "exited"))
        if death < MAX_IDLE_DEATHS - 1:
            world = settle(world)
    assert (world.life.cores[0].state, world.life.cores[0].is_wanted) == (CRASHED, False)
    assert typed([actions.FailUnservable(frozenset())])[0] in typed(done)
    assert "stays crashed. Run 'hbrt restart --core 0' once the cause is fixed." in said(done)[0]


def test_a_stall_is_said_once_marked_at_each_look_and_ended_after_its_limit() -> None:
    world, done = step(running(), events.Stalls(0, PID, "stopped", 1.0))
    assert (typed(done[:1]), len(said(done))) == (typed([actions.MarkStalled(0)]), 1)
    for _ in range(int(LIMIT_S)):
        world, done = step(world, events.Stalls(0, PID, "stopped", 1.0))
        assert typed(done) == typed([actions.MarkStalled(0)])
    beating, _ = step(world, events.Beats(0))
    assert len(said(step(beating, events.Stalls(0, PID, "stopped", 1.0))[1])) == 1
    world, done = step(world, events.Stalls(0, PID, "stopped", 1.0))
    assert typed([actions.Kill(1, "stopped for 6.0 s with no op to run")])[0] in typed(done)
    assert said(done) == [f"Core 0 (process {PID}) ran no op and was stopped for 6.0 s; hbrt ends it."]


def test_a_core_that_is_stopped_in_a_model_is_not_marked_and_is_ended_after_the_limit() -> None:
    world, _ = step(running(), events.Stalls(0, PID, "stopped", 1.0, is_in_model=True))
    world, done = step(world, events.Stalls(0, PID, "stopped", LIMIT_S + 1, is_in_model=True))
    assert typed([actions.Kill(1, "stopped for 6.0 s")])[0] in typed(done)
    assert said(done) == [f"Core 0 (process {PID}) ran a model and was stopped for 6.0 s; hbrt ends it."]
    assert not any(isinstance(action, actions.MarkStalled) for action in done)


def test_an_op_that_hangs_is_traced_once_and_killed_when_it_still_hangs() -> None:
    world, done = step(running(), events.Hangs(0, TASK, "It hangs."))
    assert typed(done) == typed([actions.Log("It hangs."), actions.Trace(1, TASK)])
    assert step(world, events.Hangs(0, TASK, "It hangs."))[1] == []
    assert typed(step(world, events.Traced(1, still_hangs=True))[1]) == typed([actions.Kill(1)])
    world, done = step(world, events.Traced(1, still_hangs=False))
    assert typed(done) == typed([actions.Forgive(1)])
    assert step(world, events.Traced(1, still_hangs=True))[1] == []


@pytest.mark.parametrize("ends", [not_started(1, 0), events.Ended(1, PID, "exited")])
def test_a_core_that_cannot_start_for_the_first_time_keeps_nobody_waiting_and_is_tried_again(
    ends: events.Event,
) -> None:
    world, done = step(new_world(1), events.StartAsked((0,)))
    assert typed(done[1:]) == typed([actions.Start(1, 0, IMAGE, 1.0)])
    assert step(world, events.StartAsked((0,)))[1] == []
    world, done = step(world, ends)
    assert typed([actions.FailUnservable(frozenset())])[0] in typed(done)
    assert "Core 0 did not start: " in said(done)[0]
    world = settle(step(world, events.StartAsked((0,)))[0])
    assert world.life.cores[0].state == RUNNING
    assert step(world, events.StartAsked((0,)))[1] == []


def test_an_action_that_fails_is_a_finding_unless_there_is_no_way_to_report_it() -> None:
    _, done = step(running(), events.Failed(actions.ImagesChanged(None), "Read-only file system"))
    assert said(done) == ["The daemon's action ImagesChanged on a core failed: Read-only file system"]
    assert step(running(), events.Failed(actions.Log("lost"), "why"))[1] == []


@each(
    "world, arguments, why",
    [
        (running(2), {"index": 2}, "Core 2 is out of range: this board has cores 0 to 1."),
        (running(), {"index": 0, "wants_start": True}, "Core 0 is already running; nothing was changed."),
        (new_world(1), {"index": 0, "wants_stop": True}, "Core 0 is already offline; nothing was changed."),
        (step(running(), events.CloseAsked())[0], {"index": -1}, "The board is being stopped."),
        (
            step(running(2), events.StopAsked(2, 1))[0],
            {"index": 0},
            "Core 1 is being stopped; wait until it is offline.",
        ),
        (
            step(running(2), events.RolloutAsked(2, ((0, OTHER), (1, OTHER)), 1.0))[0],
            {"index": 0},
            "A restart of core 0, 1 is in progress; wait until it is done.",
        ),
    ],
)
def test_what_cannot_be_done_now_is_refused_with_a_sentence(world: World, arguments: dict[str, int], why: str) -> None:
    assert refusal(world.life, **arguments) == why  # type: ignore[arg-type]
