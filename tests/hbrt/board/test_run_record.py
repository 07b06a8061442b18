"""The record of what is found in all processes of a run."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hbrt.board.paths import RUN
from hbrt.board.run_record import FirstProcess, RunRecord, joined
from hbrt.findings.record import Finding, Place
from tests.limits import full_disk

LEAK = Finding("leak", "Left.", (Place("allocated", "/a.py:3"),), 5)


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FirstProcess]:
    monkeypatch.setenv("HBRT_SARIF", str(tmp_path / "log.sarif"))
    monkeypatch.delenv(RUN, raising=False)
    run = FirstProcess()
    yield run
    run.detach()
    assert joined() is None


def results_of(path: Path) -> list[tuple[str, int]]:
    return [
        (one["message"]["text"], one["occurrenceCount"]) for one in json.loads(path.read_text())["runs"][0]["results"]
    ]


def test_each_mistake_is_there_once(first: FirstProcess, tmp_path: Path) -> None:
    assert results_of(tmp_path / "log.sarif") == []
    record = joined()
    assert record is not None
    with closing(record):
        record.add([LEAK])
        record.add([LEAK._replace(times=2)])  # the same, counted on
        assert results_of(tmp_path / "log.sarif") == [("Left.", 2)]
        record.add([LEAK._replace(client=6, text="Left by another.")])
    assert first.end() == [LEAK._replace(client=6, text="Left by another.", times=3)]
    assert results_of(tmp_path / "log.sarif") == [("Left by another.", 3)]


def test_a_disk_that_is_full_leaves_no_part_of_the_log(first: FirstProcess, tmp_path: Path) -> None:
    with closing(RunRecord(os.environ[RUN])) as record, full_disk(), pytest.raises(OSError, match="File too large"):
        record.write_sarif()
    assert [path.name for path in tmp_path.iterdir()] == ["log.sarif"]
    assert results_of(tmp_path / "log.sarif") == []


def test_what_cannot_be_written_is_named_as_it_was_asked_for(
    first: FirstProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "write_text", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    with closing(RunRecord(os.environ[RUN])) as record, pytest.raises(OSError, match="Read-only") as caught:
        record.write_sarif()
    assert caught.value.filename == str(tmp_path / "log.sarif")
    monkeypatch.undo()


def test_the_first_process_waits_for_who_holds_it(first: FirstProcess) -> None:
    with closing(RunRecord(os.environ[RUN])) as record:
        record.hold()
        assert not first.wait(0)
    assert first.wait(0)
    with closing(RunRecord(os.environ[RUN])) as late, pytest.raises(BlockingIOError):
        late.hold()


def test_a_run_within_a_run_tells_it(first: FirstProcess, tmp_path: Path) -> None:
    inner = FirstProcess()
    inner.add([LEAK])
    assert first.findings == []
    inner.end()
    inner.detach()
    assert [found.text for found in first.findings] == ["Left."]


def test_what_is_no_record_is_left_alone(tmp_path: Path) -> None:
    with (tmp_path / "users.txt").open("w") as users, pytest.raises(FileNotFoundError):
        RunRecord(f"/proc/{os.getpid()}/fd/{users.fileno()}")
    with pytest.raises(OSError):  # noqa: PT011 - whichever
        RunRecord("/proc/1/none")
