"""What scripts learn of a board that is not well: from the exit code of ``hbrt status``, and with --wait-healthy."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.shared import Shell


def test_a_stall_is_told_and_waited_for(shell: Shell) -> None:
    shell.good("start")
    assert shell.hbrt("status", "--wait-healthy").returncode == 0
    core = shell.status()["cores"][1]["pid"]
    os.kill(core, signal.SIGSTOP)
    try:
        while (answer := shell.hbrt("status")).returncode == 0:
            pass
        assert answer.returncode == 3
        assert "stalled" in answer.stdout
        assert shell.hbrt("status", "--wait-healthy", "--timeout", "0.3").returncode == 124
        waiting = shell.start("-m", "hbrt", "status", "--wait-healthy")
        assert waiting.poll() is None
    finally:
        os.kill(core, signal.SIGCONT)
    waiting.communicate()
    assert waiting.returncode == 0
    assert shell.hbrt("status").returncode == 0
