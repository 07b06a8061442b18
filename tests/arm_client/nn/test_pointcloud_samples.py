"""The CenterPoint and PointPillars samples run as written, alone and by the runner, on a file too."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board
from arm_client.commands._samples import arguments_of, samples_of
from hbrt.status import Status

if TYPE_CHECKING:
    from tests.conftest import Shell

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "arm" / "nn"
COMMANDS = {"centerpoint": 0x403, "pointpillars": 0x404}
DIMS = {"centerpoint": 5, "pointpillars": 4}


def sample(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / f"{name}.py"))


def points_file(directory: Path, name: str) -> Path:
    file = directory / f"{name}.bin"
    nn.lidar_sweep(5, dims=DIMS[name], sweeps=1, azimuths=100).tofile(file)
    return file


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("core", [0, 2])
def test_a_run_is_right_and_says_what_the_runner_shows(dsp_board: Board, name: str, core: int) -> None:
    got = sample(name)["run"](core)
    assert got.pop("host_time_us") > 0
    assert got.pop("points") > 20_000
    assert got.pop("pillars") > 1000
    assert got == {
        "op": name,
        "command": COMMANDS[name],
        "core": core,
        "status": 0,
        "max_error": 0,
        "output_file": "",
        "passed": True,
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_main_on_a_file(
    dsp_board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = points_file(tmp_path, name)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(file), str(tmp_path / "out")])
    assert sample(name)["main"]() == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert f"by command {COMMANDS[name]:#x}, status 0, largest error 0 steps" in out
    assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", COMMANDS)
def test_main_on_a_file_of_no_points_and_on_one_of_another_format(
    dsp_board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / "points.bin"
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(file), str(tmp_path)])
    file.write_bytes(b"")
    assert sample(name)["main"]() == 0
    assert "0 points into 0 pillars" in capsys.readouterr().out
    file.write_bytes(b"123")
    assert sample(name)["main"]() == 1
    assert "has 3 bytes, which is no whole number of points" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_main_without_a_board(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("HBRT_HOME", str(tmp_path))
    monkeypatch.setenv("HBRT_AUTOSTART", "0")
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    assert sample(name)["main"]() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{name}: hbSysAllocMem returned {int(Status.HB_SYS_NOT_RUNNING)}: ")


def test_a_wrong_result_is_a_failure(dsp_board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    centerpoint = sample("centerpoint")
    scope = centerpoint["main"].__globals__
    reference = scope["preprocess"]

    def other(points: Any, config: Any) -> Any:
        right = reference(points, config)
        return right._replace(features=np.where(right.features == 3, 4, right.features).astype(np.int8))

    monkeypatch.setitem(scope, "preprocess", other)
    monkeypatch.setattr(sys, "argv", ["centerpoint.py", str(points_file(tmp_path, "centerpoint")), str(tmp_path)])
    assert centerpoint["main"]() == 1


def test_the_runner_hands_a_point_cloud_and_a_directory_to_those_that_take_them(shell: Shell, tmp_path: Path) -> None:
    file = points_file(tmp_path, "pointpillars")
    out = tmp_path / "out"
    document = shell.json("run", "nn", "softmax", "pointpillars", "--points", file, "--output", out)
    assert document["passed"]
    softmax, got = document["results"]
    assert got["points"] == len(nn.read_kitti(file))
    assert got["output_file"] == str(out / "pointpillars.png")
    assert "points" not in softmax
    assert {path.name for path in out.iterdir()} == {
        "results.json",
        "pointpillars.log",
        "pointpillars.png",
        "softmax.log",
        "softmax.npy",
    }


def test_a_point_cloud_for_samples_that_take_none(shell: Shell, tmp_path: Path) -> None:
    file = points_file(tmp_path, "pointpillars")
    answer = shell.hbrt("run", "nn", "softmax", "--points", file)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "is for point-cloud samples; softmax takes none." in answer.stderr
    answer = shell.hbrt("run", "nn", "--points", tmp_path / "none.bin")
    assert answer.returncode == 2
    assert "does not exist" in answer.stderr


def test_arguments_of_a_sample_are_read_and_not_run(tmp_path: Path) -> None:
    takes = {name for name, file in samples_of("nn").items() if "points_file" in arguments_of(file)}
    assert takes == set(COMMANDS)
    file = tmp_path / "sample.py"
    file.write_text("raise SystemExit(3)\ndef run(core=0, *, deep=1): ...\n", encoding="utf-8")
    assert arguments_of(file) == ["core", "deep"]
    file.write_text("x = 1\n", encoding="utf-8")
    assert arguments_of(file) == []
