"""``hbrt ps``: the boards of a user, whatever state they are in."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths

if TYPE_CHECKING:
    from tests.shared import Shell


def test_boards_are_listed_with_their_states(shell: Shell) -> None:
    home = Path(shell.environment["HBRT_HOME"])
    assert shell.good("ps") == f"No boards in {home}. Start one with 'hbrt start'.\n"
    for name in ("gone", "here", "killed"):
        shell.good("start", "--board", name, "--cores", 1)
    shell.good("stop", "--board", "gone")
    os.kill(daemon_pid(BoardPaths(home / "killed")) or 0, signal.SIGKILL)
    here = daemon_pid(BoardPaths(home / "here"))
    while daemon_pid(BoardPaths(home / "killed")):
        pass
    boards = {row["board"]: row for row in shell.json("ps")["boards"]}
    assert {name: row["state"] for name, row in boards.items()} == {
        "gone": "offline",
        "here": "running",
        "killed": "crashed",
    }
    assert (boards["here"]["pid"], boards["here"]["cores"], boards["here"]["tasks"]) == (here, 1, 0)
    heading, *rows = shell.good("ls").splitlines()
    assert heading.split() == ["BOARD", "STATE", "PID", "UP", "CORES", "CLIENTS", "TASKS"]
    assert [row.split()[:3] for row in rows] == [
        ["gone", "offline", "-"],
        ["here", "running", str(here)],
        ["killed", "crashed", "-"],
    ]


def test_a_board_that_is_refused_is_named_and_the_others_are_listed(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    open_to_all = Path(shell.environment["HBRT_HOME"]) / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    answer = shell.hbrt("ps")
    assert answer.returncode == 0
    assert [line.split()[:2] for line in answer.stdout.splitlines()[1:]] == [
        ["default", "running"],
        ["open", "unknown"],
    ]
    assert answer.stderr.startswith("Board open: The board directory ")
    open_to_all.rmdir()
