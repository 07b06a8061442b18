"""The experiments, each as a program of its own; those that take long have their parts tested beside."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arm_client.asr import say, voice_of, write_wav
from hbrt.samples_dir import samples_dir

if TYPE_CHECKING:
    import pytest

    from arm_client.client import Board


def run(name: str, *arguments: str) -> Any:
    return runpy.run_path(str(samples_dir() / "arm" / "asr" / f"{name}.py"))["main"](*arguments)


def test_calls_buffers_and_affinity_say_what_they_found(
    asr_board: Board, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = run("calls", str(tmp_path))
    assert [one["count"] for one in found.values()] == [1, 5, 28]
    assert found["operation"]["share"] > found["forward"]["share"]
    assert (tmp_path / "calls.png").stat().st_size > 1000
    assert run("buffers") > 1
    assert run("affinity")
    said = capsys.readouterr().out
    for text in (
        "All three give the same bytes.",
        "21 or 1",
        "11.62 times",
        "0xf0",
        "measured here",
        "modelled for the",
    ):
        assert text in said


def test_the_forward_pass_over_fastrpc_has_the_same_bits_and_copies_nothing_large(
    asr_board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fastrpc_calls") > 0
    assert " and 44 " in capsys.readouterr().out


def test_words_of_a_file_of_the_users_own(asr_board: Board, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_wav(tmp_path / "own.wav", say(("four", "two"), voice_of(1), 3, 20).samples)
    assert run("words", str(tmp_path / "own.wav")) is None
    assert capsys.readouterr().out.count(": four two\n") == 3
