"""The daemon dies in the middle of what somebody asked of it. Callers return at once; the next start cleans up."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Callable

import pytest

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.session.session import Session
from hbrt.board.files import leftovers
from hbrt.errors import BoardError
from hbrt.status import Status
from tests.faults import ops
from tests.faults.points import Point
from tests.faults.world import Nursery, World
from tests.limits import PATIENCE_S
from tests.waiting import await_end, until

actor = "daemon"
GONE = {Status.HB_DSP_BOARD_LOST, Status.HB_SYS_BOARD_LOST}


def provoke(world: World, other: Session, block: int, what: str) -> list[threading.Thread]:
    """Make the daemon come by, with another client that has a block; returns callers that wait for its answer."""

    def ask() -> None:
        with contextlib.suppress(BoardError):
            if what == "attach":
                world.attach().close()
            elif what == "alloc":
                _refused(lambda: other.blocks.alloc(4096))
            elif what == "free":
                _refused(lambda: other.blocks.free(block))
            elif what == "slots":
                _refused(lambda: other.link.request("slots", count=4))

    if what == "core":
        os.kill(world.core_pid(0), signal.SIGKILL)
    elif what == "client":
        assert other.tasks.submit(ops.GATED, 0, 1, 0, block, 64, 0, 0) > 0  # queued behind the bystander's
        other.link.lease.shutdown(2)
    else:
        asker = threading.Thread(target=ask, daemon=True)
        asker.start()
        return [asker]
    return []


def _refused(call: Callable[[], object]) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        call()
    assert caught.value.status in GONE


def test_killed(environment: pytest.MonkeyPatch, point: Point, note: Callable[..., None]) -> None:
    world = World(cores=1, is_traced=True)
    other = world.attach()
    running, queued = world.call(gate_open=False).start_waiting(), world.call().start_waiting()
    until(lambda: running.block.view[0], "the start of the task")  # a core that dies before it runs it loses nothing
    core, block = world.core_pid(0), other.blocks.alloc(64).phy_addr
    world.tokens.arm(point, "kill")
    askers = provoke(world, other, block, point.outcome)
    await_end(world.pid)
    os.waitpid(world.pid, 0)
    assert world.tokens.was_taken(point, "kill")
    for asker in askers:
        asker.join(PATIENCE_S)
        assert not asker.is_alive(), "a caller of the daemon hangs"
    # What had ended before the daemon died is told as it was; everything else is the board's loss.
    assert {running.end(), queued.end()} <= GONE | {Status.HB_DSP_CORE_LOST}
    await_end(core)
    other.close()
    world.session.close()
    assert leftovers(world.paths)
    world.tokens.clear()
    again = World(cores=1, path=world.home)
    try:
        assert {"attach.sock", "control.sock"} <= set(again.removed)
        assert again.serves() == []
        again.settle()
    finally:
        again.close(keep_home=True)
    assert sorted(path.name for path in world.paths.path.iterdir()) == ["log"]
    shutil.rmtree(world.home)
    note(point.key, point.what, "SIGKILL", "callers returned, the next start cleaned up")


@pytest.mark.parametrize(
    "order", [["daemon", "core", "client"], ["client", "core", "daemon"], ["core", "daemon", "client"]]
)
def test_everything_killed_in_any_order(environment: pytest.MonkeyPatch, order: list[str]) -> None:
    world = World(cores=1)
    clients = Nursery(world)
    pid, connection = clients.bear()
    connection.recv(4096)
    connection.send(b"go")
    victims = {"daemon": world.pid, "core": world.core_pid(0), "client": pid}
    waiting = world.call(gate_open=False).start_waiting()
    for name in order:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victims[name], signal.SIGKILL)
    os.waitpid(world.pid, 0)
    assert waiting.end() in GONE | {Status.HB_DSP_CORE_LOST}
    for victim in victims.values():
        await_end(victim)
    connection.close()
    clients.close()
    world.session.close()
    again = World(cores=1, path=world.home)
    try:
        assert {"attach.sock", "control.sock"} <= set(again.removed)
        assert again.serves() == []
        again.settle()
    finally:
        again.close()
