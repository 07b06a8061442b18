"""``hbrt recovery``: a crashed core stays or starts again, as one says while the board runs."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.shared import Shell


def core(shell: Shell) -> dict[str, Any]:
    cores: list[dict[str, Any]] = shell.status()["cores"]
    return cores[0]


def test_recovery_is_shown_and_set(shell: Shell) -> None:
    shell.good("start")
    assert shell.good("recovery") == "Recovery of board default is enabled.\n"
    assert shell.good("recovery", "disabled") == "Recovery of board default is disabled.\n"
    assert shell.json("recovery") == {"board": "default", "recovery": "disabled"}
    assert shell.status()["recovery"] == "disabled"
    assert "Recovery of crashed cores is disabled." in shell.good("log")


def test_a_core_that_crashed_meanwhile_starts_when_recovery_is_enabled(shell: Shell) -> None:
    shell.good("start", "--recovery", "disabled")
    before = core(shell)
    os.kill(before["pid"], signal.SIGKILL)
    while core(shell)["state"] != "crashed":
        pass
    shell.good("recovery", "disabled")
    assert core(shell)["state"] == "crashed"
    shell.good("recovery", "enabled")
    while (after := core(shell))["state"] != "running":
        pass
    assert after["epoch"] == before["epoch"] + 1
    os.kill(after["pid"], signal.SIGKILL)
    while core(shell)["epoch"] != before["epoch"] + 2:
        pass
    shell.good("restart")
    heading, *rows = [
        line.split() for line in shell.good("status").splitlines() if "CORE" in line or "running  ok" in line
    ]
    assert (heading[-1], [row[-1] for row in rows]) == ("CRASHES", ["2", "0"])


def test_any_other_word_is_wrong_use(shell: Shell) -> None:
    answer = shell.hbrt("recovery", "perhaps")
    assert answer.returncode == 2
    assert "'perhaps' is not one of 'enabled', 'disabled'" in answer.stderr
