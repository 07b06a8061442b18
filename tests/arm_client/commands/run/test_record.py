"""The record of a run: its exit code where a process of it is still attached."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from arm_client.commands.run import record
from arm_client.session.process import process
from hbrt.board.paths import RUN
from hbrt.board.run_record import RunRecord
from hbrt.cli.exits import Exit


@pytest.mark.parametrize(("is_held", "codes"), [(True, (Exit.UNCHECKED, 1)), (False, (Exit.GOOD, 1))])
def test_a_run_is_good_only_when_nothing_of_it_is_attached_still(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_held: bool, codes: tuple[int, int]
) -> None:
    monkeypatch.setattr(record, "_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(process, "is_reported", process.is_reported)
    with record.recorded() as run:
        board = RunRecord(os.environ[RUN])
        if is_held:
            board.hold()
    with closing(board):
        assert (run.exit_code(0), run.exit_code(1)) == codes
    assert ("is still attached" in capsys.readouterr().err) == is_held
