"""Checked tasks take the way that unchecked ones take: directly, and by a relay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import arm_client as hb
from arm_client.transport.relay_tasks import RelayTasks
from hbrt.attach.task_slots import TaskSlots
from hbrt.board.paths import BoardPaths
from hbrt.mailbox.table import Mailbox
from tests.arm_client.conftest import Chip
from tests.watched import findings_of, program_with

MODES = [
    pytest.param(("direct", TaskSlots), id="direct"),
    pytest.param(("relay", RelayTasks), id="relay"),
]


@pytest.fixture(params=MODES)
def chip(
    request: pytest.FixtureRequest, watched_board: BoardPaths, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Chip, type[TaskSlots]]]:
    mode, kind = request.param
    monkeypatch.setenv("HB_DSP_RPC_MODE", mode)
    with program_with(watched_board, "memory") as board:
        chip = Chip(board)
        yield chip, kind
        chip.free_all()


def test_findings_name_the_submission(chip: tuple[Chip, type[TaskSlots]]) -> None:
    program, kind = chip
    assert type(program.board.session.tasks).__bases__[1] is kind
    out = program.mem()
    assert program.outcome(program.ECHO, program.mem(64, bytes(64)), out)[0] == 0
    assert findings_of(program.board) == []
    assert program.outcome(program.ECHO, program.mem(), out)[0] == 0
    (found,) = findings_of(program.board)
    assert found.kind == "unwritten-read"
    assert f"submitted at {Path(__file__).parents[1] / 'conftest.py'}:" in found.text


def test_an_interrupt_before_the_task_is_handed_over_leaves_nothing(
    chip: tuple[Chip, type[TaskSlots]], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = chip
    mem, tasks = program.mem(64, bytes(64)), program.board.session.tasks
    assert program.outcome(program.ECHO, mem, mem)[0] == 0  # with a relay, it runs now
    free = len(tasks.free)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Mailbox, "note_site", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hb.hbDSPRpc(hb.hbDSPTask_t(), mem, mem, program.ctrl(program.ECHO))
    assert tasks.live_count() == 0
    assert len(tasks.free) == free
    assert program.outcome(program.ECHO, mem, mem)[0] == 0
