"""What scripts learn of a board that is not well: from the exit code of ``hbrt status``, and with --wait-healthy."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.shared import Shell


def test_a_stall_is_told_and_waited_for(shell: Shell) -> None:
    shell.good("start")
    assert shell.hbrt("status", "--wait-healthy").returncode == 0
    codes, core = set[int](), 0
    while not codes >= {3, 124}:  # a core that stood still for 5 s is ended, and another one begins
        core = shell.status()["cores"][1]["pid"] or core
        with contextlib.suppress(ProcessLookupError):
            os.kill(core, signal.SIGSTOP)
        answer = shell.hbrt("status")
        codes |= {answer.returncode} if "stalled" in answer.stdout else set()
        codes.add(shell.hbrt("status", "--wait-healthy", "--timeout", "0.3").returncode)
    waiting = shell.start("-m", "hbrt", "status", "--wait-healthy")
    with contextlib.suppress(ProcessLookupError):
        os.kill(core, signal.SIGCONT)
    waiting.communicate()
    assert waiting.returncode == 0
    assert shell.hbrt("status").returncode == 0
