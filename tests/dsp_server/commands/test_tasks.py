"""``hbrt tasks``: what a board has ended, who asked for it, and when."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import pytest

from arm_client.client import Board
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.ddr.layout import HISTORY_HEAD, HISTORY_RECORD_BYTES, HISTORY_RECORDS
from hbrt.mailbox.table import ANSWER, REQUEST, State
from hbrt.types import HB_DSP_RPC_CMD_BUTT
from tests.dsp_server.images import halts
from tests.shared import Shell

PROGRAM = """
import time
from arm_client import connect
with connect() as board, board.alloc(64) as block:
    print(time.time_ns())
    board.call(0xFFFF, None, block, priority=7, core=2)
    task = board.submit(0x999)
    task.exception()
    print(time.time_ns())
"""

IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start


def {name}(input, output, tm):
    return 0


def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, {name}, 0)
    hb_dsp_start()
"""


def test_a_task_has_its_times_and_who_asked_for_it(shell: Shell, tmp_path: Path) -> None:
    shell.good("start")
    assert shell.good("tasks") == "No tasks have ended on this board.\n"
    (tmp_path / "calls.py").write_text(PROGRAM)
    begin_ns, end_ns = map(int, shell.python(str(tmp_path / "calls.py")).stdout.split())
    listed, failed = shell.json("tasks")
    assert (listed["cmd"], listed["state"], listed["result"], listed["core"]) == (0xFFFF, "done", 0, 1)
    assert (listed["program"], listed["priority"], listed["output_bytes"]) == ("calls.py", 7, 64)
    assert (failed["cmd"], failed["state"]) == (0x999, "failed")
    assert failed["result"] < 0
    for task in (listed, failed):
        assert task["submitted_ns"] < task["claimed_ns"] <= task["started_ns"] <= task["ended_ns"]
        assert begin_ns < task["ended_unix_ns"] < end_ns
        assert task["waited_ns"] == task["claimed_ns"] - task["submitted_ns"]
        assert task["ran_ns"] == task["ended_ns"] - task["started_ns"]
    rows = list(csv.DictReader(io.StringIO(shell.good("tasks", "--csv"))))
    assert [(row["cmd"], row["pid"]) for row in rows] == [
        (str(task["cmd"]), str(task["pid"])) for task in (listed, failed)
    ]
    heading, first, second = shell.good("tasks").splitlines()
    assert heading.split()[:3] == ["ENDED", "PROGRAM", "PID"]
    assert {"calls.py", "0xffff"} < set(first.split())
    assert {"unregistered", "failed"} < set(second.split())
    assert second.endswith("  HB_DSP_UNKNOWN_COMMAND")
    assert max(map(len, (heading, first, second))) <= 140, "a usual terminal holds a line"


def test_a_task_whose_core_dies_is_kept_by_the_daemon(shell: Shell) -> None:
    shell.good("start", "--image", halts.__file__)
    shell.good("inject", "kill-core core=0 call=1")
    shell.python("-c", "import arm_client as hb; b = hb.connect(); b.submit(0x1000, b.alloc(8), core=1).exception()")
    (lost,) = shell.json("tasks")
    assert (lost["state"], lost["core"]) == ("lost", 0)
    assert lost["ended_ns"] >= lost["claimed_ns"] > 0


@pytest.mark.dsp_board(fresh=True)
def test_nonsense_in_the_history_does_not_keep_the_daemon_from_answering(dsp_board: Board) -> None:
    layout, written = dsp_board.session.link.ddr.layout, dsp_board.session.link.ddr.map
    start, size = layout.history_ring(0), HISTORY_RECORDS * HISTORY_RECORD_BYTES
    written[start : start + size] = random.Random(7).randbytes(size)
    HISTORY_HEAD.pack_into(written, start, HISTORY_RECORDS, State.DONE, 0)
    written[start + HISTORY_HEAD.size : start + HISTORY_RECORD_BYTES] = b"\xff" * (HISTORY_RECORD_BYTES - 16)
    ANSWER.pack_into(written, start + HISTORY_HEAD.size + REQUEST.size, 0, 0, 0, 0, 1, 2, 3, (1 << 64) - 1)
    dsp_board.call(HB_DSP_RPC_CMD_BUTT, None, dsp_board.alloc(64), core=2)
    found = ask(BoardPaths(dsp_board.session.link.paths.path), "tasks", last=1_000_000)
    assert (found[0]["ended_ns"], found[0]["core"]) == (3, 0)
    assert (found[-1]["cmd"], found[-1]["core"]) == (HB_DSP_RPC_CMD_BUTT, 1)


def test_a_task_keeps_the_name_that_its_op_had(shell: Shell, tmp_path: Path) -> None:
    image, call = tmp_path / "image.py", "import arm_client as hb; b = hb.connect(); b.call(0x1000, b.alloc(8))"
    for name in ("first", "second"):
        image.write_text(IMAGE.format(name=name))
        shell.good("start" if name == "first" else "restart", "--image", image)
        shell.python("-c", call)
    assert [task["name"] for task in shell.json("tasks")] == ["first", "second"]
    shell.good("restart", "--image", halts.__file__)
    shell.good("stop", "--core", 0)
    assert [task["name"] for task in shell.json("tasks")] == ["first", "second"]


def test_two_forms_at_once_are_refused(shell: Shell) -> None:
    code, said = shell.refused("tasks", "--csv", "--json")
    assert code == 2
    assert "either --csv or --json" in said
