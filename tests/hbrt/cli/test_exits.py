"""Which failure gets which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from arm_client.errors import error_for
from hbrt.cli.exits import Exit, exit_for, exit_for_status, sentence_of
from hbrt.errors import BoardBusyError, BoardError, DidNotStartError, NotRunningError, RefusedError
from hbrt.settings import BadSettingError
from hbrt.status import Status
from tests.each import each


@each(
    "status, code",
    [
        (0, Exit.GOOD),
        (Status.HB_DSP_RUN_TASK_FAILED, Exit.FAILED),
        (Status.HB_DSP_UNKNOWN_COMMAND, Exit.FAILED),
        (Status.HB_DSP_CORE_LOST, Exit.FAILED),
        (42, Exit.FAILED),
        (Status.HB_DSP_INVALID_ARGUMENT, Exit.USAGE),
        (Status.HB_SYS_BOARD_LOST, Exit.BROKEN),
        (Status.HB_DSP_PERMISSION, Exit.BROKEN),
        (Status.HB_DSP_TIMEOUT, Exit.TIME_LIMIT),
    ],
)
def test_a_status_has_an_exit_code(status: int, code: Exit) -> None:
    assert exit_for_status(status) is code


@each(
    "error, code",
    [
        (BoardBusyError("busy"), Exit.USAGE),
        (NotRunningError("offline"), Exit.USAGE),
        (BadSettingError("HBRT_CORES is 'x'"), Exit.USAGE),
        (BoardError("open to others"), Exit.BROKEN),
        (PermissionError(13, "Permission denied", "/x"), Exit.BROKEN),
        (TimeoutError("late"), Exit.TIME_LIMIT),
        (DidNotStartError(Status.HB_DSP_RUN_TASK_FAILED, "did not load"), Exit.FAILED),
        (DidNotStartError(Status.HB_DSP_TIMEOUT, "still loading"), Exit.TIME_LIMIT),
        (RefusedError(Status.HB_SYS_BOARD_LOST, "gone"), Exit.BROKEN),
        (error_for(Status.HB_DSP_UNKNOWN_COMMAND, "no op", 0x1000), Exit.FAILED),
        (ZeroDivisionError("a defect"), None),
    ],
)
def test_an_error_has_an_exit_code_unless_it_is_a_defect(error: Exception, code: Exit | None) -> None:
    assert exit_for(error) is code


def test_a_directory_that_has_been_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        Path("board").absolute()
    assert sentence_of(caught.value) == "The current directory no longer exists; change to another one."


def test_a_sentence_names_the_file_that_the_system_refused() -> None:
    assert sentence_of(PermissionError(13, "Permission denied", "/x")) == "Permission denied: /x."
    assert sentence_of(TimeoutError("It took too long.")) == "It took too long."
