"""What is read of a recording, also of one that was cut off or is nonsense. No process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hbrt.recording.format import CALL, CALLS, HEAD, INDEX, BadRecordingError, Call, Range, begin, read, uncovered
from tests.each import each
from tests.limits import full_disk

BLOCK = {"phy_addr": 0x9000_0000, "size_bytes": 4}
RANGE = {**BLOCK, "before": "in"}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    begin(tmp_path / "made", "a test")
    return tmp_path / "made"


def add(recording: Path, name: str, call: object, *, is_ended: bool = True) -> Path:
    folder = recording / CALLS / name
    folder.mkdir()
    (folder / "in").write_bytes(b"abcd")
    (folder / CALL).write_text(json.dumps(call))
    if is_ended:
        with (recording / INDEX).open("a") as index:
            index.write(json.dumps({"call": name}) + "\n")
    return folder


def test_calls_come_in_the_order_of_their_ends_and_those_without_one_last(recording: Path) -> None:
    for name, is_ended in (("c", True), ("b", False), ("a", True)):
        add(recording, name, {"cmd": 1, "input": BLOCK, "ranges": [RANGE]}, is_ended=is_ended)
    calls, notes = read(recording)
    assert [one.name for one in calls] == ["c", "a", "b"]
    assert calls[0].call == Call(1, input=(0x9000_0000, 4), ranges=(Range(0x9000_0000, 4, "in"),))
    assert (calls[0].bytes_of(calls[0].call.ranges[0]), notes) == (b"abcd", [])


def test_what_was_cut_off_is_left_out(recording: Path) -> None:
    add(recording, "a", {"cmd": 1})
    (recording / CALLS / "b").mkdir()
    with (recording / INDEX).open("a") as index:
        index.write('{"stopped": "no space left"}\n{"call": "hal')
    calls, notes = read(recording)
    assert [one.name for one in calls] == ["a"]
    assert notes == [
        "The recording stops early: no space left",
        "Skipped incomplete call b: its recorder was killed.",
    ]


def test_a_recording_goes_on_and_another_directory_is_refused(recording: Path, tmp_path: Path) -> None:
    begin(recording, "another process")
    assert json.loads((recording / HEAD).read_text())["recorder"] == "a test"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(BadRecordingError, match="is not empty and not a recording"):
        begin(tmp_path / "other", "a test")


def test_a_disk_that_is_full_leaves_nothing_that_is_no_recording(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(OSError, match="File too large"):
        begin(tmp_path / "new", "a test")
    begin(tmp_path / "new", "a test")
    assert read(tmp_path / "new") == ([], [])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ([], "is not a JSON object"),
        ({}, "no command number"),
        ({"cmd": "1"}, "no command number"),
        ({"cmd": 1, "priority": "high"}, "priority is 'high'"),
        ({"cmd": 1, "status": 0.5}, "status is 0.5"),
        ({"cmd": 1, "ranges": 7}, "does not follow docs/recording.md"),
        ({"cmd": 1, "ranges": [{"phy_addr": 1}]}, "'size_bytes'"),
        ({"cmd": 1, "ranges": [{**RANGE, "size_bytes": 0}]}, "is empty"),
        ({"cmd": 1, "ranges": [{**RANGE, "before": "../../etc/passwd"}]}, "not the name of a file"),
        ({"cmd": 1, "ranges": [{**RANGE, "phy_addr": (1 << 64) - 1}]}, "exceeds the address space"),
        ({"cmd": 1, "ranges": [RANGE, {**RANGE, "phy_addr": 0x9000_0003}]}, "overlap at 0x90000003"),
        ({"cmd": 1, "output": BLOCK}, "no range that contains the whole output block at 0x90000000"),
    ],
)
def test_nonsense_in_a_call_is_named_with_its_file(recording: Path, call: Any, why: str) -> None:
    add(recording, "a", call)
    with pytest.raises(BadRecordingError) as raised:
        read(recording)
    assert why in str(raised.value)
    assert str(recording / CALLS / "a" / CALL) in str(raised.value)


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        (HEAD, "{", "is not JSON"),
        (HEAD, '{"format": "tar"}', "its format is 'tar'"),
        (HEAD, '{"format": "hbrt-recording", "version": 9}', "has version 9; this hbrt reads 1"),
        (INDEX, "nonsense\n", "line 1, is not a JSON object"),
        (INDEX, '{"call": "gone"}\n', "gone/call.json"),
    ],
)
def test_nonsense_around_the_calls_is_named(recording: Path, file: str, text: str, why: str) -> None:
    (recording / file).write_text(text)
    with pytest.raises(BadRecordingError, match=why):
        read(recording)


def test_a_file_of_another_size_is_named(recording: Path) -> None:
    folder = add(recording, "a", {"cmd": 1, "ranges": [RANGE]})
    (folder / "in").write_bytes(b"abc")
    (call,), _ = read(recording)
    with pytest.raises(BadRecordingError, match=r"has 3 bytes; call\.json says 4"):
        call.bytes_of(call.call.ranges[0])


@each(
    "start, end, left",
    [
        (0, 5, [(0, 5)]),
        (0, 30, [(0, 10), (12, 20), (25, 30)]),
        (10, 12, []),
        (11, 21, [(12, 20)]),
        (12, 20, [(12, 20)]),
        (7, 7, []),
    ],
)
def test_the_parts_that_no_range_holds(start: int, end: int, left: list[tuple[int, int]]) -> None:
    assert uncovered([Range(20, 5, "b"), Range(10, 2, "a")], start, end) == left


@pytest.mark.parametrize("name", [HEAD, INDEX, f"{CALLS}/a/{CALL}"])
def test_a_file_that_would_keep_the_reader_is_refused(recording: Path, name: str) -> None:
    add(recording, "a", {"cmd": 1})
    file = recording / name
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BadRecordingError, match=f"Cannot read .*{name}: it is not a regular file"):
        read(recording)
    file.unlink()
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(BadRecordingError, match=f"Cannot read .*{name}: it has 1099511627776 bytes, more than"):
        read(recording)
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(BadRecordingError, match=f"Cannot read .*{name}: it is a link"):
        read(recording)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "it is not a regular file"),
        (lambda file: file.symlink_to("/dev/zero"), "it is a link"),
        (lambda file: file.symlink_to("../../../secret"), "it is a link"),
        (lambda file: file.mkdir(), "it is not a regular file"),
    ],
)
def test_the_bytes_of_a_range_come_from_a_file_of_the_recording(
    recording: Path, make: Callable[[Path], None], why: str
) -> None:
    folder = add(recording, "a", {"cmd": 1, "input": BLOCK, "ranges": [RANGE]})
    (recording.parent / "secret").write_bytes(b"abcd")
    (call,), _ = read(recording)
    (folder / "in").unlink()
    make(folder / "in")
    with pytest.raises(BadRecordingError, match=f"in: {why}"):
        call.bytes_of(call.call.ranges[0])


def test_a_folder_that_is_a_link_and_json_that_is_nested_too_deeply_are_refused(recording: Path) -> None:
    folder = add(recording, "a", {"cmd": 1})
    (folder / CALL).write_text("[" * 100_000)
    with pytest.raises(BadRecordingError, match="nested too deeply"):
        read(recording)
    folder.rename(recording.parent / "elsewhere")
    folder.symlink_to("../../elsewhere")
    with pytest.raises(BadRecordingError, match="is a link"):
        read(recording)
