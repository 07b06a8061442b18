"""Connections and their identities: no program can end, or watch, the connection of another program."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arm_client.client import Board
from dsp_server.gateway.connections import Connections, is_given
from dsp_server.gateway.gateway import DRAIN_BEATS
from hbrt.protocol.remote import RemoteFrame, encode
from hbrt.status import Status
from tests.limits import PATIENCE_S, open_descriptors
from tests.raw_zmtp import RawPeer
from tests.remote_relay import BRISK_BEAT_S, KeptRelays, RemoteRelay, far_board, kept_relays
from tests.waiting import until

__all__ = ["kept_relays"]


class Port:
    """A listening port and connections to it, as ZeroMQ would have them."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.number = self.listener.getsockname()[1]
        self._open: list[socket.socket] = [self.listener]

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Both ends of a new connection: the peer's, ours."""
        theirs = socket.create_connection(("127.0.0.1", self.number))
        theirs.settimeout(PATIENCE_S)
        ours, _ = self.listener.accept()
        self._open += [theirs, ours]
        return theirs, ours

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture
def port() -> Iterator[Port]:
    made = Port()
    yield made
    made.close()


@pytest.fixture
def reachable() -> set[bytes]:
    return {b"alice", b"mallory"}


@pytest.fixture
def connections(port: Port, reachable: set[bytes]) -> Iterator[Connections]:
    made = Connections(port.number, reachable.__contains__)
    yield made
    made.close()


def is_open(end: socket.socket) -> bool:
    end.setblocking(False)
    try:
        return end.recv(1) != b""
    except BlockingIOError:
        return True


def test_a_connection_of_who_is_there_is_ended(port: Port, connections: Connections) -> None:
    theirs, ours = port.pair()
    claimed = connections.claim(b"mallory", ours.fileno())
    assert claimed is not None
    assert claimed.peer == f"127.0.0.1:{theirs.getsockname()[1]}"
    assert connections.end(claimed)
    assert theirs.recv(1) == b""


def test_who_has_gone_ends_no_connection(port: Port, connections: Connections, reachable: set[bytes]) -> None:
    theirs, ours = port.pair()
    claimed = connections.claim(b"mallory", ours.fileno())  # whose own had this number, and was closed
    assert claimed is not None
    reachable.remove(b"mallory")
    assert connections.end(claimed)
    assert is_open(theirs)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_connection_that_two_claim_is_not_ended(
    port: Port,
    connections: Connections,
    is_first: bool,  # noqa: FBT001
) -> None:
    theirs, ours = port.pair()
    names = [b"mallory", b"alice"] if is_first else [b"alice", b"mallory"]
    claims = {name: connections.claim(name, ours.fileno()) for name in names}
    mallory, alice = claims[b"mallory"], claims[b"alice"]
    assert mallory is not None
    assert alice is not None
    assert not connections.end(mallory)
    assert is_open(theirs)
    connections.release(mallory)
    assert is_open(theirs)
    assert connections.end(alice)


def test_an_end_is_seen_by_all_who_claim(port: Port, connections: Connections) -> None:
    theirs, ours = port.pair()
    claims = [connections.claim(name, ours.fileno()) for name in (b"alice", b"mallory")]
    assert connections.ended() == []
    theirs.close()
    found = until(lambda: len(found := connections.ended()) == 2 and found)
    assert {id(one) for one in found} == set(map(id, claims))


def test_nothing_else_of_this_process_is_taken_for_a_connection(
    port: Port, connections: Connections, tmp_path: Path
) -> None:
    other = Port()
    near, far = socket.socketpair()
    unconnected = socket.socket()
    foreign = other.pair()[1]
    file, bell, closed = os.open(tmp_path, os.O_RDONLY), os.eventfd(0), os.eventfd(0)
    os.close(closed)
    numbers = [end.fileno() for end in (near, unconnected, port.listener, foreign)]
    before = open_descriptors()
    assert [connections.claim(b"mallory", fd) for fd in (*numbers, file, bell, closed, -1)] == [None] * 8
    assert open_descriptors() == before
    for end in (near, far, unconnected):
        end.close()
    os.close(file)
    os.close(bell)
    other.close()


def test_identities_that_the_router_gave() -> None:
    assert is_given(b"\0abcd")
    assert not any(map(is_given, [b"", b"\0", b"abcde", b"\0abc", b"\0abcde", b"alice"]))


@pytest.fixture
def relay(dsp_board: Board, kept_relays: KeptRelays) -> RemoteRelay:
    return kept_relays.of(dsp_board.path)


def test_who_brings_an_identity_is_refused(relay: RemoteRelay) -> None:
    with RawPeer(relay.address, b"alice") as peer:
        peer.say(encode(RemoteFrame.HELLO, "alice", os.getpid()))
        kind, (status, why) = peer.hear()
        assert (kind, status) == (RemoteFrame.REFUSED, Status.HB_DSP_INVALID_ARGUMENT)
        assert why == "It sets its own ZMQ_ROUTING_ID; only the relay may set it."
        assert peer.is_ended()


def test_who_comes_and_goes_with_nonsense_takes_nobody_along(relay: RemoteRelay) -> None:
    """Numbers of descriptors are used again at once: those of the nonsense are soon these programs' own."""
    nonsense = [
        [b"nonsense"],
        [encode(RemoteFrame.HELLO, "mallory", 1), b"nonsense"],
        [encode(RemoteFrame.LOG, 0, 1, -1), b"x"],
    ]
    boards = []
    for round_ in range(12):
        peers = [RawPeer(relay.address) for _ in range(10)]
        for number, peer in enumerate(peers):
            peer.say(*nonsense[(number + round_) % len(nonsense)])
            peer.close()
        boards.append(far_board(relay))
    time.sleep((DRAIN_BEATS + 1) * BRISK_BEAT_S)
    for board in boards:
        board.ping()
        board.close()
