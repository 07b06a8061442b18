"""The CV samples run as written, one by one and all together, on the picture beside them and on another."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest

from arm_client.client import Board
from arm_client.errors import OpFailedError
from hbrt.cv.commands import hbDSPCvCmd
from hbrt.cv_types import CvParam, hbVPImage

if TYPE_CHECKING:
    from tests.conftest import Shell

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
COMMANDS = {cmd.op_name: int(cmd) for cmd in hbDSPCvCmd}
FIELDS = {"op", "command", "core", "status", "max_error", "host_time_us", "output_file", "passed"}
BLACK = 0


def sample(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / "arm" / "cv" / f"{name}.py"))


def odd_picture(directory: Path) -> Path:
    """A small colour picture of odd sides."""
    file = directory / "odd.png"
    pixels = np.random.default_rng(5).integers(0, 256, (61, 87, 3), np.uint8)
    assert cv2.imwrite(str(file), pixels)
    return file


def test_there_is_one_for_each_op() -> None:
    assert {file.stem for file in (SAMPLES / "arm" / "cv").glob("*.py")} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_is_right_and_says_what_the_runner_shows(dsp_board: Board, tmp_path: Path, name: str) -> None:
    got = sample(name)["run"](2, str(odd_picture(tmp_path)), str(tmp_path / "out"))
    assert set(got) == FIELDS
    assert (got["op"], got["command"], got["core"], got["status"]) == (name, COMMANDS[name], 2, 0)
    assert (got["passed"], got["max_error"]) == (True, 0)
    assert got["host_time_us"] > 0
    assert got["output_file"] == str(tmp_path / "out" / f"{name}.png")
    shown = cv2.imread(got["output_file"])
    assert shown is not None
    assert np.ptp(shown) > 0


@pytest.mark.parametrize("name", ["cvt_color", "resize"])
def test_a_picture_that_is_too_small_for_nv12_is_named(dsp_board: Board, tmp_path: Path, name: str) -> None:
    line = str(tmp_path / "line.png")
    assert cv2.imwrite(line, np.zeros((1, 7, 3), np.uint8))
    with pytest.raises(RuntimeError, match="too few pixels for NV12: it takes 2 x 2 at the least"):
        sample(name)["run"](0, line, None)


def test_without_a_directory_nothing_is_written(
    dsp_board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sample("flip")["run"]()["output_file"] == ""
    assert list(tmp_path.iterdir()) == []


def test_main_prints_one_line(
    dsp_board: Board, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sobel.py"])
    assert sample("sobel")["main"]() == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert out.startswith("sobel: command 0x814, status 0, largest error 0, ")
    assert (tmp_path / "output" / "sobel.png").exists()


def test_a_file_that_is_no_picture(dsp_board: Board, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["sobel.py", __file__])
    assert sample("sobel")["main"]() == 1
    assert capsys.readouterr().err == f"sobel: {__file__} is not a picture that OpenCV can read.\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_one_copied_alone_names_the_picture_that_it_misses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    copied = Path(shutil.copy(SAMPLES / "arm" / "cv" / f"{name}.py", tmp_path))
    for arguments, missing in (([], tmp_path / "data" / "input.png"), (["none.png"], "none.png")):
        monkeypatch.setattr(sys, "argv", [copied.name, *arguments])
        assert runpy.run_path(str(copied))["main"]() == 1
        said = f"{name}: There is no picture {missing}: name one, as in python {name}.py PICTURE.\n"
        assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_directory_that_cannot_be_is_a_sentence(
    dsp_board: Board, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(odd_picture(tmp_path)), str(tmp_path / "file" / "below")])
    assert sample(name)["main"]() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{name}: ")
    assert err.endswith(f"Not a directory: '{tmp_path / 'file' / 'below'}'\n")


def test_a_wrong_result_is_a_failure(dsp_board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    threshold = sample("threshold")
    real: Any = np.where
    monkeypatch.setattr(np, "where", lambda *arguments: real(*arguments) + 1)
    assert threshold["run"]()["passed"] is False


def test_the_picture_is_what_its_program_draws() -> None:
    drawn = runpy.run_path(str(SAMPLES / "arm" / "cv" / "data" / "make_input.py"))["draw"]()
    shipped = cv2.imread(str(SAMPLES / "arm" / "cv" / "data" / "input.png"))
    assert shipped is not None
    # Text and anti-aliased edges are OpenCV's, and may differ by its version.
    assert (np.abs(drawn.astype(int) - shipped) > 8).mean() < 0.01


@pytest.mark.dsp_board(image=SAMPLES / "dsp" / "cv_image.py")
def test_the_images_own_op_takes_the_same_descriptor(dsp_board: Board) -> None:
    frame = dsp_board.empty((20, 40), np.uint8)
    src: Any = frame[:, :17]
    dst = dsp_board.empty((20, 17), np.uint8)
    src[...] = np.random.default_rng(1).integers(0, 256, (20, 17))
    param = CvParam(
        src=hbVPImage(1, 1, 17, 20, 40, dataPhyAddr=src.phy_addr),
        dst=hbVPImage(1, 1, 17, 20, 17, dataPhyAddr=dst.phy_addr),
    )
    dsp_board.call(0x1800, param, dst)
    np.testing.assert_array_equal(dst, 255 - src)
    assert dsp_board.ops()[0x80A] == "gaussian_blur"


@pytest.mark.dsp_board(image=SAMPLES / "dsp" / "cv_image.py")
def test_the_images_own_op_takes_colours_nv12_and_in_place(dsp_board: Board) -> None:
    random = np.random.default_rng(2)
    for shapes in ([(9, 14, 3)], [(10, 14), (5, 7, 2)]):
        planes: list[Any] = [dsp_board.from_array(random.integers(0, 256, shape, np.uint8)) for shape in shapes]
        results: list[Any] = [dsp_board.empty_like(plane) for plane in planes]
        for targets in (results, planes):
            expected = [255 - np.array(plane) for plane in planes]
            dsp_board.call(0x1800, CvParam(src=described(planes), dst=described(targets)), targets[0])
            for target, wanted in zip(targets, expected, strict=True):
                np.testing.assert_array_equal(target, wanted)


def described(planes: list[Any]) -> hbVPImage:
    """Y, RGB, or NV12 of two planes, whose rows lie one after the other."""
    first = planes[0]
    height, width = first.shape[:2]
    number, form = (2, 3) if first.ndim == 3 else ({"uint8": 1, "int16": 3}[first.dtype.name], len(planes))
    image = hbVPImage(form, number, width, height, first.strides[0], dataPhyAddr=first.phy_addr)
    if len(planes) > 1:
        image.uvPhyAddr, image.uvStride = planes[1].phy_addr, planes[1].strides[0]
    return image


@pytest.mark.dsp_board(image=SAMPLES / "dsp" / "cv_image.py")
def test_what_the_images_own_op_refuses(dsp_board: Board) -> None:
    grey, short, colour, deep = (
        described([dsp_board.empty(shape, dtype)])
        for shape, dtype in (
            ((10, 20), np.uint8),
            ((10, 19), np.uint8),
            ((10, 20, 3), np.uint8),
            ((10, 20), np.int16),
        )
    )
    shifted = hbVPImage.from_buffer_copy(grey)
    shifted.dataPhyAddr += 1
    for src, dst, why in (
        (colour, grey, "dst is Y U8C1: with a src of RGB U8C3 it is the same."),
        (grey, colour, "dst is RGB U8C3: with a src of Y U8C1 it is the same."),
        (deep, deep, "src is Y S16C1: this op takes Y U8C1"),
        (grey, short, "dst is 19 x 10 pixels: with this src it is 20 x 10."),
        (grey, shifted, "overlaps src"),
    ):
        with pytest.raises(OpFailedError) as caught:
            dsp_board.call(0x1800, CvParam(src=src, dst=dst), None)
        assert why in caught.value.text
        assert len(caught.value.text.splitlines()) == 1
    with pytest.raises(OpFailedError, match="The input block has 56 bytes: give 112, src and dst"):
        dsp_board.call(0x1800, grey, None)


def test_hbrt_run_cv(shell: Shell, tmp_path: Path) -> None:
    names = ["threshold", "resize", "canny"]
    heading, *rows, good, sheet = shell.good("run", "cv", *names, "--input", odd_picture(tmp_path)).splitlines()
    assert heading.startswith("OP  ")
    assert [row.split()[0] for row in rows] == ["canny", "resize", "threshold"]
    assert good == "3 of 3 passed, on a private board, in relay mode."
    assert sheet == f"All pictures: {Path('output') / 'contact_sheet.png'}"
    made = {path.name for path in (shell.cwd / "output").iterdir()}
    assert {f"{name}.png" for name in names} | {"contact_sheet.png", "results.json"} <= made
    document = json.loads((shell.cwd / "output" / "results.json").read_text())
    assert [set(result) >= FIELDS for result in document["results"]] == [True] * 3
    whole = cv2.imread(str(shell.cwd / "output" / "contact_sheet.png"))
    assert whole is not None
    assert whole.shape == (222, 1010, 3)  # one row of four: the picture and three results


def test_hbrt_run_cv_help_lists_the_ops(shell: Shell) -> None:
    assert [row["sample"] for row in shell.json("run", "cv", "help")] == sorted(COMMANDS)


def test_a_picture_is_for_samples_that_take_one(shell: Shell, tmp_path: Path) -> None:
    answer = shell.hbrt("run", "nn", "softmax", "--input", odd_picture(tmp_path))
    assert answer.returncode == 2
    assert f"--input {tmp_path / 'odd.png'} is for picture samples; softmax takes none." in answer.stderr


def test_a_file_that_is_no_picture_is_refused_before_a_board_is_started(shell: Shell) -> None:
    answer = shell.hbrt("run", "cv", "--input", __file__)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.endswith(f"Error: --input {__file__} is not a picture that OpenCV can read.\n")
    assert list(shell.home.iterdir()) == []


def test_without_opencv_no_board_is_started(shell: Shell) -> None:
    program = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'cv2' else real(name, *a)\n"
        "sys.argv = ['hbrt', 'run', 'cv', 'flip']\nfrom hbrt.cli import main; main()"
    )
    answer: subprocess.CompletedProcess[str] = shell.python("-c", program)
    assert answer.returncode == 3
    assert answer.stderr.endswith("install hbrt with its extra 'cv', as in pip install '.[cv]' in its clone.\n")
    assert list(shell.home.iterdir()) == []
