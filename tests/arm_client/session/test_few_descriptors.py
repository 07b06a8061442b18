"""Programs that are short of file descriptors: each call answers, none ends the process, and all works with room."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from arm_client.client import Board
from hbrt.status import Status
from tests.limits import WHOLE_RUN_S
from tests.nursery import run_program
from tests.remote_relay import KeptRelays, kept_relays  # noqa: F401 - a fixture

# From where a program cannot attach to where all goes. A whole range takes a minute.
LIMITS = {"direct": range(8, 20), "relay": (10, *range(15, 20), 24, 32), "tcp": range(8, 29, 4)}


def run(board: str, mode: str) -> list[dict[str, Any]]:
    rpc_mode = "relay" if mode == "relay" else "direct"
    environment = {**os.environ, "HBRT_BOARD": board, "HBRT_AUTOSTART": "0", "HB_DSP_RPC_MODE": rpc_mode}
    command = ["-m", "tests.arm_client.session.few_descriptors", *LIMITS[mode]]
    done = run_program(command, WHOLE_RUN_S, env=environment, stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("mode", ["direct", *(pytest.param(one, marks=pytest.mark.long) for one in ("relay", "tcp"))])
def test_each_call_answers_with_a_sentence_and_goes_with_room(
    dsp_board: Board,
    kept_relays: KeptRelays,  # noqa: F811
    mode: str,
) -> None:
    board = kept_relays.of(dsp_board.path).address if mode == "tcp" else str(dsp_board.path)
    said = run(board, mode)
    assert [one["most"] for one in said] == list(LIMITS[mode])
    assert [one.get("left", one) for one in said] == [[]] * len(said)
    assert said[0]["refused"]  # there was too little, and then enough
    assert said[-1]["refused"] == []
    for call, status, sentence in (row for one in said for row in one["refused"]):
        assert status < 0 or call in {"import", "connect"}
        assert "Too many open files" in sentence, (call, sentence)


CLOSES = """
import fcntl, os, sys
import arm_client as hb
from arm_client import last_error
mem = hb.hbSysMem()
task = hb.hbDSPTask_t()
ctrl = hb.hbDSPRpcCtrlParam(rpcCmd=hb.HB_DSP_RPC_CMD_PING)
assert hb.hbDSPRpc(task, None, None, ctrl) == 0 == hb.hbDSPWaitTaskDone(task, 0) == hb.hbDSPReleaseTask(task)
if sys.argv[1] == "closed":
    os.closerange(3, 1024)
else:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3, 1024):
        try:
            fcntl.fcntl(fd, fcntl.F_GETFD)
        except OSError:
            continue
        os.dup2(null, fd)
print(hb.hbSysAllocMem(mem, 64), last_error())
print(hb.hbSysAllocMem(mem, 64), hb.hbSysFreeMem(mem))
"""


@pytest.mark.parametrize("how", ["closed", "replaced"])
@pytest.mark.parametrize("kind", ["private", "named"])
def test_a_program_that_closes_all_descriptors_is_told_attaches_again_and_ends(
    dsp_board: Board, tmp_path: Path, how: str, kind: str
) -> None:
    board = str(dsp_board.path) if kind == "named" else "none"
    environment = {**os.environ, "HBRT_BOARD": board, "HBRT_HOME": str(tmp_path), "HB_DSP_RPC_MODE": "direct"}
    done = run_program(["-c", CLOSES, how], WHOLE_RUN_S, env=environment, stdin=subprocess.DEVNULL)
    first, second = done.stdout.splitlines()
    status, _, sentence = first.partition(" ")
    assert int(status) == Status.HB_SYS_BOARD_LOST
    assert sentence.startswith("This program closed or replaced the file descriptors of board ")
    assert (second, done.returncode) == ("0 0", 0)
    assert "Traceback" not in done.stderr
