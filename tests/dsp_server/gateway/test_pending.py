"""Pending connections: how long, and how many of them, the gateway keeps."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import zmq

from arm_client.client import Board, connect
from dsp_server.gateway import connections
from dsp_server.gateway.connections import Connections
from hbrt.protocol.remote import RemoteFrame, encode
from tests.limits import PATIENCE_S
from tests.raw_zmtp import RawPeer
from tests.remote_relay import BRISK, RemoteRelay
from tests.waiting import until

SILENT_S = 0.4
MOST = 3
MODULE = "dsp_server.gateway.connections"


@pytest.fixture
def quick(dsp_board: Board) -> Iterator[RemoteRelay]:
    """A relay that waits less for the first word."""
    with RemoteRelay(dsp_board.path, limits={**BRISK, f"{MODULE}.SILENT_SECONDS": SILENT_S}) as relay:
        yield relay
        assert "Traceback" not in relay.log()


@pytest.fixture
def narrow(dsp_board: Board) -> Iterator[RemoteRelay]:
    """A relay that lets few be silent, for long."""
    with RemoteRelay(dsp_board.path, limits={**BRISK, f"{MODULE}.MAX_SILENT": MOST}) as relay:
        yield relay
        assert "Traceback" not in relay.log()


def descriptors(relay: RemoteRelay) -> int:
    return sum(1 for _ in Path(f"/proc/{relay.process.pid}/fd").iterdir())


class _Connections(Connections):
    """All are nobody's; ``copy_of`` fails for as long as there are no descriptors."""

    has_descriptors = False

    def copy_of(self, fd: int) -> socket.socket | None:
        if not self.has_descriptors:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().copy_of(fd)


@pytest.mark.timeout(10)
def test_without_descriptors_they_are_ended_at_a_later_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        theirs = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST + 2)]
        ours = [server.accept()[0] for _ in theirs]
    accepted = [connection.fileno() for connection in ours]

    def next_accepted(_monitor: object, _flags: int) -> tuple[int, int]:
        if not accepted:
            raise zmq.Again
        return int(zmq.EVENT_ACCEPTED), accepted.pop(0)

    monkeypatch.setattr(connections, "next_event", next_accepted)
    monkeypatch.setattr(connections, "MAX_SILENT", MOST)
    said: list[str] = []
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with closing(_Connections(port, lambda _: True)) as claimed, context.socket(zmq.PAIR) as monitor:
        found = connections.PendingConnections(monitor, claimed, said.append)
        found.on_accepted()  # returns, although none can be ended
        assert said == []
        claimed.has_descriptors = True
        found.end_silent()
    context.term()
    assert len(said) == 2
    for connection in theirs[:2]:  # the oldest
        assert connection.recv(1) == b""
    for connection in theirs[2:]:
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
    for connection in (*ours, *theirs):
        connection.close()


def test_who_gives_signs_of_life_and_says_nothing_is_ended(quick: RemoteRelay) -> None:
    """As a ZeroMQ socket that is connected and never used: its heartbeats are answered."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context.socket(zmq.DEALER) as silent:
        silent.linger, silent.reconnect_ivl = 0, -1
        monitor = silent.get_monitor_socket(int(zmq.EVENT_DISCONNECTED))
        silent.connect(quick.address)
        assert monitor.poll(int(PATIENCE_S * 1000)), "it is kept"
        silent.disable_monitor()
        monitor.close(0)
    context.term()
    (said,) = [line for line in quick.log().splitlines() if "relay ends a connection" in line]
    assert said.endswith(f": it was not admitted within {SILENT_S:g} s.")


def test_who_was_refused_and_stays_is_ended(quick: RemoteRelay) -> None:
    with RawPeer(quick.address) as peer:
        peer.say(encode(RemoteFrame.CLOCK, 1))
        assert peer.hear().kind == RemoteFrame.REFUSED
        assert peer.is_ended()


def test_who_was_let_in_may_be_silent(quick: RemoteRelay) -> None:
    with connect(quick.address) as board:
        time.sleep(3 * SILENT_S)
        board.ping()
    assert "relay ends a connection" not in quick.log()


def test_of_more_than_may_be_silent_the_oldest_is_ended(narrow: RemoteRelay) -> None:
    with connect(narrow.address) as board, ExitStack() as stack:
        before = descriptors(narrow)
        peers = [stack.enter_context(RawPeer(narrow.address)) for _ in range(4 * MOST)]
        assert all(peer.is_ended() for peer in peers[:-MOST])
        until(lambda: descriptors(narrow) <= before + MOST, "the end of their descriptors")
        for peer in peers[-MOST:]:
            peer.say(encode(RemoteFrame.HELLO, "late", 1))
            assert peer.hear().kind == RemoteFrame.WELCOME
        board.ping()
