"""The CenterPoint and PointPillars samples run as written, alone and by the runner, on a file too."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board
from arm_client.commands.run.references import verdict_of
from arm_client.commands.run.samples import arguments_of, samples_of
from arm_client.errors import CallerError
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

SAMPLES = Path(__file__).resolve().parents[4] / "samples" / "arm" / "nn"
DIMS = {"centerpoint": 5, "pointpillars": 4}
NAMES = tuple(DIMS)


def sample(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / f"{name}.py"))


def points_file(directory: Path, name: str) -> Path:
    file = directory / f"{name}.bin"
    nn.lidar_sweep(5, dims=DIMS[name], sweeps=1, azimuths=100).tofile(file)
    return file


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_right_and_written(
    dsp_board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = points_file(tmp_path, name)
    program = sample(name)
    pillars = program["main"](str(file), str(tmp_path))
    verdict = verdict_of("nn", name, pillars, SimpleNamespace(**program), {"points_file": str(file)})
    assert verdict is not None
    assert (verdict.max_error, verdict.passed) == (0, True)
    assert verdict.more == {"points": len(program["load"](str(file))), "pillars": pillars.voxel_count}
    assert pillars.voxel_count > 500
    np.testing.assert_array_equal(np.load(tmp_path / f"{name}_features.npy"), pillars.features)
    np.testing.assert_array_equal(np.load(tmp_path / f"{name}_coordinates.npy"), pillars.coordinates)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_no_points_and_one_of_another_format(dsp_board: Board, tmp_path: Path, name: str) -> None:
    file = tmp_path / "points.bin"
    file.write_bytes(b"")
    pillars = sample(name)["main"](str(file), str(tmp_path))
    assert pillars.voxel_count == 0
    assert not pillars.features.any()
    file.write_bytes(b"123")
    with pytest.raises(CallerError, match="has 3 bytes, which is not a whole number of points"):
        sample(name)["main"](str(file), str(tmp_path))


def test_a_wrong_result_is_a_failure(dsp_board: Board, tmp_path: Path) -> None:
    file = points_file(tmp_path, "centerpoint")
    program = sample("centerpoint")
    pillars = program["main"](str(file), str(tmp_path))
    for wrong in (pillars.features, pillars.coordinates):
        wrong.flat[0] ^= 1
        verdict = verdict_of("nn", "centerpoint", pillars, SimpleNamespace(**program), {"points_file": str(file)})
        assert verdict is not None
        assert not verdict.passed
        wrong.flat[0] ^= 1


@pytest.mark.long
def test_the_runner_hands_a_point_cloud_and_a_directory_to_those_that_take_them(shell: Shell, tmp_path: Path) -> None:
    file = points_file(tmp_path, "pointpillars")
    out = tmp_path / "out"
    words = ("run", "nn", "softmax", "pointpillars", "--timeout", PATIENCE_S)  # numba may compile first
    document = shell.json(*words, "--points", file, "--output", out)
    assert document["passed"]
    softmax, got = document["results"]
    assert got["points"] == len(nn.read_kitti(file))
    assert got["output_file"] == str(out / "pointpillars.png")
    assert "points" not in softmax
    assert {path.name for path in out.iterdir()} == {
        "results.json",
        "pointpillars.log",
        "pointpillars.png",
        "pointpillars_coordinates.npy",
        "pointpillars_features.npy",
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
    assert takes == set(NAMES)
    file = tmp_path / "sample.py"
    file.write_text("raise SystemExit(3)\ndef main(core=0, *, deep=1): ...\n", encoding="utf-8")
    assert arguments_of(file) == ["core", "deep"]
    without = tmp_path / "without_main.py"
    without.write_text("x = 1\n", encoding="utf-8")
    assert arguments_of(without) == []
