"""A relay dies at each point of a task's way through it. The caller gets a status at once; a new relay takes over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest  # noqa: TC002 - the fixtures' types

from arm_client.session.session import Session
from arm_client.transport.relay import Relay
from hbrt.board.files import lock_holder
from hbrt.mailbox.table import State
from hbrt.status import Status
from tests.faults import ops
from tests.faults.points import Point
from tests.faults.world import REPOSITORY, Call, World
from tests.nursery import Server
from tests.waiting import await_end, until

actor = "relay"


@contextlib.contextmanager
def traced_relay(world: World) -> Iterator[subprocess.Popen[str]]:
    """A relay that watches its own lines."""
    with Server(
        [sys.executable, "-m", "tests.faults.victims", "relay", str(world.paths.path)],
        cwd=REPOSITORY,
        env={**os.environ, "HBRT_FAULTS_DIR": str(world.tokens.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == "running\n"
        try:
            yield relay
        finally:
            relay.kill()


def relay_of(session: Session) -> int | None:
    """Process of the relay that a client uses."""
    assert isinstance(session.tasks.carrier, Relay)
    return session.tasks.carrier.relay_pid


def test_killed(
    world: World,
    environment: pytest.MonkeyPatch,
    point: Point,
    note: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HB_DSP_RPC_MODE", "relay")
    with traced_relay(world) as relay:
        world.tokens.arm(point, "kill")
        session = world.attach()
        block = session.blocks.alloc(64)
        block.view[1] = 1
        handle = session.tasks.submit(ops.GATED, 0, 0, 0, block.phy_addr, 64, 0, 0)
        status = handle if handle < 0 else session.tasks.wait(handle, 0)
        relay.wait()
        assert world.tokens.was_taken(point, "kill")
        # A core that was quicker than the news may have ended the task: the next call is for when this process knows.
        until(lambda: relay_of(session) != relay.pid, "the news of the relay's end")
    world.tokens.clear()
    # "any": one that died before it knew the caller was followed by another one at once; or all had been said.
    assert status in ({Status.HB_DSP_RELAY_LOST, 0} if point.outcome == "any" else {Status.HB_DSP_RELAY_LOST})
    assert block.view[2] <= 1
    if handle > 0:
        assert session.tasks.release(handle) == 0
    until(lambda: not world.mailbox.slots_in(State.READY, State.RUNNING), "the end of what the relay had under way")
    again = Call(session, ops.GATED, 0, gate_open=True)
    assert (again.end(), again.runs) == (0, 1)
    again.let_go()
    session.blocks.free(block.phy_addr)
    successor = lock_holder(world.paths.relay_lock)
    assert successor is not None
    assert successor != relay.pid
    session.close()
    os.kill(successor, signal.SIGTERM)
    await_end(successor)
    monkeypatch.delenv("HB_DSP_RPC_MODE")
    world.settle()
    assert world.serves() == []
    note(point.key, point.what, "SIGKILL", f"the caller got {Status(status).name}, a new relay took over")
