"""The relay's door on TCP, seen by programs that need not behave: what they get, and that they hurt only themselves."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

from arm_client.client import Board, connect
from dsp_server.gateway import gateway, observer, remote_client
from dsp_server.gateway.gateway import Gateway
from dsp_server.gateway.handler import SendQueue
from dsp_server.gateway.remote_client import MAX_UNREAD, MAX_UNREAD_BYTES, MAX_WAITING, RemoteClient
from dsp_server.gateway.server import parse_endpoint
from hbrt.attach.link import LocalLink
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.errors import BoardError, RefusedError, WrongUseError
from hbrt.mailbox.table import ANSWER, State
from hbrt.protocol import control
from hbrt.protocol.control import ControlRequest, decode_reply, encode_request
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import (
    MAX_FRAME_BYTES,
    RELAY_SAYS,
    TASK_END,
    TASK_REQUEST,
    WINDOW_BYTES,
    RemoteFrame,
    decode,
    encode,
)
from hbrt.remote import keys
from hbrt.remote.observer import Observer
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_PING
from tests.each import each
from tests.limits import PATIENCE_S
from tests.raw_zmtp import RawPeer
from tests.remote_relay import KeptRelays, RemoteRelay, kept_relays
from tests.waiting import until

__all__ = ["kept_relays"]


class Talker:
    """A connection to a relay, of a program that need not behave."""

    def __init__(self, address: str) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.reconnect_ivl = -1
        self._monitor = self.socket.get_monitor_socket(int(zmq.EVENT_DISCONNECTED))
        self.socket.connect(address)

    def say(self, kind: RemoteFrame, *fields: object) -> None:
        self.socket.send(encode(kind, *fields))

    def hear(self, *but: RemoteFrame) -> Message:
        """The next message that is not a beat, nor of one of these kinds."""
        while True:
            assert self.socket.poll(int(PATIENCE_S * 1000)), "the relay said nothing"
            message = decode(self.socket.recv(), RELAY_SAYS)
            if message.kind not in {RemoteFrame.BEAT, *but}:
                return message

    def hello(self) -> Message:
        self.say(RemoteFrame.HELLO, "talker", os.getpid())
        return self.hear()

    def ask(self, verb: str, **args: object) -> Any:
        self.say(RemoteFrame.REQUEST, encode_request(ControlRequest(1, verb, args)))
        message = self.hear(RemoteFrame.DATA)
        assert message.kind == RemoteFrame.REPLY
        return decode_reply(message.fields[1])

    def is_cut_off(self) -> bool:
        """Whether the relay ends the connection."""
        return bool(self._monitor.poll(int(PATIENCE_S * 1000)))

    def close(self) -> None:
        self.socket.disable_monitor()
        self._monitor.close(0)
        self.socket.close()
        self._context.term()


@pytest.fixture
def relay(dsp_board: Board, kept_relays: KeptRelays) -> Iterator[RemoteRelay]:
    relay = kept_relays.of(dsp_board.path)
    pid = relay.process.pid
    yield relay
    with connect(relay.address) as board:  # whatever the test did: others are served
        board.ping()
    assert "Traceback" not in relay.log()
    assert kept_relays.of(dsp_board.path).process.pid == pid


@pytest.fixture
def talker(relay: RemoteRelay) -> Iterator[Talker]:
    made = Talker(relay.address)
    yield made
    made.close()


def task(number: int, phy: int = 0, size: int = 0) -> bytes:
    return TASK_REQUEST.pack(number, 1, 0, HB_DSP_RPC_CMD_PING, 0, 0, 7, 9, phy, size, 0, 0)


@pytest.mark.parametrize(
    "frames",
    [
        [encode(RemoteFrame.HELLO, "again", 1)],
        [encode(RemoteFrame.PUSH, 2, 0x8000_0000, PAGE_BYTES, b"", bytes(PAGE_BYTES))],
        [encode(RemoteFrame.PUSH, 1, 0, PAGE_BYTES, b"", bytes(PAGE_BYTES))],
        [encode(RemoteFrame.PUSH, 1, (1 << 64) - PAGE_BYTES, PAGE_BYTES, b"", bytes(PAGE_BYTES))],
        [encode(RemoteFrame.REQUEST, b"\xc1")],
        [encode(RemoteFrame.REQUEST, b"\x80")],
    ],
    ids=[
        "hello twice",
        "a number left out",
        "address 0",
        "the last page",
        "no request",
        "half a request",
    ],
)
def test_a_program_that_breaks_the_protocol_is_let_go(
    dsp_board: Board, relay: RemoteRelay, talker: Talker, frames: list[bytes]
) -> None:
    assert talker.hello().kind == RemoteFrame.WELCOME
    for frame in frames:
        talker.socket.send(frame)
    kind, (status, _) = talker.hear(RemoteFrame.END)
    assert (kind, status) == (RemoteFrame.GONE, Status.HB_DSP_INVALID_ARGUMENT)
    me = f"talker:{os.getpid()}"
    until(lambda: not [1 for one in dsp_board.status()["clients"] if one["name"].endswith(me)], "the end of its lease")


def test_a_block_of_another_program_is_out_of_reach(dsp_board: Board, talker: Talker) -> None:
    block = dsp_board.alloc(PAGE_BYTES)
    block.view()[:] = b"\x11" * PAGE_BYTES
    assert talker.hello().kind == RemoteFrame.WELCOME
    talker.say(RemoteFrame.PULL, 3, block.phy_addr, 16)
    kind, fields = talker.hear()
    reply = decode_reply(fields[1])
    assert (kind, reply.id, reply.status) == (RemoteFrame.REPLY, 3, Status.HB_SYS_INVALID_ARGUMENT)
    assert talker.ask("free", phy=block.phy_addr).status == Status.HB_SYS_NOT_ALLOCATED
    talker.say(RemoteFrame.SUBMIT, task(1, block.phy_addr, 16))
    kind, (raw, text) = talker.hear()
    number, state, answer, _ = TASK_END.unpack(raw)
    assert (kind, number, state, ANSWER.unpack(answer)[1]) == (
        RemoteFrame.END,
        1,
        State.FAILED,
        Status.HB_DSP_INVALID_ADDRESS,
    )
    assert b"belongs to another process" in text
    talker.say(RemoteFrame.PUSH, 1, block.phy_addr, PAGE_BYTES, b"", bytes(PAGE_BYTES))
    assert talker.hear().kind == RemoteFrame.GONE
    assert bytes(block.view()) == b"\x11" * PAGE_BYTES
    block.free()


@pytest.mark.parametrize("verb", ["stop", "slots", "verify_lease", "restart", "recovery", "start_core"])
def test_what_concerns_the_board_itself_is_refused(talker: Talker, verb: str) -> None:
    args: dict[str, dict[str, object]] = {
        "slots": {"count": 1},
        "verify_lease": {"peer": 1, "nonce": "", "proof": ""},
        "start_core": {"core": 0},
    }
    assert talker.hello().kind == RemoteFrame.WELCOME
    assert talker.ask(verb, **args.get(verb, {})).status == Status.HB_DSP_PERMISSION
    assert talker.ask("ops").status == 0


def test_a_message_of_two_frames_and_one_that_is_too_large_end_the_connection(relay: RemoteRelay) -> None:
    for frames in ([b"a", b"b"], [bytes(MAX_FRAME_BYTES + 1)]):
        talker = Talker(relay.address)
        assert talker.hello().kind == RemoteFrame.WELCOME
        talker.socket.send_multipart(frames)
        assert talker.is_cut_off()
        talker.close()


def test_who_shows_no_key_is_not_heard(dsp_board: Board, tmp_path: Path) -> None:
    keys.make_server(tmp_path / "keys")
    with RemoteRelay(dsp_board.path, tmp_path / "keys") as relay:
        talker = Talker(relay.address)
        with contextlib.suppress(zmq.Again):  # the handshake has failed already, and nothing is connected
            talker.socket.send(encode(RemoteFrame.HELLO, "talker", 1), zmq.NOBLOCK)
        assert not talker.socket.poll(500)
        talker.close()


def test_answers_for_a_program_that_takes_nothing_in_are_bounded(dsp_board: Board, talker: Talker) -> None:
    assert talker.hello().kind == RemoteFrame.WELCOME
    phy_addr, size_bytes = talker.ask("alloc", size=2 * WINDOW_BYTES, cached=0).data, 2 * WINDOW_BYTES
    block, _ = dsp_board.session.blocks.register(phy_addr, size_bytes)
    block.view[:] = b"\1" * size_bytes
    for number in range(MAX_WAITING + 10):
        talker.say(RemoteFrame.PULL, number + 2, phy_addr, size_bytes)
    kind, (status, why) = talker.hear(RemoteFrame.DATA, RemoteFrame.REPLY)
    dsp_board.session.blocks.unregister(phy_addr)
    # The gateway may refuse these messages first: it bounds unread frames.
    bounds = {RemoteFrame.GONE: "ACK is missing", RemoteFrame.REFUSED: "more than it may without waiting"}
    assert status == Status.HB_DSP_INVALID_ARGUMENT
    assert bounds[RemoteFrame(kind)] in why


def test_bytes_of_answers_that_wait_are_bounded(
    dsp_board: Board, near_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_client, "MAX_WAITING_BYTES", 1000)
    talker = Talker(near_gateway.endpoint)
    assert talker.hello().kind == RemoteFrame.WELCOME
    size_bytes = 2 * WINDOW_BYTES
    phy_addr = talker.ask("alloc", size=size_bytes, cached=0).data
    block, _ = dsp_board.session.blocks.register(phy_addr, size_bytes)
    block.view[:] = b"\1" * size_bytes
    talker.say(RemoteFrame.PULL, 2, phy_addr, size_bytes)  # more than the window: what comes next waits
    for number in range(100):
        talker.say(RemoteFrame.REQUEST, encode_request(ControlRequest(number, "stop")))
    kind, (status, why) = talker.hear(RemoteFrame.DATA, RemoteFrame.REPLY)
    dsp_board.session.blocks.unregister(phy_addr)
    talker.close()
    assert (kind, status) == (RemoteFrame.GONE, Status.HB_DSP_INVALID_ARGUMENT)
    assert "1000 bytes may wait. Read the answers, and send ACK." in why


@pytest.fixture
def near_gateway(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """A gateway of the board in this process, in a thread; draining takes two short beats."""
    monkeypatch.setattr(gateway, "BEAT_SECONDS", 0.1)
    link = LocalLink(BoardPaths(dsp_board.session.link.paths.path))
    near = Gateway(link, parse_endpoint("tcp://127.0.0.1:0", None), print)
    bell = os.eventfd(0)
    near.watch(bell, near.stop)
    thread = threading.Thread(target=near.run)
    thread.start()
    yield near
    os.eventfd_write(bell, 1)
    thread.join()
    near.close()
    link.close()
    os.close(bell)


def test_who_goes_on_with_nonsense_is_told_and_logged_once(
    near_gateway: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    talker = Talker(near_gateway.endpoint)
    for _ in range(50):
        talker.socket.send(b"nonsense")
    assert talker.hear().kind == RemoteFrame.REFUSED
    assert talker.is_cut_off()
    talker.close()
    assert capsys.readouterr().out.count("disconnects") == 1


def test_who_goes_on_after_a_mistake_that_its_handler_finds_is_logged_once(
    near_gateway: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    talker = Talker(near_gateway.endpoint)
    assert talker.hello().kind == RemoteFrame.WELCOME
    talker.socket.send(b"nonsense")
    assert talker.hear().kind == RemoteFrame.GONE
    for _ in range(50):
        talker.socket.send(b"nonsense")
    assert talker.is_cut_off()
    talker.close()
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if "broke the protocol" in line]) == 1
    assert not [line for line in said if "not known" in line]


def test_who_looks_at_a_relay_that_has_gone_is_told(dsp_board: Board) -> None:
    with RemoteRelay(dsp_board.path) as relay, Observer(relay.board) as observer:
        assert observer.request("ops")
        relay.kill()
        assert observer._connection.monitor.poll(int(PATIENCE_S * 1000))
        time.sleep(0.05)  # ZeroMQ's thread takes the connection away after it has told of its end
        with pytest.raises(RefusedError, match=r"The relay at .* closed the connection\.") as caught:
            observer.log(1)
        assert caught.value.status == Status.HB_DSP_RELAY_LOST


def test_who_looks_and_asks_nothing_more_is_let_go(near_gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "IDLE_SECONDS", 0.01)
    talker = Talker(near_gateway.endpoint)
    talker.say(RemoteFrame.LOOK, 0, encode_request(ControlRequest(1, "ops")))
    assert talker.hear().kind == RemoteFrame.REPLY
    kind, (status, why) = talker.hear()
    assert (kind, status) == (RemoteFrame.GONE, Status.HB_DSP_RELAY_LOST)
    assert why == "The relay disconnects observers that are idle for 0.01 s; connect again."
    assert talker.is_cut_off()
    talker.close()


@pytest.mark.parametrize("beat_seconds", [0.1, 0.0])  # 0: its connection is ended while ZeroMQ has more of it
def test_who_was_let_go_is_not_blamed_for_what_came_after(
    near_gateway: Gateway, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, beat_seconds: float
) -> None:
    monkeypatch.setattr(gateway, "BEAT_SECONDS", beat_seconds)
    for first in (encode(RemoteFrame.HELLO, "flood", 1), encode(RemoteFrame.LOG, 0, 1, -1)):
        with RawPeer(near_gateway.endpoint) as peer:
            peer.say(first, *[b"nonsense"] * (MAX_UNREAD + 100))  # more than may wait, if it were looked at
            assert peer.is_ended()
    said = [line for line in capsys.readouterr().out.splitlines() if "disconnects" in line]
    assert len(said) == 2, said


def test_who_has_gone_takes_no_place(near_gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_PROGRAMS", 1)
    for _ in range(4):
        talker = Talker(near_gateway.endpoint)
        assert talker.hello().kind == RemoteFrame.WELCOME
        talker.close()
        until(lambda: not near_gateway._served and not any(one.is_alive() for one in near_gateway._ending))


def test_without_descriptors_a_program_is_refused_and_others_are_served(
    near_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoDescriptorLeft(RemoteClient):
        def __init__(self, *_: object) -> None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    served, refused, late = (Talker(near_gateway.endpoint) for _ in range(3))
    assert served.hello().kind == RemoteFrame.WELCOME
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "RemoteClient", NoDescriptorLeft)
        kind, (status, why) = refused.hello()
    assert (kind, status) == (RemoteFrame.REFUSED, Status.HB_DSP_NOT_RUNNING)
    assert "Too many open files" in why
    assert late.hello().kind == RemoteFrame.WELCOME
    assert served.ask("status").status == 0
    for talker in (served, refused, late):
        talker.close()


@pytest.mark.parametrize("is_known", [False, True])
def test_what_a_program_says_is_no_line_of_the_log(
    near_gateway: Gateway,
    capsys: pytest.CaptureFixture[str],
    is_known: bool,  # noqa: FBT001
) -> None:
    line = "\n12:00:00 daemon \x1b[2Jall is well"
    talker = Talker(near_gateway.endpoint)
    request = msgpack.packb({"v": control.VERSION, line: 1})
    if is_known:
        talker.say(RemoteFrame.HELLO, line, 1)
        assert talker.hear().kind == RemoteFrame.WELCOME
    talker.say(RemoteFrame.REQUEST if is_known else RemoteFrame.LOOK, *([] if is_known else [0]), request)
    assert talker.hear().kind == RemoteFrame.GONE
    assert talker.is_cut_off()
    talker.close()
    said = capsys.readouterr().out
    assert r"daemon \x1b[2Jall is well" in said
    assert len(said.splitlines()) == 1


def test_what_waits_for_a_remote_client_is_bounded() -> None:
    for frame, most in ((b"", MAX_UNREAD), (bytes(MAX_FRAME_BYTES), MAX_UNREAD_BYTES // MAX_FRAME_BYTES)):
        send_queue = SendQueue()
        client = RemoteClient(
            b"x", "x", BoardPaths(Path("/nowhere/at-all")), send_queue, print
        )  # it has not started: it reads nothing
        assert all(client.put(frame) for _ in range(most))
        assert not client.put(frame)
        client.run()  # there is no such board: it says so, and parts
        (_, refusal), (_, end) = send_queue.take_all()
        assert decode(refusal or b"", RELAY_SAYS).kind == RemoteFrame.REFUSED
        assert end is None
        send_queue.close()


class TestWhereToListen:
    @each("endpoint", ["tcp://127.0.0.1:0", "tcp://localhost:5", "tcp://127.8.9.1:65535", "tcp://[::1]:7"])
    def test_loopback_needs_no_keys(self, endpoint: str) -> None:
        assert parse_endpoint(endpoint, None).keys is None

    @pytest.mark.parametrize(
        "host", ["*", "0.0.0.1", "10.0.0.7", "[::]", "example.org", "localhost.example.org", "eth0"]
    )
    def test_everything_else_does(self, host: str, tmp_path: Path) -> None:
        with pytest.raises(WrongUseError, match="Without keys a relay listens only on loopback"):
            parse_endpoint(f"tcp://{host}:5557", None)
        keys.make_server(tmp_path / "keys")
        assert parse_endpoint(f"tcp://{host}:5557", tmp_path / "keys").host == host

    @each("endpoint", ["", "tcp://", "tcp://a", "tcp://a:b", "tcp://a:65536", "ipc://x", "tcp://a:1 b"])
    def test_what_is_no_endpoint(self, endpoint: str) -> None:
        with pytest.raises(WrongUseError, match="is not an address to listen at"):
            parse_endpoint(endpoint, None)

    def test_a_port_in_use(self, dsp_board: Board, relay: RemoteRelay) -> None:
        from dsp_server.gateway.gateway import serve
        from hbrt_farm.leases.serve import serve as serve_farm
        from hbrt_farm.leases.server import Limits

        with pytest.raises(BoardError, match=r"^The relay cannot listen at tcp://.*: Address already in use\.$"):
            serve(BoardPaths(dsp_board.path), parse_endpoint(relay.address, None), print)
        with pytest.raises(BoardError, match=r"^The farm cannot listen at tcp://.*: Address already in use\.$"):
            serve_farm(parse_endpoint(relay.address, None, "farm"), [], Limits(), print)
