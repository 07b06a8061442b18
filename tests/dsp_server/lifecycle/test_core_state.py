"""Core processes and core records without a board: states, messages that wait, senseless messages, deaths."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from dsp_server.clients import Clients
from dsp_server.lifecycle import health, processes
from dsp_server.lifecycle.child import CoreChild
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.decide import ACTIVITY_REPLACING
from dsp_server.lifecycle.life import CRASHED, OFFLINE, RUNNING, STATES, Core, Process
from dsp_server.lifecycle.snapshots import Image
from dsp_server.process.event_loop import Loop
from dsp_server.waits.records import Flag
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import ACTIVITY_OFFLINE, CORE_ACTIVITY, CORE_EPOCH, CORE_PID, CORE_PROGRESS, CORE_STATE, PROGRESS
from hbrt.mailbox.table import Mailbox
from hbrt.protocol import control

if TYPE_CHECKING:
    from dsp_server.lifecycle.fork_server import ForkServer

IMAGE = Image(Path("image.py"), Path("image-1.py"), 0.0)
OTHER = Image(Path("other.py"), Path("image-2.py"), 0.0)


class Stage:
    """A loop, a DDR, and processes that only sleep in the place of cores."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.ddr = Ddr.create(1 << 16, 2)
        self.peers: list[socket.socket] = []
        self._children: list[CoreChild] = []

    def child(self, image: Image = IMAGE) -> tuple[CoreChild, socket.socket]:
        """A process, and the other end of its control socket, which the test speaks for it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ)
        child = CoreChild(1, pid, ours, os.memfd_create("trace"), image, self.loop)
        self.loop.watch(ours.fileno(), lambda: None)
        self._children.append(child)
        self.peers.append(theirs)
        theirs.settimeout(10.0)
        return child, theirs

    def ready_child(self, image: Image = IMAGE) -> CoreChild:
        child, _ = self.child(image)
        assert child.on_ready({"ops": [], "files": []})
        return child

    def close(self) -> None:
        for child in self._children:
            if child.pidfd >= 0:
                child.signal(signal.SIGKILL)
                self.loop.unwatch(child.control.fileno())
                child.reap()
        for peer in self.peers:
            peer.close()
        self.loop.close()
        self.ddr.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def _record(stage: Stage, index: int) -> tuple[int, int, int, int]:
    record, mm = stage.ddr.layout.core(index), stage.ddr.map
    pid = int.from_bytes(mm[record + CORE_PID : record + CORE_PID + 4], "little")
    epoch = int.from_bytes(mm[record + CORE_EPOCH : record + CORE_EPOCH + 8], "little")
    return mm[record + CORE_STATE], mm[record + CORE_ACTIVITY], pid, epoch


def test_record_says_what_the_supervisor_knows(stage: Stage) -> None:
    child, _ = stage.child()
    core = BoardCore(1, stage.ddr, Core(IMAGE), {7: child})
    assert _record(stage, 1) == (STATES.index(OFFLINE), ACTIVITY_OFFLINE, 0, 0)
    core.life = Core(IMAGE, RUNNING, process=Process(7, IMAGE), epoch=1)
    core.publish(ACTIVITY_REPLACING)
    assert _record(stage, 1) == (STATES.index(RUNNING), ACTIVITY_REPLACING, child.pid, 1)
    core.life = Core(IMAGE, CRASHED, candidate=Process(7, IMAGE), epoch=1)
    core.publish()
    assert _record(stage, 1) == (STATES.index(CRASHED), ACTIVITY_REPLACING, 0, 1)
    assert (core.child, core.candidate) == (None, child)
    assert _record(stage, 0)[:1] == (STATES.index(OFFLINE),)


def test_process_that_does_not_read_keeps_nobody_waiting_and_gets_all_in_order(stage: Stage) -> None:
    child, peer = stage.child()
    bells = [os.eventfd(0) for _ in range(3)]
    for client in range(1, 2001):
        child.send_doorbell(client, 3000 + client, bells[client % 3])
    child.discard_client(5, 3005)  # it was told of long ago
    child.discard_client(2000, 5000)  # not yet: it never hears of this one
    child.send(event="stop")
    heard: list[tuple[str, int]] = []
    while not heard or heard[-1][0] != "stop":
        raw, fds, _, _ = socket.recv_fds(peer, 4096, 1)
        message = control.unpack_map(raw, 4096)
        heard.append((message["event"], message.get("client", 0)))
        assert message.get("number", 3000) == 3000 + message.get("client", 0)
        assert len(fds) == (message["event"] == "client")
        for fd in fds:
            os.close(fd)
        stage.loop.later(0.0, lambda: None)
        stage.loop.step()
    assert heard == [*(("client", client) for client in range(1, 2000)), ("gone", 5), ("stop", 0)]
    for bell in bells:
        os.close(bell)


def test_a_stack_is_there_once_its_first_line_is_whole(stage: Stage) -> None:
    child, _ = stage.child()
    for part in ("Stack (most recent call first):\n", '  File "/image.py"', ", line 1", "5 in ha", "ng"):
        os.write(child._trace_fd, part.encode())
        assert not child.has_stack
    os.write(child._trace_fd, b"\n")
    assert child.has_stack
    assert [str(frame) for frame in child.stack()] == ['  File "/image.py", line 15 in hang']


def test_process_that_has_ended_is_told_nothing(stage: Stage) -> None:
    child, peer = stage.child()
    peer.close()
    child.send(event="go")
    child.send_doorbell(1, 1, 0)
    while (heard := child.receive()) is None:
        pass  # a process that was just started has the other end for a moment, until it is another program
    assert heard == {}


SENSELESS: tuple[dict[str, object], ...] = (
    {},
    {"ops": [], "files": 5},
    {"ops": [[1, "x", "y"]], "files": []},
    {"ops": [["x", "x", "y", 1]], "files": []},
    {"ops": 7, "files": []},
)


@pytest.mark.parametrize("message", SENSELESS)
def test_senseless_word_of_a_process_is_its_end(stage: Stage, message: dict[str, object]) -> None:
    child, _ = stage.child()
    assert not child.on_ready(message)
    assert not child.has_loaded
    assert child.problem.startswith("Core 1 sent a malformed message: ")
    stage.loop.unwatch(child.control.fileno())
    assert child.reap() == f"failed ({child.problem})"


def test_bytes_that_are_no_message_are_a_broken_process(stage: Stage) -> None:
    child, peer = stage.child()
    assert child.receive() is None
    peer.send(b"\xc1")
    message = child.receive()
    assert message is not None
    assert (message["event"], message["text"][:53]) == (
        "broken",
        "Core 1 sent a malformed message: The frame is not msg",
    )


def test_being_ready_is_said_once(stage: Stage) -> None:
    child, _ = stage.child()
    rows = [[0x1000, "softmax", "a.py:1", 50]]
    assert child.on_ready({"ops": rows, "files": ["a.py"]})
    assert child.ops == [(0x1000, "softmax", "a.py:1", 50)]
    assert not child.on_ready({"ops": rows, "files": []})
    assert child.has_loaded


def test_process_that_has_ended_is_not_ended_again(stage: Stage) -> None:
    child, _ = stage.child()
    child.fail("")
    stage.loop.unwatch(child.control.fileno())
    assert child.reap() == "was ended by signal 9 (SIGKILL)"
    child.signal(signal.SIGTERM)  # nobody is meant any more
    child.fail("")


def test_what_an_op_polls_is_shown_as_it_is_now(stage: Stage) -> None:
    ddr = stage.ddr
    core = BoardCore(1, ddr, Core(IMAGE), {})
    heap, record = ddr.layout.heap, ddr.layout.core(1) + CORE_PROGRESS
    first = heap - ddr.offset_of(0)
    DdrTables(ddr).add(1, first, 64, 4096, 7)
    ddr.map[heap + 8] = 5

    def flag(offset: int, size_bytes: int) -> Flag | None:
        PROGRESS.pack_into(ddr.map, record, 1, 2, 3, 4, 0, 0, offset, size_bytes)
        return core.flag(core.last_progress())

    assert flag(heap + 8, 4) == Flag(first + 8, 4, "05000000", first, 64, (7,))
    assert flag(heap + 8, 40) == Flag(first + 8, 40, "", first, 64, (7,))
    assert [flag(*nonsense) for nonsense in ((0, 0), (0, 4), (heap + 8192, 4), ((1 << 64) - 1, (1 << 64) - 1))] == [
        None
    ] * 4


def test_a_core_that_has_never_served_is_starting_and_not_unwell(stage: Stage) -> None:
    core = BoardCore(0, stage.ddr, Core(IMAGE, is_wanted=True), {})
    assert core.health(1) == ("starting", None)
    assert health.of_board([core.health(1)])
    core.life = core.life._replace(is_wanted=False)
    assert core.health(1).word == "offline"


def test_a_process_that_cannot_be_watched_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when epoll has no room: nobody would hear of its end."""
    child, _ = stage.child()
    stage.loop.unwatch(child.control.fileno())

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(processes, "spawn", lambda *_: child)
    monkeypatch.setattr(stage.loop, "watch", refuse)
    clients, nothing = Clients(Mailbox(stage.ddr)), lambda *_: None
    unused = cast("ForkServer", None)
    cores = processes.CoreProcesses(stage.loop, clients, stage.ddr.fd, 2, unused, 1, nothing, nothing, nothing)
    with pytest.raises(OSError, match="No space"):
        cores.start(1, 0, IMAGE, 1.0)
    assert (child.pidfd, cores.children) == (-1, {})
    for bell in (*cores.doorbells, *cores.urgent_bells):
        os.close(bell)
