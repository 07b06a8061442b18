"""Who waits for whom, by records that are written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from dsp_server.waits.graph import Node, NodeKind, cycles, graph_of, hanging, index_of
from dsp_server.waits.records import Core, Flag, Lock, Program, Records, Task, records_of, with_hops
from dsp_server.waits.sentences import Chain, Verdict, chains, cycle_sentences, look_of, place_of
from dsp_server.waits.span import span
from hbrt.attach.wait_sites import in_circles
from hbrt.protocol.stacks import Frame, Wait
from tests.each import each

MAIN = Frame("/home/arm.py", 63, "main")
OP = Frame("/home/my_ops.py", 40, "op")


def program(number: int, *slots: int, **fields: Any) -> Program:
    waits = tuple(Wait(slot, (MAIN,)) for slot in slots)
    given = {"hop": "", "is_stopped": False, "is_asleep": bool(slots), "waits": waits or None, "cores": ()}
    return Program(**{"id": number, "pid": 800 + number, "name": "arm.py", **given, **fields})


def task(number: int, owner: int, core: int = -1, **fields: Any) -> Task:
    given = {"core_mask": 0, "order": (0, 0, number), "age_s": 5.0, "ran_s": 4.2 if core >= 0 else 0.0, "limit_s": 60.0}
    given["output"] = (0, 0)
    state = "running" if core >= 0 else "ready"
    return Task(
        **{
            "task": number,
            "sequence": number,
            "state": state,
            "op": "op",
            "owner": owner,
            "core": core,
            **given,
            **fields,
        }
    )


def core(number: int, health: str = "busy", **fields: Any) -> Core:
    given = {
        "comes_back": False,
        "is_stopped": False,
        "silent_s": 0.0,
        "still_s": 0.0,
        "stack": (OP,),
        "dma_handle": 0,
        "dma_outstanding": 0,
        "flag": None,
    }
    problem = "" if health in {"ok", "busy"} else f"Core {number} is {health}."
    return Core(
        **{
            "core": number,
            "pid": 700 + number,
            "state": "running",
            "health": health,
            "problem": problem,
            **given,
            **fields,
        }
    )


def board(*parts: Program | Task | Core, lock: Lock | None = None, relay_pid: int = 0, **fields: Any) -> Records:
    return Records(
        tuple(one for one in parts if isinstance(one, Program)),
        tuple(one for one in parts if isinstance(one, Task)),
        tuple(one for one in parts if isinstance(one, Core)),
        lock,
        relay_pid,
        **{"relay_is_stopped": False, **fields},
    )


def told(now: Records, before: Records | None = None, only: int | None = None) -> list[Chain]:
    return chains(look_of(before or now), look_of(now), only)


def test_a_queue_behind_an_op_that_is_stuck_hangs_from_end_to_end() -> None:
    records = board(
        program(2, 17), program(3, 19), task(17, 2, 0), task(19, 3), core(0, "stuck", dma_handle=6, dma_outstanding=2)
    )
    last = next(chain for chain in told(records) if chain.program == 3)
    assert last.verdict is Verdict.HANGS
    assert last.text == (
        "Client 3 (process 803, arm.py, at /home/arm.py:63) waits for task 19 (op); it is queued behind task 17 (op) "
        "on core 0; core 0 (process 700) has run task 17 for 4.2 s at /home/my_ops.py:40 in op, for iDMA handle 6 "
        "(2 descriptors are outstanding); the watchdog ends it after 60 s. This hangs: core 0 is stuck."
    )
    assert [step.node for step in last.steps] == [
        Node(NodeKind.PROGRAM, 3),
        Node(NodeKind.TASK, 19),
        Node(NodeKind.CORE, 0),
    ]


def test_what_has_just_begun_is_said_plainly() -> None:
    (chain,) = told(board(program(3, 19), task(19, 3, 0, ran_s=0.002), core(0)))
    assert chain.verdict is Verdict.WAITS
    assert chain.text.endswith(
        "waits for task 19 (op); core 0 (process 700) has run task 19 for 2 ms at /home/my_ops.py:40 in op."
    )


def test_a_task_that_another_core_may_run_waits_and_does_not_hang() -> None:
    parts = (program(3, 19), task(17, 2, 0), task(18, 2, 1), core(0, "stuck"), core(1))
    anywhere = next(chain for chain in told(board(*parts, task(19, 3))) if chain.task == 19)
    assert anywhere.verdict is Verdict.WAITS
    assert "queued behind task 18 (op) on core 1" in anywhere.text
    bound = next(chain for chain in told(board(*parts, task(19, 3, core_mask=1))) if chain.task == 19)
    assert bound.verdict is Verdict.HANGS


@each(
    "silent_s, is_stopped, verdict",
    [(0.5, False, Verdict.WAITS), (5.5, False, Verdict.HANGS), (0.5, True, Verdict.HANGS)],
)
def test_a_core_in_a_long_call_of_c_does_not_hang_at_once(
    silent_s: float,
    is_stopped: bool,  # noqa: FBT001
    verdict: Verdict,
) -> None:
    stalled = core(0, "stalled", silent_s=silent_s, is_stopped=is_stopped)
    (chain,) = told(board(program(3, 19), task(19, 3, 0), stalled))
    assert chain.verdict is verdict
    assert (f"it has had no heartbeat for {span(silent_s)}, since it is in C code" in chain.text) != is_stopped


def test_a_task_of_another_board_says_so() -> None:
    (chain,) = told(board(program(3), task(19, 3, state="elsewhere"), core(0, stack=())))
    assert chain.verdict is Verdict.WAITS
    assert "another board runs it, as set by its program's HBRT_ROUTE, for" in str(chain)


def test_a_program_that_runs_its_op_itself_does_not_hang() -> None:
    (chain,) = told(board(program(3), task(19, 3, state="inline"), core(0, stack=())))
    assert (chain.verdict, chain.steps[0].node) == (Verdict.WAITS, Node(NodeKind.PROGRAM, 3))
    assert "runs task 19 (op) itself, in the thread that called, for 5.0 s: a debugger shows its line." in chain.text


def test_a_task_that_nobody_waits_for_is_told_of_once() -> None:
    queue = [task(slot, 3 + slot % 2) for slot in range(20, 26)]
    found = told(
        board(program(3, 19), program(4), task(17, 4, 0), task(18, 4, 1), task(19, 3), *queue, core(0), core(1))
    )
    assert [(chain.program, chain.task) for chain in found] == [(3, 19), (None, 18), (None, 20), (None, 21)]
    assert "it is queued behind task 17 (op) on core 0, or task 18 (op) on core 1;" in found[0].text
    assert "does not wait for task 20 (op) and 2 more; it is queued behind" in found[2].text


def test_tasks_ahead_are_those_that_the_same_cores_take_first() -> None:
    parts = (program(3, 19), task(17, 2, 0), core(0), core(1), task(16, 2, 1))
    queue = (
        task(5, 2, core_mask=1),
        task(6, 2, core_mask=2),
        task(7, 2, order=(0, 0, 99)),
        task(19, 3, core_mask=1, order=(0, 0, 50)),
        task(8, 2, order=(-9, 0, 99)),
    )
    chain = next(chain for chain in told(board(*parts, *queue)) if chain.task == 19)
    assert "on core 0, with 2 more ahead of it" in chain.text


def test_a_cycle_is_named_in_order() -> None:
    # The op of core 0 is a client itself, whose task needs core 0; so it is with core 1, in two steps.
    records = board(
        program(3, 19),
        program(4, 20, pid=700, cores=(0,)),
        task(19, 3, 0),
        task(20, 4, core_mask=1),
        core(0),
    )
    look = look_of(records)
    assert cycle_sentences(look) == [
        "A cycle: core 0 waits for task 20, task 20 waits for task 19, task 19 waits for core 0."
    ]
    first = next(chain for chain in told(records) if chain.program == 3)
    assert first.verdict is Verdict.HANGS
    assert "its op waits for task 20 (op); it is queued behind task 19" in first.text
    assert first.text.endswith("This hangs: it waits for itself.")


def test_a_circle_through_memory_is_one_cycle_and_said_to_hang_with_a_condition() -> None:
    polls = core(0, still_s=2.0, flag=Flag(0x8000_1010, 4, "00000000", 0x8000_1000, 4096, (3,)))
    writes = task(20, 3, output=(0x8000_1000, 64))
    records = board(program(3, 20), task(19, 3, 0), writes, task(21, 3, output=(0x8000_1000, 16)), polls)
    (sentence,) = cycle_sentences(look_of(records))
    assert "core 0 waits for the flag at 0x80001010, task 20 has to write the flag at 0x80001010, task 20" in sentence
    (chain,) = told(records, only=20)
    assert (chain.verdict, "This hangs, unless somebody else writes that memory" in chain.why) == (Verdict.WAITS, True)


def test_threads_that_wait_for_each_other_are_one_cycle() -> None:
    frames = {thread: (Frame("/home/arm.py", thread, "f"),) for thread in (5, 6, 7)}
    waits = {thread: Wait(-1, frames[thread], f"lock {thread}") for thread in frames}
    told_of = in_circles(waits, {5: 6, 6: 5, 7: 5})
    assert [(one.slot, one.lock) for one in told_of] == [(-2, "lock 5"), (-2, "lock 6"), (-1, "lock 7")]
    records = board(program(3, waits=(Wait(19, (MAIN,)), *told_of)), task(19, 3, 0), core(0))
    (sentence,) = cycle_sentences(look_of(records_of(records.as_dict())))
    assert sentence == (
        "A cycle: the thread of client 3 at /home/arm.py:5 waits for lock 5, "
        "the thread of client 3 at /home/arm.py:6 waits for lock 6."
    )


def test_two_ops_that_wait_for_each_others_cores_are_one_cycle() -> None:
    records = board(
        program(1, 21, cores=(0,)),
        program(2, 20, cores=(1,)),
        task(10, 9, 0),
        task(11, 9, 1),
        task(21, 1, core_mask=2),
        task(20, 2, core_mask=1),
        core(0),
        core(1),
    )
    graph = graph_of(index_of(records))
    (path,) = cycles(graph)
    assert path == [
        Node(NodeKind.CORE, 0),
        Node(NodeKind.TASK, 21),
        Node(NodeKind.TASK, 11),
        Node(NodeKind.CORE, 1),
        Node(NodeKind.TASK, 20),
        Node(NodeKind.TASK, 10),
    ]
    assert {Node(NodeKind.PROGRAM, 1), Node(NodeKind.PROGRAM, 2), *path} <= hanging(index_of(records), graph)


def test_a_verdict_that_changes_between_two_looks_is_still_moving() -> None:
    parts = (program(3, 19), core(0, "stuck"))
    before, now = board(*parts, task(17, 2, 0), task(19, 3)), board(*parts, task(18, 2, 0), task(19, 3))
    chain = next(chain for chain in told(now, before) if chain.task == 19)
    assert chain.verdict is Verdict.MOVES
    assert "still moving" in chain.text
    again = next(chain for chain in told(now, now) if chain.task == 19)
    assert again.verdict is Verdict.HANGS
    # Another task in the same slot is another one.
    later = board(*parts, task(17, 2, 0, sequence=99), task(19, 3))
    assert next(chain for chain in told(later, before) if chain.task == 19).verdict is Verdict.MOVES


def test_an_op_that_moves_is_said_to_move() -> None:
    at = [board(program(3, 19), task(19, 3, 0), core(0, stack=(OP._replace(line=line),))) for line in (38, 40)]
    (chain,) = told(at[1], at[0])
    assert "at /home/my_ops.py:40 in op; it is moving: a moment ago it was at /home/my_ops.py:38 in op" in chain.text
    assert chain.verdict is Verdict.WAITS


@pytest.mark.parametrize(("is_kept", "verdict"), [(True, Verdict.HANGS), (False, Verdict.WAITS)])
def test_a_claim_lock_that_is_kept(is_kept: bool, verdict: Verdict) -> None:  # noqa: FBT001
    lock = Lock("process 801 (python), which is stopped", "'kill -CONT 801' resumes it.", 801, is_kept)
    (chain,) = told(board(program(1), program(3, 19), task(19, 3), core(0, "ok"), lock=lock))
    assert chain.verdict is verdict
    if is_kept:
        assert "the claim lock is held by client 1, arm.py: process 801 (python), which is stopped." in chain.text
        assert chain.text.endswith("This hangs: 'kill -CONT 801' resumes it.")
    else:
        assert chain.text.endswith("core 0 is about to take it.")


def test_a_task_on_its_way_names_the_relay() -> None:
    sent = (program(3, 19), task(19, 3, state="sent"), core(0, "ok"))
    (chain,) = told(board(*sent, relay_pid=77))
    assert (chain.verdict, "on its way to the relay (process 77)." in chain.text) == (Verdict.WAITS, True)
    (chain,) = told(board(*sent, relay_pid=77, relay_is_stopped=True))
    assert (chain.verdict, "'kill -CONT 77' resumes the relay" in chain.text) == (Verdict.HANGS, True)
    (chain,) = told(board(*sent))
    assert (chain.verdict, "no relay is running" in chain.text) == (Verdict.HANGS, True)


def test_a_program_of_another_machine_names_its_relay() -> None:
    relay, far = program(1, name="dsp_relay_server", pid=55), program(2, pid=55, waits=None, is_asleep=True)
    records = with_hops(board(relay, far, task(19, 2, 0), core(0)), "dsp_relay_server")
    (chain,) = told(records)
    assert chain.text.startswith(
        "Client 2 (arm.py), which comes by the relay of process 55 and cannot tell its line, waits"
    )


def test_who_does_not_wait_and_who_cannot_tell() -> None:
    (idle,) = told(board(program(3), task(19, 3, 0), core(0)))
    assert idle.program is None
    assert idle.text.startswith("Client 3 (process 803, arm.py) does not wait for task 19 (op);")
    (gone,) = told(board(task(19, 3, 0), core(0)))
    assert gone.text.startswith("No client waits for task 19 (op);")
    (silent,) = told(board(program(3, is_asleep=True), task(19, 3, 0), task(20, 3), core(0)))
    assert silent.text.startswith(
        "Client 3 (process 803, arm.py; it cannot tell its line) waits for task 19 (op) and 1 more;"
    )
    (stopped,) = told(board(program(3, 19, is_stopped=True), task(19, 3, 0), core(0)))
    assert "which is stopped, by a signal (SIGSTOP) or a debugger, waits for" in stopped.text
    assert told(board(program(3), core(0, "ok"))) == []


def test_one_task_alone_can_be_asked_for() -> None:
    records = board(program(3, 19, 18), task(19, 3, 0), task(18, 3, 1), core(0), core(1))
    assert [chain.task for chain in told(records)] == [18, 19]
    assert [chain.task for chain in told(records, only=18)] == [18]
    assert told(records, only=7) == []


def test_records_survive_a_message() -> None:
    lock = Lock("thread 9, which has ended", "advice", 0, is_kept=True)
    records = board(program(3, 19), program(4), task(19, 3, 0), core(0), lock=lock, relay_pid=7)
    assert records_of(records.as_dict()) == records


def test_the_place_of_an_op_is_its_own_line_and_the_call_there() -> None:
    from dsp_server.hardware import descriptors, idma

    engine = (Frame(descriptors.__file__, 165, "desc_done"), Frame(idma.__file__, 104, "idma_desc_done"))
    assert place_of((*engine, OP, MAIN), 6) == (
        "at /home/my_ops.py:40 in op, in idma_desc_done (idma.py:104), for iDMA handle 6, which is done"
    )
    assert place_of(engine) == f"at {engine[0].site} in desc_done"
    assert place_of(()) == ""
