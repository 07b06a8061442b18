"""A client dies at each point of its life; see points.py. What it had comes back, and never while an op uses it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable

import pytest

from hbrt.mailbox.table import State
from tests.faults.points import Point
from tests.faults.world import Nursery, Voice, World, is_blocked, is_stopped
from tests.waiting import await_end, until

actor = "client"
PROMISED_S = 1.0


def speaks(voice: socket.socket, pid: int) -> bytes:
    """What a client says next; empty when it has died."""
    until(lambda: select.select([voice], [], [], 0)[0], f"a word of client process {pid}")
    try:
        return voice.recv(4096)
    except ConnectionResetError:
        return b""


def is_running(world: World, client: int) -> bool:
    """Whether a core runs a task for that client."""
    mailbox = world.mailbox
    return any(mailbox.request(slot).client == client for slot in mailbox.slots_in(State.RUNNING))


def outlive(world: World, voice: Voice, pid: int) -> str:
    """Let the client's op run on when the client sleeps, or has died meanwhile: then its memory must still be there."""
    ddr = world.session.link.ddr
    gate = ddr.offset_of(voice.phy_addr) + 1

    def has_died() -> bool:
        return bool(select.select([voice.connection], [], [], 0)[0])

    # Not at its flag: on a busy machine the op would end before the client looks once more, and it would not sleep.
    until(
        lambda: has_died() or (world.sleeps(voice.client) and is_blocked(pid)),
        f"the sleep or the death of client process {pid}",
    )
    if not has_died():
        ddr.map[gate] = 1
        return ""
    await_end(pid)
    # A core that was not told takes a beat to find the task, unless the daemon cancels it before.
    world.ask("status")
    if not is_running(world, voice.client):
        return ""
    for _ in range(3):
        world.ask("status")  # the daemon has been through its loop meanwhile
        assert ddr.block_at(voice.phy_addr) is not None, "memory was taken from under an op"
        assert is_running(world, voice.client)
    ddr.map[gate] = 1
    return ", its op continued"


def outcome_at(world: World, clients: Nursery, point: Point, how: str) -> str:
    """Have a client die at a point; returns what became of what it had."""
    is_early = point.target.startswith(
        ("hbrt.attach.link:_greet", "arm_client.memory.blocks:Blocks.alloc", "hbrt.attach.link:LocalLink.__init__")
    )
    world.await_asleep(0)
    if is_early:
        world.tokens.arm(point, how)
    pid, connection = clients.bear()
    said = speaks(connection, pid)
    went_on = ""
    if said:
        voice = Voice(connection, **json.loads(said))
        world.tokens.arm(point, how)
        connection.send(b"go")
        if how == "stop":
            until(lambda: is_stopped(pid), f"the stop at {point.key}")
            beside(world, point)
            os.kill(pid, signal.SIGKILL)
        went_on = outlive(world, voice, pid)
        is_whole = bool(speaks(connection, pid))
    else:
        is_whole = False
    await_end(pid)
    connection.close()
    begin = time.monotonic()
    world.settle()
    took = time.monotonic() - begin
    taken = world.tokens.was_taken(point, how)
    world.tokens.clear()
    assert world.serves() == []
    assert is_whole is not taken
    return f"all back after {took * 1000:.0f} ms{went_on}" if taken else "not come by"


def beside(world: World, point: Point) -> None:
    """While a client is stopped, the others continue, unless it holds the lock."""
    if not point.has_lock:
        call = world.call(2)
        assert call.end() == 0
        call.let_go()


def test_killed(world: World, clients: Nursery, point: Point, note: Callable[..., None]) -> None:
    outcome = outcome_at(world, clients, point, "kill")
    note(point.key, point.what, "SIGKILL", outcome)
    if point.is_numbered:
        assert outcome.startswith("all back")


def test_stopped_and_killed(world: World, clients: Nursery, point: Point, note: Callable[..., None]) -> None:
    outcome = outcome_at(world, clients, point, "stop")
    note(point.key, point.what, "SIGSTOP, SIGKILL", outcome)
    assert outcome.startswith("all back")


test_stopped_and_killed.points = lambda point: point.number in {"S03", "S04", "X02", "X04", "W03"}  # type: ignore[attr-defined]


@pytest.mark.long
def test_what_a_killed_client_had_is_back_within_a_second(world: World, clients: Nursery) -> None:
    """The best of a few, since this machine has other things to do: its time is what the daemon itself takes."""
    took = []
    for _ in range(3):
        pid, connection = clients.bear()
        client = json.loads(speaks(connection, pid))["client"]
        os.kill(pid, signal.SIGKILL)
        begin = time.monotonic()
        until(lambda known=client: known not in {c["id"] for c in world.ask("status")["clients"]}, "its end")  # type: ignore[misc]
        world.settle()
        took.append(time.monotonic() - begin)
        connection.close()
    assert min(took) < PROMISED_S


@pytest.mark.parametrize("step", ["while its op runs", "while its task is queued"])
def test_memory_outlives_its_client_as_long_as_an_op_runs(world: World, clients: Nursery, step: str) -> None:
    held = world.call(1, gate_open=False).start_waiting() if step == "while its task is queued" else None
    pid, connection = clients.bear()
    voice = Voice(connection, **json.loads(speaks(connection, pid)))
    ddr = world.session.link.ddr
    connection.send(b"go")
    until(lambda: world.sleeps(voice.client), "a sleeping client")
    if held is None:
        until(lambda: is_running(world, voice.client), "a running op")
    os.kill(pid, signal.SIGKILL)
    await_end(pid)
    if held is None:
        assert ddr.block_at(voice.phy_addr) is not None
        ddr.map[ddr.offset_of(voice.phy_addr) + 1] = 1
    until(lambda: ddr.block_at(voice.phy_addr) is None, "the end of its memory")
    if held is not None:
        held.open_gate()
        assert held.end() == 0
        held.let_go()
    connection.close()
    world.settle()
