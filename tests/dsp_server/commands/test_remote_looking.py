"""``hbrt status``, ``ops``, ``mem`` and ``log`` of a board on another machine, over its relay."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hbrt.remote import keys as curve_keys
from tests.limits import PATIENCE_S
from tests.remote_relay import BRISK, RemoteRelay

if TYPE_CHECKING:
    from tests.shared import Shell


DAEMON_SECONDS = CONNECT_SECONDS = 1.5
# ``hbrt`` that waits less for a relay which does not greet.
HURRIED = f"""
from hbrt.remote import probe
probe.CONNECT_SECONDS = {CONNECT_SECONDS}
from hbrt.cli.group import main
main()
"""


class Far:
    """A board with a relay that wants keys, and a shell of a machine whose programs have one."""

    def __init__(self, shell: Shell, keys: Path, address: str, relay_pid: int) -> None:
        self.shell = shell
        self.keys = keys
        self.address = address
        self.relay_pid = relay_pid
        shell.environment |= {"HBRT_BOARD": address, "HBRT_KEYS": str(keys / "for-alice")}

    def stop(self) -> None:
        del self.shell.environment["HBRT_BOARD"]
        self.shell.good("stop")
        self.shell.environment["HBRT_BOARD"] = self.address

    def close(self) -> None:
        self.shell.environment.pop("HBRT_BOARD")


def make_keys(shell: Shell) -> Path:
    curve_keys.make_server(shell.home / "keys")
    curve_keys.add_client(shell.home / "keys", "alice")
    return shell.home / "keys"


@pytest.fixture
def far(shell: Shell) -> Iterator[Far]:
    """A board and a relay for a test that ends them."""
    keys = make_keys(shell)
    shell.good("start", "--cores", 1)
    said = shell.good("relay", "--listen", "tcp://127.0.0.1:0", "--keys", keys, "--detach")
    address = said.partition("listens at ")[2].partition(": process")[0]
    made = Far(shell, keys, address, int(said.rpartition(" ")[2].rstrip(".\n")))
    yield made
    made.close()


@pytest.fixture(scope="module")
def kept(running: Shell) -> Iterator[Far]:
    """A board and a relay for the tests that leave them as they were; the relay waits less for the daemon."""
    keys = make_keys(running)
    limits = {**BRISK, "dsp_server.gateway.observer.DAEMON_SECONDS": DAEMON_SECONDS}
    with RemoteRelay(running.paths().path, keys, limits) as relay:
        made = Far(running, keys, relay.address, relay.process.pid)
        yield made
        made.close()


def test_a_far_board_is_shown_as_a_near_one(kept: Far) -> None:
    shell = kept.shell
    status = shell.status()
    near = json.loads(shell.hbrt("status", "--json", "--board", "default").stdout)
    for moves in ("uptime_s", "clients", "cores"):
        status.pop(moves), near.pop(moves)
    assert status == near
    assert shell.good("status").startswith(f"Board default is running: daemon process {near['pid']}, up ")
    assert shell.json("ops") == shell.json("ops", "--board", "default")
    assert shell.json("mem") == shell.json("mem", "--board", "default")
    owners = [shell.good("mem", "owners", *where) for where in ((), ("--board", "default"))]
    assert re.sub(r"\d+ s$", "", owners[0].rstrip()) == re.sub(r"\d+ s$", "", owners[1].rstrip())  # but for their ages
    assert shell.json("log") == shell.json("log", "--board", "default")
    assert shell.good("log", "-n", 1) == shell.good("log", "-n", 1, "--board", "default")
    (client,) = shell.json("status", "--clients")
    assert (client["pid"], client["name"]) == (kept.relay_pid, "dsp_relay_server")  # who looks is no client


def test_following_a_far_log_ends_with_its_board(far: Far) -> None:
    following = far.shell.start("-m", "hbrt", "log", "--follow")
    assert following.stdout is not None
    assert "is running" in following.stdout.readline()
    with (far.shell.home / "default" / "log").open("a") as log:
        log.write("said later\n")
    while "said later" not in following.stdout.readline():
        pass
    far.stop()
    _, errors = following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 0
    assert errors == f"Board {far.address} is offline; the end of its log is on the board's machine.\n"


def test_following_a_far_log_whose_relay_is_killed_is_no_end(far: Far) -> None:
    following = far.shell.start("-m", "hbrt", "log", "--follow")
    assert following.stdout is not None
    assert "is running" in following.stdout.readline()
    os.kill(far.relay_pid, signal.SIGKILL)
    _, errors = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, errors) == (3, f"Error: The relay at {far.address} closed the connection.\n")


def test_a_far_board_that_is_not_there_yet_is_waited_for(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    probe = shell.good("relay", "--listen", "tcp://127.0.0.1:0", "--detach")
    address = probe.partition("listens at ")[2].partition(": process")[0]
    shell.good("stop")
    wait = ("status", "--wait-healthy", "--board", address)
    late = shell.hbrt(*wait, "--timeout", 0.2)
    assert (late.returncode, late.stdout) == (124, "")
    assert late.stderr.startswith(f"Error: The board {address} was not healthy after 0.2 s: Cannot reach a relay at ")
    waiting = shell.start("-m", "hbrt", *wait)
    shell.good("start", "--cores", 1)
    shell.good("relay", "--listen", address, "--detach")
    shown, errors = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, errors) == (0, "")
    assert shown.startswith("Board default is running: ")


def test_keys_that_are_refused_are_not_waited_for(kept: Far) -> None:
    key = kept.keys / "clients" / "alice.key"
    key.rename(key.with_suffix(".away"))
    try:
        for verb in (["status", "--wait-healthy"], ["log", "-f"], ["ops"], ["mem"]):
            refused = kept.shell.hbrt(*verb)
            assert (refused.returncode, refused.stdout) == (3, "")
            assert "does not know this program's key" in refused.stderr
    finally:
        key.with_suffix(".away").rename(key)


def test_a_far_daemon_that_hangs_is_told_and_its_log_is_read(kept: Far) -> None:
    near = json.loads(kept.shell.hbrt("status", "--json", "--board", "default").stdout)
    os.kill(near["pid"], signal.SIGSTOP)
    try:
        asking = kept.shell.start("-m", "hbrt", "status")
        assert "is running" in kept.shell.good("log", "-n", 3)  # meanwhile
        _, errors = asking.communicate(timeout=PATIENCE_S)
        assert asking.returncode == 124
        assert f"(process {near['pid']}) did not answer 'status' in {DAEMON_SECONDS:g} s." in errors
    finally:
        os.kill(near["pid"], signal.SIGCONT)
    assert kept.shell.status()["state"] == "running"


def test_a_relay_that_hangs_is_told(kept: Far) -> None:
    os.kill(kept.relay_pid, signal.SIGSTOP)
    try:
        answer = kept.shell.python("-c", HURRIED, "status")
        assert (answer.returncode, answer.stdout) == (3, "")
        assert f"No relay answers at {kept.address} within {CONNECT_SECONDS:g} s; what listens there" in answer.stderr
        assert "hangs" in answer.stderr
    finally:
        os.kill(kept.relay_pid, signal.SIGCONT)


def test_what_changes_a_board_is_for_its_own_machine(kept: Far) -> None:
    for verb in ("start", "stop", "restart", "recovery", "relay"):
        answer = kept.shell.hbrt(verb)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert f"The board at {kept.address} is on another machine" in answer.stderr
