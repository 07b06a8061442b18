"""``hbrt status``, ``ops``, ``mem`` and ``log`` of a board on another machine, over its relay."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hbrt import curve_keys

if TYPE_CHECKING:
    from tests.conftest import Shell


class Far:
    """A board with a relay that wants keys, and a shell of a machine whose programs have one."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.keys = shell.home / "keys"
        curve_keys.make_server(self.keys)
        self.key = curve_keys.add_client(self.keys, "alice")
        shell.good("start", "--cores", 1)
        said = shell.good("relay", "--listen", "tcp://127.0.0.1:0", "--keys", self.keys, "--detach")
        self.address = said.partition("listens at ")[2].partition(": process")[0]
        self.relay_pid = int(said.rpartition(" ")[2].rstrip(".\n"))
        shell.environment |= {"HBRT_BOARD": self.address, "HBRT_KEYS": str(self.key)}

    def stop(self) -> None:
        del self.shell.environment["HBRT_BOARD"]
        self.shell.good("stop")
        self.shell.environment["HBRT_BOARD"] = self.address


@pytest.fixture
def far(shell: Shell) -> Iterator[Far]:
    yield Far(shell)
    shell.environment.pop("HBRT_BOARD", None)


def test_a_far_board_is_shown_as_a_near_one(far: Far) -> None:
    shell = far.shell
    status = shell.status()
    near = json.loads(shell.hbrt("status", "--json", "--board", "default").stdout)
    for moves in ("uptime_s", "clients", "cores"):
        status.pop(moves), near.pop(moves)
    assert status == near
    assert shell.good("status").startswith(f"Board default is running: daemon process {near['pid']}, up ")
    assert shell.json("ops") == shell.json("ops", "--board", "default")
    assert shell.json("mem") == shell.json("mem", "--board", "default")
    assert shell.good("mem", "owners") == shell.good("mem", "owners", "--board", "default")
    assert shell.json("log") == shell.json("log", "--board", "default")
    assert shell.good("log", "-n", 1) == shell.good("log", "-n", 1, "--board", "default")
    (client,) = shell.json("status", "--clients")
    assert (client["pid"], client["name"]) == (far.relay_pid, "dsp_relay_server")  # who looks is no client


def test_following_a_far_log_ends_with_its_board(far: Far) -> None:
    following = far.shell.start("-m", "hbrt", "log", "--follow")
    assert following.stdout is not None
    assert "is running" in following.stdout.readline()
    with (far.shell.home / "default" / "log").open("a") as log:
        log.write("said later\n")
    while "said later" not in following.stdout.readline():
        pass
    far.stop()
    _, errors = following.communicate(timeout=20)
    assert following.returncode == 0
    assert errors == f"Board {far.address} is offline; the end of its log is on its own machine.\n"


def test_following_a_far_log_whose_relay_is_killed_is_no_end(far: Far) -> None:
    following = far.shell.start("-m", "hbrt", "log", "--follow")
    assert following.stdout is not None
    assert "is running" in following.stdout.readline()
    os.kill(far.relay_pid, signal.SIGKILL)
    _, errors = following.communicate(timeout=20)
    assert (following.returncode, errors) == (3, f"Error: The relay at {far.address} closed the connection.\n")


def test_a_far_board_that_is_not_there_yet_is_waited_for(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    probe = shell.good("relay", "--listen", "tcp://127.0.0.1:0", "--detach")
    address = probe.partition("listens at ")[2].partition(": process")[0]
    shell.good("stop")
    wait = ("status", "--wait-healthy", "--board", address)
    late = shell.hbrt(*wait, "--timeout", 0.2)
    assert (late.returncode, late.stdout) == (124, "")
    assert late.stderr.startswith(
        f"Error: The board {address} was not healthy after 0.2 s: No relay can be reached at "
    )
    waiting = shell.start("-m", "hbrt", *wait)
    shell.good("start", "--cores", 1)
    shell.good("relay", "--listen", address, "--detach")
    shown, errors = waiting.communicate(timeout=40)
    assert (waiting.returncode, errors) == (0, "")
    assert shown.startswith("Board default is running: ")


def test_keys_that_are_refused_are_not_waited_for(far: Far) -> None:
    (far.keys / "clients" / "alice.key").unlink()
    for verb in (["status"], ["status", "--wait-healthy"], ["log"], ["log", "-f"], ["ops"], ["mem", "--json"]):
        refused = far.shell.hbrt(*verb)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert "does not know this program's key" in refused.stderr


def test_a_far_daemon_that_hangs_is_told_and_its_log_is_read(far: Far) -> None:
    near = json.loads(far.shell.hbrt("status", "--json", "--board", "default").stdout)
    os.kill(near["pid"], signal.SIGSTOP)
    try:
        asking = far.shell.start("-m", "hbrt", "status")
        assert "is running" in far.shell.good("log", "-n", 3)  # meanwhile
        _, errors = asking.communicate(timeout=20)
        assert asking.returncode == 124
        assert f"(process {near['pid']}) did not answer 'status' in 5 s." in errors
    finally:
        os.kill(near["pid"], signal.SIGCONT)
    assert far.shell.status()["state"] == "running"


def test_a_relay_that_hangs_is_told(far: Far) -> None:
    os.kill(far.relay_pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        answer = far.shell.hbrt("status")
        assert time.monotonic() - start < 20
        assert (answer.returncode, answer.stdout) == (3, "")
        assert "hangs" in answer.stderr
    finally:
        os.kill(far.relay_pid, signal.SIGCONT)


def test_what_changes_a_board_is_for_its_own_machine(far: Far) -> None:
    for verb in ("start", "stop", "restart", "recovery", "relay"):
        answer = far.shell.hbrt(verb)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert f"The board at {far.address} is on another machine" in answer.stderr


def test_many_look_at_once(far: Far) -> None:
    asking = [far.shell.start("-m", "hbrt", "status", "--json") for _ in range(8)]
    answers = [process.communicate(timeout=40)[0] for process in asking]
    assert {json.loads(answer)["state"] for answer in answers} == {"running"}
