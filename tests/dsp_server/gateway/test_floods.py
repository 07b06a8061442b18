"""A peer that sends and does not read, without a key and with one: its connection ends, and nothing else does."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from arm_client.client import Board, connect
from dsp_server.gateway.connections import MAX_UNKNOWN_BYTES, MAX_UNREAD_BYTES, Backlog, received_bytes
from hbrt.protocol.remote import RemoteFrame, encode
from hbrt.remote import keys
from tests.each import each
from tests.limits import PATIENCE_S
from tests.raw_zmtp import RawPeer
from tests.remote_relay import BRISK, RemoteRelay
from tests.waiting import until

PING = b"\x04\x07\x04PING\x00\x00"
PART = b"\x03" + struct.pack(">Q", 1 << 16) + bytes(1 << 16)  # of a message that never ends
QUICK = {**BRISK, "dsp_server.gateway.server.HEARTBEAT_MS": 50}


@pytest.fixture
def relay(dsp_board: Board) -> Iterator[RemoteRelay]:
    """A relay that continues and serves others, whatever the test does to it."""
    with RemoteRelay(dsp_board.path, limits=QUICK) as made:
        yield made
        with connect(made.address) as board:
            board.ping()
        assert made.process.poll() is None
        assert not [word for word in ("Traceback", "Assertion") if word in made.log()]


def await_word(relay: RemoteRelay, *words: str) -> None:
    until(lambda: any(word in relay.log() for word in words), f"one of {words}")


def pour(peer: RawPeer, raw: bytes, note: Callable[[], None]) -> None:
    """Send the same bytes again and again, and read nothing, until the connection is ended."""
    peer.socket.settimeout(0.05)
    deadline = time.monotonic() + PATIENCE_S
    left = memoryview(raw)
    while True:
        assert time.monotonic() < deadline, "nothing ends it"
        note()
        try:
            left = left[peer.socket.send(left) :] or memoryview(raw)
        except TimeoutError:
            continue
        except ConnectionError:
            return


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("frame", [encode(RemoteFrame.CLOCK, 1), b"x"], ids=["asks", "says nonsense"])
@pytest.mark.parametrize("is_known", [True, False], ids=["let in", "unknown"])
def test_a_flood_that_ends_in_a_reset_does_not_end_the_relay(
    relay: RemoteRelay, frame: bytes, *, is_known: bool
) -> None:
    with RawPeer(relay.address, window_bytes=4096) as peer:
        if is_known:
            peer.say(encode(RemoteFrame.HELLO, "flood", os.getpid()))
            assert peer.hear().kind == RemoteFrame.WELCOME
        one = bytes([0, len(frame)]) + frame
        peer.say_bytes((one * 10 + PING) * 1000)
        reset(peer.socket)
    with connect(relay.address) as board:
        board.ping()


@pytest.mark.parametrize("is_known", [True, False], ids=["let in", "unknown"])
def test_a_message_without_an_end_takes_no_memory_without_a_bound(relay: RemoteRelay, *, is_known: bool) -> None:
    process = psutil.Process(relay.process.pid)
    before = process.memory_info().rss
    with RawPeer(relay.address) as peer:
        if is_known:
            peer.say(encode(RemoteFrame.HELLO, "endless", os.getpid()))
            assert peer.hear().kind == RemoteFrame.WELCOME
        used = [0]
        pour(peer, PART, lambda: used.append(process.memory_info().rss - before))
    # What comes between two looks is more on a fast machine; without a bound it would be all that 20 s can hold.
    assert max(used) < 40 * MAX_UNREAD_BYTES
    if is_known:
        await_word(relay, f"endless:{os.getpid()}: more than {MAX_UNREAD_BYTES} of its bytes are unread.")
    else:
        await_word(relay, f"it was not admitted, and sent more than {MAX_UNKNOWN_BYTES} bytes.")


FLOODER = """
import contextlib
import sys
import zmq
from hbrt.remote.keys import default_directory, program_keys
from hbrt.protocol.remote import RemoteFrame, encode
keys = program_keys(default_directory())
is_welcome = False
while not is_welcome:  # a busy machine may take longer to connect than the relay waits
    peer = zmq.Context().socket(zmq.DEALER)
    peer.sndhwm, peer.rcvhwm, peer.heartbeat_ivl, peer.reconnect_ivl, peer.linger = 0, 1, 1, -1, 0
    peer.curve_publickey, peer.curve_secretkey = keys.own
    peer.curve_serverkey = keys.server
    peer.connect(sys.argv[1])
    peer.send(encode(RemoteFrame.HELLO, "keyed", 1))
    is_welcome = peer.poll(5000) != 0
peer.recv()
with contextlib.suppress(zmq.Again):  # the relay has ended the connection
    for number in range(1_000_000):
        peer.send(encode(RemoteFrame.CLOCK, 1), zmq.NOBLOCK)
        if number == 50_000:
            print("sent", flush=True)
print("sent", flush=True)
sys.stdin.read()
"""


def test_a_flood_with_a_key_does_not_end_the_relay(
    dsp_board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.make_server(tmp_path / "keys")
    monkeypatch.setenv("HBRT_KEYS", str(keys.add_client(tmp_path / "keys", "alice")))
    with RemoteRelay(dsp_board.path, tmp_path / "keys", limits=QUICK) as relay:
        command = [sys.executable, "-c", FLOODER, relay.address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flooder:
            assert flooder.stdout is not None
            flooder.stdout.readline()  # it sends on, or has lost its connection
            flooder.kill()  # with much unread: the kernel resets its connection
        with connect(relay.address) as board:
            board.ping()
        assert relay.process.poll() is None


@each("size", [0, 1, 222, 223, 255, 256, 1 << 20])
@each("has_keys", [False, True])
def test_the_count_of_what_was_read_is_that_of_the_wire(size: int, *, has_keys: bool) -> None:
    body = size + (33 if has_keys else 0)
    header = 2 if body <= 255 else 9
    backlog = Backlog(has_keys=has_keys)
    for _ in range(1000):
        backlog.on_frame(size)
    assert backlog.unread_bytes(1000 * (header + body) + 5, 0.0) == 5


def test_signs_of_life_add_up_to_nothing() -> None:
    backlog, came = Backlog(), 0
    for _ in range(100_000):
        came += 100
        assert backlog.unread_bytes(came, 1.0) == 0
    assert backlog.unread_bytes(came + 1000, 0.0) == 1000  # nor is the time without any saved up


def test_the_kernel_counts_what_came_over_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as theirs:
            ours, _ = server.accept()
            theirs.sendall(bytes(12345))
        with ours:
            ours.recv(12345, socket.MSG_WAITALL)
            assert received_bytes(ours) == 12345 + 1  # its end counts as well
