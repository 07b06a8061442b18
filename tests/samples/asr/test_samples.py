"""The experiments, each as its own program; those that take long have their parts tested beside."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arm_client.commands.run.command import _installed
from arm_client.commands.run.pictures import NEEDED, PictureError, missing_for
from arm_client.commands.run.samples import samples_of
from hbrt.samples_dir import samples_dir
from recognizer import RATE, WORDS, say, voice_of, write_wav

if TYPE_CHECKING:
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
        "modeled for the",
    ):
        assert text in said


@pytest.mark.long
def test_the_forward_pass_over_fastrpc_has_the_same_bits_and_copies_nothing_large(
    asr_board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fastrpc_calls") > 0
    assert " and 48 " in capsys.readouterr().out


def test_words_of_files_of_the_users_own(asr_board: Board, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own, silence, long = (str(tmp_path / name) for name in ("own.wav", "silence.wav", "long.wav"))
    samples = say(("four", "two"), voice_of(1), 3, 20).samples
    write_wav(Path(own), samples)
    write_wav(Path(silence), np.zeros(RATE, np.int16))
    write_wav(Path(long), np.concatenate([samples] * 8))
    assert run("words", own, silence, long) is None
    said = capsys.readouterr().out
    assert said.count("own.wav") == said.count("silence.wav") == 3
    assert said.count(": four two\n") == 3
    assert said.count(f": {' '.join(['four two'] * 8)}\n") == 3
    hiss = np.random.default_rng(0).normal(0, 3000, 2 * RATE)
    write_wav(Path(silence), hiss.astype(np.int16))
    run("words", silence)
    heard = capsys.readouterr().out.split()
    assert heard.count("?") > len([word for word in heard if word in WORDS])
    for file in (tmp_path / "nowhere.wav", Path(__file__)):
        with pytest.raises(SystemExit, match=r"is not a WAV file|No such file"):
            run("words", str(file))


def test_without_fastrpc_the_other_samples_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(NEEDED, "fastrpc", ("no_such_library",))
    samples = samples_of("asr")
    kept = _installed(samples, were_named=False)
    assert {"fastrpc_calls"} <= set(samples) - set(kept) <= {"fastrpc_calls", "hexagon"}
    assert "which needs no_such_library (hbrt's extra 'fastrpc').\n" in capsys.readouterr().err
    with pytest.raises(PictureError, match=r"pip install '\.\[fastrpc\]' packages/hbrt-fastrpc in its clone"):
        _installed({"fastrpc_calls": samples["fastrpc_calls"]}, were_named=True)


@pytest.mark.long  # the first compilation of all compiles the C library, too
@pytest.mark.skipif(bool(missing_for("hexagon")), reason="the extra hexagon or qemu-hexagon is not here")
def test_the_forward_pass_with_hvx_has_the_bits_of_the_native_one(asr_board: Board) -> None:
    packets, instructions, vectors = run("hexagon")
    assert 0 < vectors < instructions < 4 * packets
