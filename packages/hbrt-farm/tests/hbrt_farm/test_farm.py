"""A farm on Ray: results in order, failures, deaths of boards and processes, and nothing left of it."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from hbrt.errors import BoardError, WrongUseError
from hbrt_farm import Farm, Status
from hbrt_farm.engine import engine
from hbrt_farm.worker import BoardChoice, Worker
from tests.limits import PATIENCE_S


def name_of(process: psutil.Process) -> str:
    """Its title; empty for one that has ended."""
    try:
        return str(process.name())
    except psutil.Error:
        return ""


@pytest.fixture(scope="module")
def farm() -> Iterator[Farm]:
    """Two boards for all tests of this file: Ray takes 3 s of CPU to start and to end."""
    before = psutil.Process().children(recursive=True)
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", place)
        dead = Path(place, "hbrt-ray-dead")
        dead.mkdir()
        with Farm(2, ddr_bytes=64 << 20) as made:
            patch.undo()  # pytest's own directories are not meant
            assert not dead.exists()
            yield made
        assert list(Path(place).iterdir()) == []
    # Boards named test-... belong to other tests and stay for later ones.
    left = [one for one in psutil.Process().children(recursive=True) if "board test-" not in name_of(one)]
    assert psutil.wait_procs([one for one in left if one not in before], PATIENCE_S)[1] == []


@pytest.mark.long
def test_results_come_in_order_with_what_the_board_found(farm: Farm) -> None:
    def work(board: Any, item: int) -> Any:
        if item == 7:
            raise ValueError("no seven here")
        if item == 8:
            import sys

            sys.exit("tired")
        if item == 9:
            return board  # which no other process can have
        from arm_client import nn

        return nn.softmax(board, board.from_array(np.full(4, item, np.float32)))

    results = list(farm.map(work, range(30)))
    assert [result.index for result in results] == list(range(30))
    assert [result.index for result in results if result.status is Status.FAILED] == [7, 8, 9]
    assert results[7].text.startswith("ValueError: no seven here (")
    assert results[8].text.startswith("SystemExit: tired")
    good = results[20]
    assert isinstance(good.value, np.ndarray)
    assert good.value.tolist() == [0.25] * 4
    assert (good.item, good.attempts, good.outcome.cycles, good.outcome.findings) == (
        "20",
        1,
        results[0].outcome.cycles,
        (),
    )
    assert len(good.outcome.digests) == 1


@pytest.mark.long
def test_breakpoint_stays_what_it_was(farm: Farm) -> None:
    def work(_board: Any, _item: int) -> str | None:
        return os.environ.get("PYTHONBREAKPOINT")

    here = os.environ.get("PYTHONBREAKPOINT")
    assert "ray." not in (here or "")
    assert [result.value for result in farm.map(work, [0])] == [here]


@pytest.mark.long
def test_an_item_whose_board_or_process_dies_is_tried_again_and_the_third_time_set_aside(
    farm: Farm, tmp_path: Path
) -> None:
    marks = str(tmp_path)

    def dies(board: Any, item: str) -> str:
        mark = Path(marks, item)
        if item in {"once-process", "always"}:
            time.sleep(0.2)  # the answer before this one is on its way
        if item.startswith("once") and not mark.exists():
            mark.touch()
            os.kill(os.getpid() if item == "once-process" else board.status()["pid"], signal.SIGKILL)
            board.session.link.request("status")  # no answer comes
        if item == "always":
            os.kill(os.getpid(), signal.SIGKILL)
        return item.upper()

    names = ["a", "once-board", "b", "always", "c", "once-process", "d"]
    results = list(farm.map(dies, names))
    assert [result.item for result in results] == names
    # A process that is killed may not have sent its last answer: that item is tried again, too.
    assert all(result.attempts >= least for result, least in zip(results, [1, 2, 1, 3, 1, 2, 1], strict=True))
    assert [result.status for result in results] == ["good"] * 3 + ["poison"] + ["good"] * 3
    assert "process has ended" in results[3].text
    assert results[5].value == "ONCE-PROCESS"


@pytest.mark.long
def test_a_map_that_is_left_and_an_empty_one(farm: Farm) -> None:
    left = farm.map(lambda _board, item: item, range(1_000_000))
    assert next(left).value == 0
    del left
    assert list(farm.map(lambda _board, item: item, [])) == []
    assert [result.value for result in farm.map(lambda _board, item: -item, [1, 2])] == [-1, -2]


def test_an_image_that_does_not_load_is_a_sentence(tmp_path: Path) -> None:
    image = tmp_path / "bad_image.py"
    image.write_text("raise RuntimeError('not today')")
    assert "not today" in Worker(BoardChoice(str(image))).begin(lambda _board, item: item)


def test_what_is_no_farm_is_refused() -> None:
    with pytest.raises(WrongUseError, match="1 or more"):
        Farm(0)
    with (
        pytest.raises(BoardError, match=r"No Ray cluster answers at 127.0.0.1:1: Connection refused"),
        engine(1, "127.0.0.1:1"),
    ):
        pass
    with pytest.raises(BoardError, match="must be HOST:PORT"), engine(1, "nowhere"):
        pass
    with pytest.raises(WrongUseError, match="with statement"):
        next(Farm(1).map(print, [1]))
