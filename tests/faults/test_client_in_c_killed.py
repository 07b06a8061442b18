"""A client dies when it has written this or that of a task, with its submission and its wait in C.

As test_client_killed.py, whose points are lines of Python: what it had comes back, and never while an op uses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import psutil
import pytest

from hbrt.ddr.layout import CLIENT_ASLEEP
from hbrt.mailbox.table import State
from tests.faults import tracer
from tests.faults.test_client_killed import outlive, speaks
from tests.faults.watchpoint import Watchpoint, why_not
from tests.faults.world import Nursery, Voice, World, await_end
from tests.mailboxes import in_c
from tests.waiting import until

pytestmark = [in_c, pytest.mark.skipif(bool(why_not()), reason=why_not())]

# What it writes: where (of world, client and slot), how many bytes, and what may be there at the point; nothing: any.
# Once it is READY, a core's heartbeat may find and take the task before a look sees that the client stands still.
TAKEN: set[int] = {State.READY, State.RUNNING, State.DONE}
POINTS: dict[str, tuple[Callable[[World, int, int], int], int, set[int]]] = {
    "the record is begun": (lambda world, _, slot: world.mailbox.layout.record(slot), 8, set()),
    "READY": (lambda world, _, slot: world.mailbox.layout.states + slot, 1, TAKEN),
    "the task is announced": (lambda world, _, slot: world.mailbox.layout.announced(0) + slot, 1, {0, 1}),
    "the client says that it sleeps": (
        lambda world, client, _: world.mailbox.layout.client(client) + CLIENT_ASLEEP,
        1,
        {1},
    ),
    "the slot is empty": (lambda world, _, slot: world.mailbox.layout.states + slot, 1, {State.EMPTY}),
}


@pytest.fixture(scope="module")
def environment() -> Iterator[pytest.MonkeyPatch]:
    """No spinning, as in conftest.py; the mailbox is in C."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HBRT_SPIN_US", "0")
        patch.delenv("HBRT_NATIVE", raising=False)
        patch.setenv(tracer.DIRECTORY, "")
        yield patch


@pytest.mark.parametrize("what", POINTS)
def test_killed_after_a_write(world: World, clients: Nursery, what: str, note: Callable[..., None]) -> None:
    place_of, size_bytes, values = POINTS[what]
    world.await_asleep(0)
    pid, connection = clients.bear("call")
    hello = json.loads(speaks(connection, pid))
    slot = hello.pop("slot")
    voice = Voice(connection, **hello)
    offset = place_of(world, voice.client, slot)
    process, watch = psutil.Process(pid), Watchpoint(pid)
    try:
        watch.go(offset, size_bytes, lambda: not values or world.mailbox.map[offset] in values)
        connection.send(b"go")
        # A client that stands still at its write, not looked at yet, does not sleep.
        until(
            lambda: watch.look() or (world.sleeps(voice.client) and process.status() == psutil.STATUS_SLEEPING),
            "a sleeping client, or the point",
        )
        if not watch.look():
            ddr = world.session.link.ddr
            ddr.map[ddr.offset_of(voice.phy_addr) + 1] = 1  # its op goes on
        until(watch.look, f"the point: {what}")
    finally:
        watch.leave()
    went_on = outlive(world, voice, pid)
    await_end(pid)
    connection.close()
    world.settle()
    assert world.serves() == []
    assert world.session.link.ddr.block_at(voice.phy_addr) is None
    note("client-in-c", what, "SIGKILL", f"what it had is back{went_on}")
