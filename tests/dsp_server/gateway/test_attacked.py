"""The gateway under attack: bytes of other protocols, halves of frames, replays, crowds, deaths and stops."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from arm_client import nn
from arm_client.client import Board, private_board
from arm_client.errors import HbrtError
from arm_client.session.session import Session
from dsp_server.gateway.gateway import MAX_OBSERVERS, MAX_PROGRAMS
from hbrt.board.paths import RemoteBoard, board_ref
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.errors import BoardError, RefusedError
from hbrt.protocol.control import ControlRequest, decode_reply, encode_request
from hbrt.protocol.remote import RELAY_SAYS, RemoteFrame, decode, encode
from hbrt.remote import keys
from hbrt.remote.observer import Observer
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_PING
from tests.dsp_server.conftest import Running
from tests.dsp_server.gateway.test_gateway import task
from tests.limits import PATIENCE_S
from tests.raw_zmtp import RawPeer
from tests.remote_relay import BRISK, KeptRelays, RemoteRelay, far_board, kept_relays
from tests.threads import in_threads
from tests.waiting import until

__all__ = ["kept_relays"]

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
CRASHES = ("Traceback", "Assertion", "Aborted")


@pytest.fixture
def relay(dsp_board: Board, kept_relays: KeptRelays) -> Iterator[RemoteRelay]:
    """A relay that continues, whatever the test does, and serves others."""
    made = kept_relays.of(dsp_board.path)
    yield made
    assert made.process.poll() is None
    far_board(made).close()
    assert not [crash for crash in CRASHES if crash in made.log()]


def client_names(board: Board) -> list[str]:
    return [client["name"] for client in board.status()["clients"]]


def tcp(relay: RemoteRelay) -> socket.socket:
    made = socket.create_connection((relay.board.host, relay.board.port), PATIENCE_S)
    made.settimeout(PATIENCE_S)
    return made


def is_ended(connection: socket.socket) -> bool:
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


READY = b"\x04\x26\x05READY" + b"\x0bSocket-Type\x00\x00\x00\x06DEALER" + b"\x08Identity\x00\x00\x00\x00"
FOREIGN = {
    "half a greeting": GREETING[:11],
    "http": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "zmtp 1": b"\x01\x00" + b"\x05\x00hello",
    "zmtp 2": b"\xff" + bytes(8) + b"\x7f\x01\x05\x00\x00",
    "curve where there are no keys": GREETING.replace(b"NULL\0", b"CURVE"),
    "a mechanism that is none": GREETING.replace(b"NULL\0", b"\xff\xfe\xfd\xfc\xfb"),
    "a socket that may not talk to it": GREETING
    + READY.replace(b"\x26\x05", b"\x23\x05").replace(b"\x06DEALER", b"\x03SUB"),
    "half a ready": GREETING + READY[:20],
    "a property that is longer than its command": GREETING + b"\x04\x12\x05READY\x0bSocket-Type\xff\xff\xff\xff"[:20],
    "a frame of 2^63 bytes": GREETING + READY + b"\x02" + struct.pack(">Q", 1 << 63),
    "a frame with reserved flags": GREETING + READY + b"\xf8\x01x",
    "noise": bytes(range(256)) * 40,
}


@pytest.fixture(scope="module")
def strict() -> Iterator[tuple[Board, RemoteRelay]]:
    """A board of its own, and a relay that waits less for a greeting and for a sign of life."""
    limits = {
        **BRISK,
        "dsp_server.gateway.server.HANDSHAKE_MS": 1500,
        "dsp_server.gateway.server.HEARTBEAT_MS": 500,
        "dsp_server.gateway.server.HEARTBEAT_TIMEOUT_MS": 1500,
    }
    with private_board() as board, RemoteRelay(board.path, limits=limits) as relay:
        yield board, relay
        assert not [crash for crash in CRASHES if crash in relay.log()]


def test_what_is_no_protocol_of_ours_is_ended(strict: tuple[Board, RemoteRelay]) -> None:
    _, relay = strict
    connections = {name: tcp(relay) for name in FOREIGN}
    for name, raw in FOREIGN.items():
        connections[name].sendall(raw)
    far_board(relay).close()  # meanwhile
    assert [name for name, connection in connections.items() if not is_ended(connection)] == []
    for connection in connections.values():
        connection.close()


# -- phases of a program, in each of which it dies or hangs


def _half(peer: RawPeer, _phy: int) -> None:
    peer.say_bytes(b"\x02" + struct.pack(">Q", 1 << 20) + bytes(1000))


def _push(peer: RawPeer, phy: int) -> None:
    peer.say(encode(RemoteFrame.PUSH, 1, phy, PAGE_BYTES, b"", b"x" * PAGE_BYTES))


def _submit(peer: RawPeer, phy: int) -> None:
    for number in range(1, 200):
        peer.say(encode(RemoteFrame.SUBMIT, task(number, phy, 64)))


def _alloc(peer: RawPeer, _phy: int) -> None:
    for number in range(100):
        peer.say(
            encode(RemoteFrame.REQUEST, encode_request(ControlRequest(number, "alloc", {"size": 4096, "cached": 0})))
        )


def _pull(peer: RawPeer, phy: int) -> None:
    for number in range(50):
        peer.say(encode(RemoteFrame.PULL, number, phy, 64))


def _bye(peer: RawPeer, _phy: int) -> None:
    peer.say(encode(RemoteFrame.BYE))


PHASES: dict[str, Callable[[RawPeer, int], None] | None] = {
    "hello sent": None,
    "welcome read": lambda *_: None,
    "half a frame": _half,
    "bytes pushed": _push,
    "tasks sent": _submit,
    "blocks asked for": _alloc,
    "bytes asked for": _pull,
    "bye": _bye,
}


def reach(relay: RemoteRelay, phase: Callable[[RawPeer, int], None] | None, name: str) -> RawPeer:
    """A program that has come to a phase, and holds a block by then."""
    peer = RawPeer(relay.address)
    peer.say(encode(RemoteFrame.HELLO, name, 1))
    if phase is not None:
        assert peer.hear().kind == RemoteFrame.WELCOME
        peer.say(encode(RemoteFrame.REQUEST, encode_request(ControlRequest(1, "alloc", {"size": 4096, "cached": 0}))))
        _, (_, raw) = peer.hear()
        phase(peer, decode_reply(raw).data)
    return peer


def nothing_is_left(board: Board, name: str, used_before: int) -> None:
    until(lambda: not [one for one in client_names(board) if name in one], f"the end of {name}")
    until(lambda: board.status()["memory"]["used_bytes"] == used_before, f"the end of the memory of {name}")


@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES.keys())
@pytest.mark.parametrize("has_reset", [False, True], ids=["closed", "reset"])
def test_a_program_that_dies_in_any_phase_leaves_nothing(
    dsp_board: Board,
    relay: RemoteRelay,
    phase: Callable[[RawPeer, int], None] | None,
    has_reset: bool,  # noqa: FBT001
) -> None:
    before = dsp_board.status()["memory"]["used_bytes"]
    peer = reach(relay, phase, "dies")
    if has_reset:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    nothing_is_left(dsp_board, "dies", before)


def test_programs_that_hang_in_any_phase_leave_nothing(strict: tuple[Board, RemoteRelay]) -> None:
    board, relay = strict
    before = board.status()["memory"]["used_bytes"]
    peers = [reach(relay, phase, "hangs") for phase in PHASES.values()]
    nothing_is_left(board, "hangs", before)
    for peer in peers:
        assert peer.is_ended()
        peer.close()


# -- crowds


def test_fifty_programs_at_once(dsp_board: Board, relay: RemoteRelay) -> None:
    before = dsp_board.status()["memory"]["used_bytes"]
    boards = in_threads(lambda _: far_board(relay), range(50))

    def work(seed: int) -> float:
        values = np.random.default_rng(seed).random(1000, np.float32)
        found = nn.softmax(boards[seed], values)
        boards[seed].close()
        return float(abs(found - np.exp(values) / np.exp(values).sum()).max())

    assert max(in_threads(work, range(50))) < 1e-6
    nothing_is_left(dsp_board, f":{os.getpid()}", before)


def test_one_more_than_it_serves_is_refused_and_comes_in_when_one_has_gone(relay: RemoteRelay) -> None:
    hello, log = encode(RemoteFrame.HELLO, "crowd", 1), encode(RemoteFrame.LOG, 0, 1, -1)
    for frame, most, good, why in (
        (hello, MAX_PROGRAMS, RemoteFrame.WELCOME, "serves 64 programs, the maximum; end some."),
        (log, MAX_OBSERVERS, RemoteFrame.REPLY, "answers 16 observers, the maximum; try again."),
    ):
        with crowd(relay.address, frame, most) as peers, RawPeer(relay.address) as late:
            assert {first_word(peer) for peer in peers} == {good}
            late.say(frame)
            kind, (status, text) = late.hear()
            assert (kind, status) == (RemoteFrame.REFUSED, Status.HB_DSP_NOT_RUNNING)
            assert why in text
            peers.pop().close()

            def is_let_in(late: RawPeer = late, frame: bytes = frame, good: RemoteFrame = good) -> bool:
                late.say(frame)
                return late.hear().kind == good

            until(is_let_in, "a place")


@contextlib.contextmanager
def crowd(address: str, frame: bytes, count: int) -> Iterator[list[zmq.Socket[bytes]]]:
    """So many connections, each of which says this; ZeroMQ gives their signs of life, however long the rest takes."""
    context: zmq.Context[Any] = zmq.Context()
    peers = [context.socket(zmq.DEALER) for _ in range(count)]
    try:
        for peer in peers:
            peer.rcvtimeo = int(PATIENCE_S * 1000)
            peer.connect(address)
            peer.send(frame)
        yield peers
    finally:
        context.destroy(0)


def first_word(peer: zmq.Socket[bytes]) -> int:
    while (kind := decode(peer.recv(), RELAY_SAYS).kind) == RemoteFrame.BEAT:
        pass
    return kind


# -- between a program with keys and its relay


class Between:
    """Somebody on the way between a program and a relay, who keeps what it sends, and may change it."""

    def __init__(self, relay: RemoteRelay) -> None:
        self._relay = relay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.board = board_ref(f"tcp://127.0.0.1:{self._listener.getsockname()[1]}")
        self._ends: list[socket.socket] = []
        self.kept: list[bytes] = []  # of each connection
        self.flip = False  # changes a bit of each piece that a program sends
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = tcp(self._relay)
            self._ends += [near, far]
            near.settimeout(None)
            far.settimeout(None)
            number = len(self.kept)
            self.kept.append(b"")
            for pair in ((near, far, number), (far, near, -1)):
                thread = threading.Thread(target=self._carry, args=pair, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):
            while raw := source.recv(1 << 16):
                if number >= 0:
                    self.kept[number] += raw
                    if self.flip:
                        raw = raw[:-1] + bytes([raw[-1] ^ 1])
                sink.sendall(raw)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for end in (self._listener, *self._ends):
            end.close()


@pytest.fixture
def keyed(dsp_board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteRelay]:
    keys.make_server(tmp_path / "keys")
    monkeypatch.setenv("HBRT_KEYS", str(keys.add_client(tmp_path / "keys", "alice")))
    with RemoteRelay(dsp_board.path, tmp_path / "keys") as relay:
        yield relay


@pytest.fixture
def between(keyed: RemoteRelay) -> Iterator[Between]:
    made = Between(keyed)
    yield made
    made.close()


def _session_of(between: Between) -> Session:
    assert isinstance(between.board, RemoteBoard)
    return Session(between.board)


def test_what_a_program_with_a_key_said_is_worth_nothing_again(
    dsp_board: Board, keyed: RemoteRelay, between: Between
) -> None:
    session = _session_of(between)
    block = session.blocks.alloc(4096)
    block.view[:5] = b"alice"
    assert "alice" in "".join(client_names(dsp_board))
    session.close()
    said = max(between.kept, key=len)
    assert b"alice" not in said
    until(lambda: "alice" not in "".join(client_names(dsp_board)), "the end of its lease")
    with tcp(keyed) as connection:
        connection.sendall(said)
        assert is_ended(connection)
    assert "alice" not in "".join(client_names(dsp_board))


def test_a_bit_that_is_changed_on_the_way_ends_the_connection(dsp_board: Board, between: Between) -> None:
    session = _session_of(between)
    task = session.tasks.submit(HB_DSP_RPC_CMD_PING, 0, 0, 0, 0, 0, 0, 0)
    assert session.tasks.wait(task, 0) == 0
    between.flip = True
    with pytest.raises(Exception, match="died or is no longer reachable"):
        session.blocks.alloc(4096)
    assert session.link.fault == Status.HB_DSP_RELAY_LOST
    session.close()
    until(lambda: "alice" not in "".join(client_names(dsp_board)), "the end of its lease")


# -- deaths and stops of the others


def loop(board: Board, statuses: list[int], is_over: threading.Event) -> None:
    """Allocate, call, free, until something fails, whose status is kept."""
    try:
        while not is_over.is_set():
            nn.softmax(board, np.arange(2000, dtype=np.float32))
    except HbrtError as error:
        statuses.append(int(error.status))


@pytest.mark.parametrize("delay_ms", [0, 10])
@pytest.mark.parametrize("who", ["relay", "daemon"])
def test_a_death_at_any_moment_ends_every_call_at_once(who: str, delay_ms: int, start: Callable[..., Running]) -> None:
    running = start(None)
    with RemoteRelay(running.paths.path) as relay:
        boards = [far_board(relay) for _ in range(3)]
        statuses: list[int] = []
        is_over = threading.Event()
        threads = [threading.Thread(target=loop, args=(board, statuses, is_over)) for board in boards for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.05 + delay_ms / 1000)
        relay.kill() if who == "relay" else running.kill()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)
        lost = {Status.HB_DSP_RELAY_LOST, Status.HB_DSP_BOARD_LOST, Status.HB_SYS_BOARD_LOST}
        assert len(statuses) == len(threads)
        assert set(statuses) <= set(map(int, lost))
        if who == "relay":
            until(lambda: running.ask("status")["memory"]["used_bytes"] == 0, "the end of their memory")
        for board in boards:
            board.close()


def test_a_daemon_that_stops_keeps_no_call_waiting_and_the_next_is_told() -> None:
    limits = {"hbrt.attach.link.ATTACH_SECONDS": 2.0, "dsp_server.gateway.observer.DAEMON_SECONDS": 1.5}
    with private_board() as near, RemoteRelay(near.path, limits=limits) as relay:
        board, other = far_board(relay), far_board(relay)
        kept = other.from_array(np.arange(10))
        refusals: list[str] = []

        def comes_late() -> None:
            with pytest.raises(BoardError) as caught:
                far_board(relay)
            refusals.append(str(caught.value))

        os.kill(near.session.link.daemon_pid, signal.SIGSTOP)
        try:
            board.ping()
            late_one = threading.Thread(target=comes_late)
            late_one.start()
            with (
                Observer(relay.board) as observer,
                pytest.raises(RefusedError, match="did not answer 'status'") as late,
            ):
                observer.request("status")
            assert late.value.status == Status.HB_DSP_TIMEOUT
            board.ping()
            start = time.monotonic()
            other.close()  # nor does the end of a program wait for it
            assert time.monotonic() - start < PATIENCE_S
            late_one.join()
            assert "it does not answer; see 'hbrt log'" in refusals[0]
        finally:
            os.kill(near.session.link.daemon_pid, signal.SIGCONT)
        del kept
        assert nn.softmax(board, np.zeros(4, np.float32)).tolist() == [0.25] * 4
        board.close()


def test_a_relay_that_stops_for_a_while_goes_on_where_it_was(relay: RemoteRelay) -> None:
    board = far_board(relay)
    done = threading.Event()

    def call() -> None:
        nn.softmax(board, np.zeros(4, np.float32))
        done.set()

    relay.kill(signal.SIGSTOP)
    thread = threading.Thread(target=call)
    thread.start()
    assert not done.wait(0.5)
    relay.kill(signal.SIGCONT)
    assert done.wait(PATIENCE_S)
    thread.join()
    board.close()
