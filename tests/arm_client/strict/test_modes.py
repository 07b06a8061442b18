"""Checked tasks take the way that unchecked ones take: directly, and by a relay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import arm_client as hb
from hbrt.board.paths import BoardPaths
from hbrt.mailbox.table import Mailbox
from tests.arm_client.conftest import Chip
from tests.watched import findings_of, program_with


@pytest.fixture(params=["direct", "relay"])
def chip(request: pytest.FixtureRequest, watched_board: BoardPaths, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chip]:
    monkeypatch.setenv("HB_DSP_RPC_MODE", request.param)
    with program_with(watched_board, "memory") as board:
        chip = Chip(board)
        yield chip
        chip.free_all()


def test_findings_name_the_submission(chip: Chip) -> None:
    out = chip.mem()
    assert chip.outcome(chip.ECHO, chip.mem(64, bytes(64)), out)[0] == 0
    assert findings_of(chip.board) == []
    assert chip.outcome(chip.ECHO, chip.mem(), out)[0] == 0
    (found,) = findings_of(chip.board)
    assert found.kind == "unwritten-read"
    assert f"submitted at {Path(__file__).parents[1] / 'conftest.py'}:" in found.text


def test_an_interrupt_before_the_task_is_handed_over_leaves_nothing(
    chip: Chip, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem, tasks = chip.mem(64, bytes(64)), chip.board.session.tasks
    assert chip.outcome(chip.ECHO, mem, mem)[0] == 0  # with a relay, it runs now
    free = len(tasks.slots.free)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Mailbox, "note_site", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hb.hbDSPRpc(hb.hbDSPTask_t(), mem, mem, chip.ctrl(chip.ECHO))
    assert tasks.live_handles() == []
    assert len(tasks.slots.free) == free
    assert chip.outcome(chip.ECHO, mem, mem)[0] == 0
