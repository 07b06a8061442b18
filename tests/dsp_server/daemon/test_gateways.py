"""Relays that listen, as children of a board: whatever ends one, the board starts it again."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arm_client.client import Board, connect
from arm_client.errors import HbrtError
from hbrt.errors import RefusedError
from hbrt.remote import keys
from hbrt.status import Status
from tests.dsp_server.conftest import Running
from tests.limits import PATIENCE_S
from tests.waiting import until

START: dict[str, Any] = {"endpoint": "tcp://127.0.0.1:0"}


def await_state(running: Running, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    def only() -> dict[str, Any] | None:
        relays: list[dict[str, Any]] = running.ask("status")["gateways"]
        return relays[0] if len(relays) == 1 and is_it(relays[0]) else None

    relay: dict[str, Any] = until(only, "a relay as it is to be")
    return relay


def ping_until_it_fails(board: Board) -> None:
    while True:
        board.ping()


def test_one_that_is_killed_is_started_again_and_programs_go_on(
    start: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.make_server(tmp_path / "keys")
    monkeypatch.setenv("HBRT_KEYS", str(keys.add_client(tmp_path / "keys", "alice")))
    running = start()
    first = running.ask("listen", **START, keys=str(tmp_path / "keys"))
    with connect(first["endpoint"]) as board:
        board.ping()
        os.kill(first["pid"], signal.SIGKILL)
        with pytest.raises(HbrtError) as caught:
            ping_until_it_fails(board)
        assert caught.value.status == Status.HB_DSP_RELAY_LOST
    again = await_state(running, lambda relay: relay["state"] == "running" and relay["pid"] != first["pid"])
    assert (again["endpoint"], again["restarts"]) == (first["endpoint"], 1)
    with connect(first["endpoint"]) as board:
        board.ping()
    (found,) = running.ask("status")["findings"]
    killed = f"Process {first['pid']} was ended by signal 9 (SIGKILL)."
    assert (found["kind"], found["text"]) == (
        "relay-died",
        f"The relay at {first['endpoint']} died: {killed} It restarts now.",
    )
    running.ask("stop")
    running.await_end(running.pid)
    assert not Path(f"/proc/{again['pid']}").exists()


def take_port(host: str, port: int) -> socket.socket:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_server((host, port))
        except OSError:
            assert time.monotonic() < deadline


@pytest.mark.long
def test_one_that_cannot_listen_again_stays_down_and_says_why(start: Callable[..., Running]) -> None:
    running = start()
    relay = running.ask("listen", **START)
    host, port = relay["endpoint"].removeprefix("tcp://").split(":")
    os.kill(running.pid, signal.SIGSTOP)  # it starts nothing until the port is taken
    try:
        os.kill(relay["pid"], signal.SIGKILL)
        taken = take_port(host, int(port))
    finally:
        os.kill(running.pid, signal.SIGCONT)
    with taken:
        down = await_state(running, lambda relay: relay["state"] == "crashed")
        assert down["last_end"] == f"The relay cannot listen at {relay['endpoint']}: Address already in use."
        assert "times in a row and stays down" in running.ask("status")["findings"][-1]["text"]
        with pytest.raises(RefusedError, match="Address already in use"):
            running.ask("listen", endpoint=relay["endpoint"])
    assert running.ask("listen", endpoint=relay["endpoint"])["endpoint"] == relay["endpoint"]


def test_one_that_is_told_to_end_stays_ended(start: Callable[..., Running]) -> None:
    running = start()
    relays = [running.ask("listen", **START) for _ in range(2)]
    os.kill(relays[0]["pid"], signal.SIGTERM)
    assert await_state(running, lambda _: True)["pid"] == relays[1]["pid"]
    assert f"The relay at {relays[0]['endpoint']} (process {relays[0]['pid']}) ended." in running.log()
    assert running.ask("status")["findings"] == []
