"""``hbrt log``: the end of the log, and what comes."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell


def fill(shell: Shell, lines: int) -> list[str]:
    text = [f"line {number}" for number in range(lines)]
    (shell.home / "default").mkdir(mode=0o700, exist_ok=True)
    (shell.home / "default" / "log").write_text("".join(f"{line}\n" for line in text))
    return text


def test_a_board_that_never_ran_has_no_log(shell: Shell) -> None:
    answer = shell.hbrt("log")
    assert answer.returncode == 2
    assert answer.stderr.startswith("Error: No board default in ")


def test_a_log_that_is_a_fifo_is_refused_by_name(shell: Shell) -> None:
    fill(shell, 1)
    log = shell.home / "default" / "log"
    log.unlink()
    os.mkfifo(log)
    answer = shell.hbrt("log")
    assert answer.returncode == 3
    assert answer.stderr == f"Error: Cannot read the log {log}: it is a FIFO, not a regular file; remove it.\n"


def test_the_log_outlives_the_daemon_and_goes_on_with_the_next(shell: Shell) -> None:
    for _ in range(2):
        shell.good("start", "--cores", 1)
        shell.good("stop")
    said = [line.split(" ", 2)[2] for line in shell.good("log").splitlines()]
    running = next(line for line in said if "is running" in line)
    assert said == [running, "Board default is offline."] * 2


def test_why_a_board_did_not_start_is_in_its_log(shell: Shell) -> None:
    (shell.cwd / "image.py").write_text("raise RuntimeError('not today')\n")
    assert shell.hbrt("start", "--cores", 1, "--image", "image.py").returncode == 1
    said = shell.good("log").splitlines()
    assert " daemon Board default did not start. The image " in said[0]
    assert said[0].endswith(" did not load on core 0: RuntimeError: not today")


def test_the_last_lines_are_asked_for_by_number(shell: Shell) -> None:
    lines = fill(shell, 250)
    assert shell.good("log").splitlines() == lines[-100:]
    assert shell.good("log", "-n", 3).splitlines() == lines[-3:]
    assert shell.good("log", "-n", 1000).splitlines() == lines
    assert shell.good("log", "-n", 0) == ""


def test_the_log_as_json_is_one_document(shell: Shell) -> None:
    lines = fill(shell, 5)
    assert shell.json("log", "-n", 2) == {"log": str(shell.home / "default" / "log"), "lines": lines[-2:]}
    both = shell.hbrt("log", "-f", "--json")
    assert both.returncode == 2
    assert "Use either --follow or --json" in json.loads(both.stdout)["error"]


def test_following_an_offline_board_prints_what_there_is_and_says_so(shell: Shell) -> None:
    fill(shell, 2)
    answer = shell.hbrt("log", "-f")
    assert (answer.returncode, answer.stdout) == (0, "line 0\nline 1\n")
    assert answer.stderr == "Board default is offline; nothing to follow.\n"


def test_following_ends_with_the_board_and_misses_nothing(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    following = shell.start("-m", "hbrt", "log", "--follow")
    assert following.stdout is not None
    assert "is running" in following.stdout.readline()
    shell.good("stop")
    rest, errors = following.communicate(timeout=PATIENCE_S)
    assert rest.endswith("daemon Board default is offline.\n")
    assert (following.returncode, errors) == (0, "")


def test_ctrl_c_is_how_one_leaves(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    following = shell.start("-m", "hbrt", "log", "--follow")
    assert following.stdout is not None
    following.stdout.readline()
    os.killpg(following.pid, signal.SIGINT)
    assert following.communicate(timeout=PATIENCE_S) == ("", "")
    assert following.returncode == 0
    assert shell.status()["state"] == "running"


def test_a_log_that_has_become_too_long_loses_its_older_lines(shell: Shell) -> None:
    lines = fill(shell, 5000)
    log = shell.home / "default" / "log"
    text = log.read_bytes()
    with log.open("wb") as file:
        file.truncate(64 << 20)
        file.seek(64 << 20)
        file.write(text)
    shell.good("start", "--cores", 1)
    said = shell.good("log", "-n", 6000).splitlines()
    at = next(number for number, line in enumerate(said) if "dropped its first" in line)
    assert "The log was larger than 67108864 bytes" in said[at]
    assert said[:at] == lines[1:]  # of the eighth that is kept, the first line is not whole
    assert any("is running" in line for line in said[at:])
