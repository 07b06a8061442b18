"""Many at once, one that never reads, one that is interrupted: each hurts at most itself."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

from hbrt.status import Status
from tests.faults import ops
from tests.waiting import await_end, until

if TYPE_CHECKING:
    from tests.faults.world import Nursery, World

CROWD = 32


def test_32_processes_at_once_get_their_own_answers(world: World, clients: Nursery) -> None:
    crowd = [clients.bear("work") for _ in range(CROWD)]
    for _, voice in crowd:
        voice.recv(64)
    assert len(world.ask("status")["clients"]) >= CROWD
    for _, voice in crowd:
        voice.send(b"go")
    for pid, voice in crowd:
        assert json.loads(voice.recv(64)) == {"good": 100, "counted": 100}
        voice.close()
        await_end(pid)
    world.settle()


def test_32_processes_of_which_half_are_killed_at_once(world: World, clients: Nursery) -> None:
    crowd = [clients.bear("work") for _ in range(CROWD)]
    for _, voice in crowd:
        voice.recv(64)
        voice.send(b"go")
    for pid, _ in crowd[::2]:
        os.kill(pid, signal.SIGKILL)
    for pid, voice in crowd[1::2]:
        assert json.loads(voice.recv(64)) == {"good": 100, "counted": 100}
        voice.close()
        await_end(pid)
    for _, voice in crowd:
        voice.close()
    world.settle()
    assert world.serves() == []


def test_client_that_never_reads_its_results_hurts_only_itself(world: World) -> None:
    glutton = world.attach()
    block = glutton.blocks.alloc(64)
    count = 0
    while (handle := glutton.tasks.submit(ops.TOUCH, 0, 0, 0, block.phy_addr, 64, 0, 0)) > 0:
        count += 1
    assert handle == Status.HB_DSP_TASK_NUM_EXCEED_LIMIT
    assert count == 1024
    assert world.serves() == []
    glutton.close()
    world.settle()


def test_time_in_which_an_op_is_interrupted_is_not_its_own(world: World) -> None:
    outer = world.call(1, ops.LIMITED, gate_open=False).start_waiting()
    until(lambda: outer.block.view[0], "the outer op")
    begin = time.monotonic()
    inner = world.call(1, ops.SPIN, gate_open=False, priority=255)
    until(lambda: inner.block.view[0], "the inner op")
    until(lambda: time.monotonic() - begin > 1.5 * ops.LIMIT_US / 1e6, "more time than the outer op has")
    outer.open_gate()
    inner.open_gate()
    assert (inner.end(), outer.end()) == (0, 0)
    for call in (outer, inner):
        call.let_go()
    world.settle()
