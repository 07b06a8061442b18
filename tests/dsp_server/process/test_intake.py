"""A process that sends to a daemon or a relay and does not read: it ends nothing but its own connection."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tests
from hbrt.board.files import daemon_pid, lock_holder
from hbrt.protocol.relay import RelayFrame
from tests.dsp_server.conftest import Running
from tests.dsp_server.relay.test_server import Talker
from tests.limits import PATIENCE_S

SOCKETS = {"control.sock": "DEALER", "relay.sock": "DEALER"}
NONSENSE = b"\0\1x"
PING = b"\x04\x07\x04PING\0\0"

# Another process: a server tells its peers apart by theirs.
FLOODER = """
import sys
from pathlib import Path
from tests.raw_zmtp import RawPeer
path, kind, raw, count = sys.argv[1:]
with RawPeer(Path(path), kind=kind.encode()) as peer:
    try:
        for _ in range(int(count)):
            peer.say_bytes(bytes.fromhex(raw) * 1000)
        print("sent")
    except OSError:
        print("ended")
"""


@pytest.fixture
def board(start: Callable[..., Running]) -> Iterator[Running]:
    """A board with a relay, which both continue and serve others, whatever the test does to them."""
    running = start()
    command = [sys.executable, "-m", "dsp_server.relay", "--board", str(running.paths.path), "--detach"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    relay = lock_holder(running.paths.relay_lock)
    yield running
    assert running.ask("status")["pid"] == daemon_pid(running.paths) == running.pid
    talker = Talker(running)
    talker.say(RelayFrame.HELLO, 1, "nonce", "proof")
    assert talker.hear().kind == RelayFrame.REFUSED
    talker.close()
    assert lock_holder(running.paths.relay_lock) == relay
    assert not [word for word in ("Traceback", "Assertion") if word in running.log()]


def flood(board: Running, name: str, raw: bytes, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FLOODER, str(board.paths.path / name), SOCKETS[name], raw.hex(), str(count)]
    root = Path(tests.__path__[0]).parent
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_flood_that_ends_does_not_end_the_server(board: Running) -> None:
    floods = [flood(board, name, NONSENSE * 5 + PING, 50) for name in SOCKETS]
    for one in floods:
        one.communicate(timeout=PATIENCE_S)


def test_a_flood_without_an_end_is_ended_and_others_are_answered_meanwhile(board: Running) -> None:
    floods = {name: flood(board, name, b"\0\xc8" + bytes(200), 1_000_000) for name in SOCKETS}
    said = "Ended a connection of process {} to {}: it sends without waiting for answers."
    missing = {said.format(one.pid, name) for name, one in floods.items()}
    deadline = time.monotonic() + PATIENCE_S
    while missing := {line for line in missing if line not in board.log()}:
        assert board.ask("status")["state"] == "running"
        assert time.monotonic() < deadline, missing
    for one in floods.values():
        said, _ = one.communicate(timeout=PATIENCE_S)
        assert said == "ended\n"
