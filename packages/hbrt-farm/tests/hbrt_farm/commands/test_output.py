"""The directory of a map, and its summary, without boards: each result once, in order, whatever ends the verb."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hbrt.errors import WrongUseError
from hbrt_farm import Result, Status
from hbrt_farm.commands import output as module
from hbrt_farm.commands.items import items_over
from hbrt_farm.commands.output import PLAN as PLAN_FILE, RESULTS, Output
from hbrt_farm.commands.report import Summary, save_worst
from hbrt_farm.commands.work import Against, compared
from hbrt_farm.result import Outcome
from tests.each import each
from tests.limits import PATIENCE_S

PLAN = {"what": "0x1000", "items": 300}


def result(index: int) -> Result:
    status = Status.FAILED if index == 7 else Status.GOOD
    text = "seven" if index == 7 else ""
    findings = ("overrun: The block ...",) if index == 9 else ()
    return Result(index, f"{index}.npy", 1, Outcome(status, index, 2 * index, findings, ("ab",), index / 10, text))


def indices(output: Output) -> list[int]:
    return [index for table in output.tables() for index in table.to_pydict()["index"]]


def test_what_was_done_stays_and_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FLUSH_SECONDS", 0.0)  # a file a result, and so they are joined now and then
    monkeypatch.setattr(os, "fsync", lambda _fd: None)  # each of them may wait long for the disk
    with Output(tmp_path / "out", PLAN) as output:
        for index in range(200):
            output.add(result(index))
        assert len(list((tmp_path / "out/parts").iterdir())) < 100
        with pytest.raises(WrongUseError, match="Another process is writing"):
            Output(tmp_path / "out", PLAN)
    first, *_ = sorted(
        (tmp_path / "out/parts").iterdir()
    )  # a kill while files are joined leaves a part of a larger one
    pq.write_table(pq.read_table(first).slice(1, 1), first.with_name(f"{1:012d}-{2:012d}.parquet"))
    with pytest.raises(WrongUseError, match="results of another run: what changed since"):
        Output(tmp_path / "out", {**PLAN, "what": "0x1001"})
    with Output(tmp_path / "out", PLAN) as output:
        assert (output.done, output.is_finished) == (200, False)
        for index in range(200, 300):
            output.add(result(index))
        assert output.finish() == tmp_path / "out" / RESULTS
    with Output(tmp_path / "out", PLAN) as output:
        assert (output.done, output.is_finished) == (300, True)
        assert indices(output) == list(range(300))
        summary = Summary(output.tables())
    assert (summary.total, summary.statuses, summary.findings) == (300, {"good": 299, "failed": 1}, {"overrun": 1})
    assert not summary.is_good
    assert summary.percentiles("cycles") == {"p50": 300, "p90": 540, "p99": 594, "p100": 598}
    assert [item for _, _, item in summary.worst] == [f"{index}.npy" for index in (299, 298, 297, 296, 295)]
    assert "Item 7 failed: 7.npy: seven" in summary.lines()
    page = summary.page("<farm>")
    assert "<img" in page
    assert "&lt;farm&gt;" in page


def test_a_disk_that_is_full_loses_nothing_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_FLUSH_SECONDS", PATIENCE_S)  # nothing is written before it is told to
    with Output(tmp_path, PLAN) as output:
        for index in range(20):
            output.add(result(index))
        output.flush()
        output.add(result(20))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left on device") as raised:
                output.flush()
            assert raised.value.filename is not None
    with Output(tmp_path, PLAN) as output:
        assert indices(output) == list(range(21))  # there was room again at the end
    assert [path.name for path in (tmp_path / "parts").glob(".*")] == []


def test_a_directory_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(WrongUseError, match="has files that are not results of a farm"):
        Output(tmp_path, PLAN)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_items_are_files_in_order_or_a_sentence_says_why_not(tmp_path: Path) -> None:
    for name in ("b.npy", "a.npy", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / "gone.npy").symlink_to("nowhere")  # it fails, and is not left out
    names = [str(tmp_path / name) for name in ("a.npy", "b.npy", "gone.npy")]
    assert items_over(str(tmp_path)) == names
    assert items_over(f"{tmp_path}/[ab].npy") == names[:2]
    (tmp_path / "sub").mkdir()
    table = tmp_path / "sub/list.parquet"
    pq.write_table(pa.table({"path": ["../b.npy", str(tmp_path / "a.npy")]}), table)
    assert [Path(one).resolve() for one in items_over(str(table))] == [tmp_path / "b.npy", tmp_path / "a.npy"]
    pq.write_table(pa.table({"file": ["b.npy"]}), table)
    with pytest.raises(click.UsageError, match="no column 'path'; it has file"):
        items_over(str(table))
    table.write_bytes(b"not at all")
    with pytest.raises(click.UsageError, match="cannot be read as Parquet"):
        items_over(str(table))
    with pytest.raises(click.UsageError, match="No file matches"):
        items_over(str(tmp_path / "*.jpg"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(click.UsageError, match="has no files"):
        items_over(str(tmp_path / "empty"))


@each(
    "made, wanted, error",
    [([1, 2], [1, 2.5], 0.5), ([np.nan], [np.nan], 0), ([np.inf], [np.inf], 0), ([np.nan], [1], np.inf), ([], [], 0)],
)
def test_the_largest_difference_from_a_reference(made: Any, wanted: Any, error: float) -> None:
    arrays = [np.array(made, np.float32)], [np.array(wanted, np.float64)]
    against = Against(lambda x: x, tolerance=0.25)
    found = compared(*arrays, [b"x"], against)
    assert (found.error, bool(found.failure), found.value) == (error, error > 0.25, None)
    with pytest.raises(ValueError, match="the outputs have"):
        compared(arrays[0], [np.zeros((2, 2))], [], against)


@pytest.mark.parametrize("name", [RESULTS, PLAN_FILE])
def test_results_that_are_damaged_are_named(tmp_path: Path, name: str) -> None:
    with Output(tmp_path / "out", {"a": 1}):
        pass
    (tmp_path / "out" / name).write_bytes(b"[" * 100_000)
    with pytest.raises(WrongUseError, match=f"{name} is damaged"):
        Output(tmp_path / "out", {"a": 1})


def test_the_report_counts_whole_items_and_shows_the_worst(tmp_path: Path) -> None:
    with Output(tmp_path / "out", PLAN) as output:
        for index in range(3):
            output.add(result(index))
        output.finish()
        summary = Summary(output.tables())
    rng = np.random.default_rng(0)
    made = rng.integers(0, 255, (20, 30), np.uint8)
    save_worst(tmp_path / "worst", 1, "street.png", ([made], [made + 1]))
    save_worst(tmp_path / "worst", 2, "vector.npy", ([np.zeros(5)], [np.ones(5)]))  # not a picture
    page = summary.page("farm", tmp_path / "worst")
    assert "<figcaption>Host time: 3 items, 0 to " in page
    assert "1. street: off by up to " in page
    assert "vector" not in page
