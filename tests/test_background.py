"""A test run that a script starts with &: SIGINT is ignored there, and tests of Ctrl-C would wait for nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import heed_ctrl_c
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    import pytest

IGNORED = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"


def is_ignored_in_a_child() -> bool:
    command = [sys.executable, "-c", IGNORED]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=PATIENCE_S).stdout == "True\n"


def test_ctrl_c_reaches_programs_of_a_run_in_the_background(request: pytest.FixtureRequest) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    assert is_ignored_in_a_child()
    heed_ctrl_c()
    assert not is_ignored_in_a_child()
