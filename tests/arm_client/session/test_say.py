"""What a process says by itself: one form on standard error, and the logger's where a program has set up logging."""

from __future__ import annotations

import os

import pytest

from tests.limits import PATIENCE_S
from tests.nursery import Program, run_program

ADVICE = """
import arm_client as hb
mem, task = hb.hbSysMem(), hb.hbDSPTask_t()
assert hb.hbSysAllocMem(mem, 64) == 0
assert hb.hbDSPRpc(task, None, None, hb.hbDSPRpcCtrlParam(rpcCmd=hb.HB_DSP_RPC_CMD_PING)) == 0
assert hb.hbDSPWaitTaskDone(task, 0) == 0
hb.hbDSPReleaseTask(task)
hb.hbSysFreeMem(mem)
"""
OWN_LOGGING = "import logging\nlogging.basicConfig(format='%(name)s|%(levelname)s|%(message)s')\n"


def said(source: str, **environment: str) -> list[str]:
    done = run_program(["-c", source], PATIENCE_S, Program, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "private one" not in line]


@pytest.mark.parametrize(
    ("before", "beginning"),
    [
        ("", "hbrt: advice: endless-wait: <string>:6: hbDSPWaitTaskDone waits without a limit"),
        (OWN_LOGGING, "hbrt|WARNING|endless-wait: <string>:8: hbDSPWaitTaskDone waits without a limit"),
    ],
)
def test_a_finding_has_its_severity_and_its_kind(before: str, beginning: str) -> None:
    (line,) = said(before + ADVICE, HBRT_CHECK="advice")
    assert line.startswith(beginning)


def test_a_wrong_setting_is_said_once_to_users_of_the_c_names() -> None:
    source = "import arm_client as hb\nfor _ in range(3):\n    assert hb.hbSysAllocMem(hb.hbSysMem(), 64) != 0\n"
    (line,) = said(source, HBRT_CACHE="srict", HBRT_BOARD="none")
    assert (
        line
        == "hbrt: warning: Invalid HBRT_CACHE 'srict': must be coherent, strict or evicting:SEED, as in evicting:7."
    )
