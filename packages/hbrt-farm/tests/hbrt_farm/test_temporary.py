"""Temporary directories: gone with their block, and with their process, however that one ended."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hbrt_farm.temporary import temporary_directory
from tests.limits import PATIENCE_S

PREFIX = "hbrt-of-a-test-"
HOLD = """
import sys, time
from hbrt_farm.temporary import temporary_directory
with temporary_directory(sys.argv[1], sys.argv[2]) as path:
    (path / "secret").write_text("s")
    print(path, flush=True)
    time.sleep(600)
"""


def test_a_directory_of_a_killed_process_goes_with_the_next_one_and_those_in_use_stay(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, PREFIX, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        with temporary_directory(PREFIX, str(tmp_path)) as mine:
            assert stat.S_IMODE(mine.stat().st_mode) == 0o700
            assert (theirs / "secret").exists()
            with temporary_directory(PREFIX, str(tmp_path)) as another:  # its own process's stay as well
                assert {mine, another, theirs} == set(tmp_path.iterdir())
            other.send_signal(signal.SIGKILL)
            other.wait(PATIENCE_S)
            assert (theirs / "secret").exists()
            with temporary_directory(PREFIX, str(tmp_path)):
                assert not theirs.exists()
                assert mine.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_directory_of_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / f"{PREFIX}theirs").mkdir()
    before = sorted(tmp_path.iterdir())
    mine = os.getuid()
    with temporary_directory("hbrt-of-another-", str(tmp_path)) as other:
        assert sorted([*before, other]) == sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    with pytest.raises(PermissionError), temporary_directory(PREFIX, str(tmp_path)):
        pass
    monkeypatch.undo()
    assert before == sorted(tmp_path.iterdir())


def test_a_place_where_none_can_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), temporary_directory(PREFIX, str(tmp_path / "nowhere")):
        pass
