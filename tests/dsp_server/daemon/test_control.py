"""Control requests to a real daemon: every one gets one reply, nonsense gets a refusal, and the daemon runs on."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from dsp_server.daemon.control import Control
from dsp_server.daemon.control_socket import RECEIVE_BYTES
from hbrt.board.launch import DaemonConfig
from hbrt.board.paths import home
from hbrt.protocol import control as wire
from hbrt.protocol.control import ControlReply, ControlRequest
from hbrt.status import Status
from tests.dsp_server.conftest import LIVES, Running
from tests.limits import PATIENCE_S

Start = Callable[..., Running]


class Peer:
    """A raw control connection."""

    def __init__(self, running: Running) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvtimeo = int(PATIENCE_S * 1000)
        self.socket.connect(running.paths.control_endpoint)

    def send(self, *frames: bytes) -> None:
        self.socket.send_multipart(frames)

    def receive(self) -> ControlReply:
        return wire.decode_reply(self.socket.recv())

    def ask(self, verb: str, number: int = 1, **args: Any) -> ControlReply:
        self.send(wire.encode_request(ControlRequest(number, verb, args)))
        return self.receive()

    def close(self) -> None:
        self.socket.close()
        self.context.term()


@pytest.fixture
def running(start: Start) -> Running:
    """A board of the test's own."""
    return start()


@pytest.fixture(scope="module")
def kept_for_all() -> Iterator[Running]:
    directory = str(home() / f"board-{secrets.token_hex(4)}")
    running = Running(DaemonConfig(directory, str(LIVES), ddr_bytes=64 << 20, is_private=True))
    yield running
    running.close()


@pytest.fixture
def kept(kept_for_all: Running) -> Iterator[Running]:
    """A board for the tests that leave it as it was; its programs go with the test."""
    yield kept_for_all
    for board in kept_for_all.boards:
        board.close()
    kept_for_all.boards.clear()
    kept_for_all.until(lambda: kept_for_all.ask("status")["clients"] == [], "the end of the programs")


@pytest.fixture
def peer(kept: Running) -> Iterator[Peer]:
    peer = Peer(kept)
    yield peer
    peer.close()


def test_frame_that_nobody_would_hold_is_hung_up_on_and_the_daemon_goes_on(kept: Running, peer: Peer) -> None:
    before = len(kept.log())
    peer.send(b"\0" * RECEIVE_BYTES)
    assert peer.receive().text == f"The frame has {RECEIVE_BYTES} bytes; the limit is 65536."
    assert "Refused a malformed control message: " in kept.log()[before:]
    peer.send(b"\0" * (RECEIVE_BYTES + 1))
    peer.socket.rcvtimeo = 500
    with pytest.raises(zmq.Again):
        peer.receive()
    peer.socket.rcvtimeo = int(PATIENCE_S * 1000)
    assert peer.ask("status", number=5).id == 5  # it has connected again by itself
    assert kept.core(0)["crashes"] == 0


def test_every_verb_of_the_schema_is_answered(running: Running) -> None:
    with contextlib.closing(Peer(running)) as peer:
        for number, verb in enumerate(sorted(set(wire.VERBS) - {"stop"}), 1):
            kinds = {
                name: kind for name, kind in wire.VERBS[verb].args.items() if name not in wire.VERBS[verb].optional
            }
            smallest: dict[str, Any] = {
                name: kind.low if isinstance(kind, wire.Int) else "" for name, kind in kinds.items()
            }
            reply = peer.ask(verb, number=number, **smallest)
            assert reply.id == number
            assert (reply.status == Status.HB_DSP_PERMISSION) == wire.VERBS[verb].leased
        assert peer.ask("stop", number=99).status == 0
    running.await_end(running.pid)


def test_answers_come_in_whatever_order_their_work_ends(peer: Peer) -> None:
    """A restart is answered when its cores run; what was asked later is answered meanwhile, and none is lost."""
    requests = [ControlRequest(1, "restart"), *(ControlRequest(number, "status") for number in range(2, 40))]
    for request in requests:
        peer.send(wire.encode_request(request))
    replies = [peer.receive() for _ in requests]
    assert sorted(reply.id for reply in replies) == list(range(1, 40))
    assert replies[-1].id == 1
    assert {reply.status for reply in replies} == {0}


def test_request_that_comes_while_a_late_answer_goes_is_seen(running: Running) -> None:
    """ZeroMQ's descriptor tells of a change once; a reply that is sent later may swallow that."""
    one, two = Peer(running), Peer(running)
    for _ in range(5):
        one.send(wire.encode_request(ControlRequest(1, "restart", {"core": 0})))
        for number in range(100):
            assert two.ask("ops", number=number).id == number
        assert one.receive().status == 0
    one.close()
    two.close()


def test_peer_that_reads_nothing_hurts_nobody(running: Running) -> None:
    deaf = Peer(running)
    deaf.socket.rcvhwm = 1
    other = Peer(running)
    for number in range(3000):
        deaf.send(wire.encode_request(ControlRequest(number, "status")))
        if number % 500 == 499:  # more that wait at once would be a flood of this process, and end its connections
            assert other.ask("status", number=number).id == number
    deaf.close()
    other.close()
    assert resident_bytes(running.pid) < 300 << 20


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:  # noqa: PTH123 - of /proc
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_defect_in_a_verb_is_a_finding_and_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, str]] = []
    sent: list[ControlReply] = []

    class Broken:
        """Stands for every part of a board; whatever is asked of it fails."""

        def __getattr__(self, name: str) -> Callable[..., object]:
            def fail(*args: object, **options: object) -> object:
                raise ZeroDivisionError(name)

            return fail

    class Journal:
        def find(self, kind: str, text: str) -> None:
            found.append((kind, text))

    broken: Any = Broken()
    control = Control(
        broken,
        broken,
        broken,
        broken,
        Journal(),  # type: ignore[arg-type]
        broken.detach,
        lambda: None,
        lambda: None,
        broken,
        broken.look,
        broken,
        broken,
    )
    request = wire.encode_request(ControlRequest(9, "status"))
    control.handle(request, lambda raw: sent.append(wire.decode_reply(raw)), b"peer")
    assert (sent[0].id, sent[0].status) == (9, Status.HB_SYS_NOT_RUNNING)
    assert "status failed in the daemon; this is a bug in hbrt" in sent[0].text
    assert found[0][0] == "defect"
    assert "ZeroDivisionError: status" in found[0][1]
