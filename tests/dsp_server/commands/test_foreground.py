"""``dsp_server`` and ``hbrt start --foreground``: the daemon in a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import psutil
import pytest

from hbrt.board.files import daemon_pid
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

DSP_SERVER = ("-m", "dsp_server")
FOREGROUND = ("-m", "hbrt", "start", "--foreground")


def started(shell: Shell, *arguments: str) -> subprocess.Popen[str]:
    """A daemon in the foreground, once it has said that it runs."""
    daemon = shell.start(*arguments)
    assert daemon.stdout is not None
    said = daemon.stdout.readline()
    assert said == f"Board default is running: 2 cores, 2.0 GiB of DDR, daemon process {daemon.pid}.\n", (
        daemon.communicate()
    )
    return daemon


@pytest.mark.parametrize(("arguments", "number"), [(DSP_SERVER, signal.SIGTERM), (FOREGROUND, signal.SIGINT)])
def test_a_signal_ends_the_board_cleanly(shell: Shell, arguments: tuple[str, ...], number: signal.Signals) -> None:
    daemon = started(shell, *arguments)
    assert shell.pid() == daemon.pid
    children = psutil.Process(daemon.pid).children(recursive=True)
    assert len(children) == 3  # the cores, and the fork server
    os.killpg(daemon.pid, number)  # as a terminal does: to the whole foreground group
    output, errors = daemon.communicate(timeout=PATIENCE_S)
    assert (daemon.returncode, output) == (0, "")
    shown = [line.split(" ", 1)[1] for line in errors.splitlines()]
    assert shown[0].startswith("daemon Board default is running: 2 cores, image ")
    assert shown[-1] == "daemon Board default is offline."
    assert shell.good("log") == errors
    assert not [child for child in children if child.is_running()]
    assert shell.files() == ["log"]


def test_what_an_earlier_daemon_logged_is_not_shown_again(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    shell.good("stop")
    daemon = started(shell, *DSP_SERVER)
    shell.good("stop")
    _, errors = daemon.communicate(timeout=PATIENCE_S)
    assert daemon.returncode == 0
    assert errors.count("is offline") == 1


def test_what_goes_wrong_is_a_sentence_and_an_exit_code(shell: Shell) -> None:
    image = shell.cwd / "broken.py"
    image.write_text("1 / 0\n")
    answer = shell.python(*DSP_SERVER, "--image", image)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert f"Error: The image {image} did not load" in answer.stderr
    assert answer.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert daemon_pid(shell.paths()) is None
    assert shell.files() == ["log"]


def test_one_board_has_one_daemon(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    answer = shell.python(*DSP_SERVER)
    assert answer.returncode == 2
    assert f"Board default is already running: its daemon is process {shell.pid()}." in answer.stderr


def test_it_has_the_options_of_start(shell: Shell) -> None:
    shown = shell.python(*DSP_SERVER, "--help").stdout
    assert shown.startswith("Usage: dsp_server [OPTIONS]")
    for option in ("--board", "--image", "--cores", "--ddr", "--reload", "--timeout"):
        assert option in shown


def test_a_terminal_that_has_gone_does_not_end_the_board(shell: Shell) -> None:
    daemon = started(shell, *DSP_SERVER)
    assert daemon.stderr is not None
    daemon.stderr.close()
    shell.good("restart")
    assert shell.status()["state"] == "running"
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(20) == 0
