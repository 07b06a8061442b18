"""The server of leases with stand-ins for boards: who keeps one, who may wait, and by which clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dsp_server.gateway import server as gateway_server
from dsp_server.gateway.server import ListenOptions
from hbrt.protocol.control import decode_reply
from hbrt.protocol.frames import Message
from hbrt.protocol.remote import RemoteFrame, encode
from hbrt.status import Status
from hbrt_farm.leases import seat, server
from hbrt_farm.leases.pools import Pool
from hbrt_farm.leases.server import LeaseServer, Limits
from tests.raw_zmtp import RawPeer
from tests.waiting import until

DAY_S = 86_400.0


class NoBoard:
    """A stand-in for a hosted board."""

    name, port = "none", 5600

    def __init__(self, *_: object) -> None:
        pass

    def is_alive(self) -> bool:
        return True

    def end(self) -> None:
        pass


class Farm:
    """A server that runs in a thread."""

    def __init__(self, **limits: float) -> None:
        pools = [Pool("default", 1)]
        self.server = LeaseServer(ListenOptions("127.0.0.1", 0), pools, Limits(**limits), lambda _: None)  # type: ignore[arg-type]
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()

    def ask(self, user: str = "alice") -> RawPeer:
        peer = RawPeer(self.server.endpoint)
        peer.say(encode(RemoteFrame.LEASE, "program", 1, user, ""))
        return peer

    def status(self) -> Any:
        with RawPeer(self.server.endpoint) as peer:
            peer.say(encode(RemoteFrame.QUEUE))
            return decode_reply(peer.hear()[1][1]).data

    def close(self) -> None:
        self.server.stop()
        self.thread.join()
        self.server.close()


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(server, "HostedBoard", NoBoard)
    monkeypatch.setattr(server, "BEAT_SECONDS", 0.05)
    return monkeypatch


@pytest.fixture
def farm(patched: pytest.MonkeyPatch) -> Iterator[Farm]:
    patched.setattr(gateway_server, "HEARTBEAT_MS", 100)
    patched.setattr(gateway_server, "HEARTBEAT_TIMEOUT_MS", 200)
    one = Farm()
    yield one
    one.close()


def granted(peer: RawPeer) -> Message:
    """What comes when a board is given."""
    while (said := peer.hear()).kind == RemoteFrame.PLACE:
        pass
    return said


def test_a_program_that_gives_no_sign_of_life_loses_its_board(farm: Farm) -> None:
    with farm.ask() as stopped, farm.ask("bob") as waiting:
        assert granted(stopped).kind == RemoteFrame.GRANTED
        assert granted(waiting).kind == RemoteFrame.GRANTED  # while this one answers, and the other does not


def test_one_user_does_not_fill_the_queue(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(server, "MAX_USER_REQUESTS", 2)
    farm = Farm()
    peers = [farm.ask() for _ in range(2)]
    try:
        until(lambda: len(farm.status()["queue"]) == 1, "the queue")  # the other one has the board
        peers.append(farm.ask())
        refused = granted(peers[-1])
        assert (refused.kind, refused[1][0]) == (RemoteFrame.GONE, Status.HB_DSP_NOT_RUNNING)
        assert "alice has or wants 2 of its boards" in refused[1][1]
        with farm.ask("bob") as other:
            assert other.hear().kind == RemoteFrame.PLACE
    finally:
        for peer in peers:
            peer.close()
        farm.close()


def test_a_jump_of_the_wall_clock_takes_no_board_back(patched: pytest.MonkeyPatch) -> None:
    farm = Farm(lease_seconds=DAY_S / 2)
    try:
        with farm.ask() as peer:
            assert granted(peer).kind == RemoteFrame.GRANTED
            now = time.time
            patched.setattr(time, "time", lambda: now() + DAY_S)
            beats = 0
            while beats < 3:
                flags, _ = peer.hear_frame()
                beats += not flags & 4
            (board,) = farm.status()["boards"]
            assert board["state"] == seat.State.LEASED
            assert now() + DAY_S - board["since"] < DAY_S / 2
    finally:
        farm.close()
