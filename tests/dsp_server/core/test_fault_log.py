"""What ops raise, as the log has it: whole once, then counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from arm_client.errors import HbrtError
from dsp_server.core import fault_log
from dsp_server.core.fault_log import FaultLog

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]
    WriteImage = Callable[..., Path]


def _raised(value: object) -> BaseException:
    with pytest.raises(KeyError) as caught:
        dict[object, int]()[value]
    return caught.value


def _elsewhere() -> BaseException:
    with pytest.raises(KeyError) as caught:
        dict[str, int]()["elsewhere"]
    return caught.value


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def faults(lines: list[str]) -> FaultLog:
    return FaultLog(lines.append)


def test_the_first_is_written_whole_and_each_doubling_counted(faults: FaultLog, lines: list[str]) -> None:
    for value in range(1000):
        faults.note("op (command 0x1000)", _raised(value), f"Traceback:\nKeyError: {value}")
    assert lines[0] == "op (command 0x1000) raised:\nTraceback:\nKeyError: 0"
    assert [line.split()[6] for line in lines[1:]] == [str(2**power) for power in range(1, 10)]
    assert lines[-1].startswith(f"op (command 0x1000) has raised KeyError 512 times at {__file__}:")
    assert lines[-1].endswith("; most recently: KeyError: 511")


def test_another_op_another_type_and_another_place_are_other_kinds(faults: FaultLog, lines: list[str]) -> None:
    faults.note("one", _raised(1), "text")
    faults.note("two", _raised(1), "text")
    faults.note("one", _elsewhere(), "text")
    faults.note("one", IndexError(), "text")
    assert lines == [f"{op} raised:\ntext" for op in ("one", "two", "one", "one")]


def test_as_many_kinds_are_remembered_as_may_be(
    faults: FaultLog, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_log, "MAX_KINDS", 3)
    for op in "abcd":
        faults.note(op, KeyError(), op)
    faults.note("d", KeyError(), "")
    faults.note("a", KeyError(), "again")
    assert lines[4:] == ["d has raised KeyError 2 times at the same place; most recently: no text", "a raised:\nagain"]


def test_an_op_that_raises_is_told_to_its_caller_and_in_the_log(start: Start, write_image: WriteImage) -> None:
    running = start(
        write_image(before="hb_dsp_env_init(); hb_dsp_register_fn(0x1100, lambda *_: {}['no such key'])"), cores=1
    )
    board = running.attach()
    with pytest.raises(HbrtError, match="KeyError: 'no such key'") as caught:
        board.call(0x1100)
    for _ in range(20):
        with pytest.raises(HbrtError):
            board.call(0x1100)
    log = running.log()
    assert f"core0 0x1100 ERROR <lambda> (command 0x1100) raised:\n{caught.value.text}" in log
    assert log.count("Traceback (most recent call last)") == 1
    assert "<lambda> (command 0x1100) has raised KeyError 16 times at " in log
    with pytest.raises(HbrtError):
        board.call(0x1101)
    assert running.log() == log  # a call that is refused is its caller's matter
