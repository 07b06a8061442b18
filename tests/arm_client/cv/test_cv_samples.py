"""The CV samples run as written, one by one and all together, on the picture next to them and on another."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from arm_client.commands.run.references import verdict_of
from arm_client.commands.run.references_cv import expected
from arm_client.errors import OpFailedError
from arm_client.sample import PICTURE, check, read_picture, write_picture
from hbrt.cv.enums import hbDSPCvCmd
from hbrt.cv_types import CvParam, hbVPImage
from tests.each import each

if TYPE_CHECKING:
    from tests.shared import Shell

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
COMMANDS = {cmd.op_name: int(cmd) for cmd in hbDSPCvCmd}
FIELDS = {"op", "command", "core", "status", "max_error", "host_time_us", "modeled_us", "output_file", "passed"}


def sample(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / "arm" / "cv" / f"{name}.py"))


def odd_picture(directory: Path) -> Path:
    """A small color picture of odd sides."""
    file = directory / "odd.png"
    pixels = np.random.default_rng(5).integers(0, 256, (61, 87, 3), np.uint8)
    assert cv2.imwrite(str(file), pixels)
    return file


def test_there_is_one_for_each_op() -> None:
    assert {file.stem for file in (SAMPLES / "arm" / "cv").glob("*.py")} == set(COMMANDS)


def test_each_is_the_program_alone() -> None:
    """It is short, times nothing, computes no reference, and asks nothing of hbrt but `arm_client`."""
    for name in COMMANDS:
        text = (SAMPLES / "arm" / "cv" / f"{name}.py").read_text()
        assert len(text.splitlines()) <= 68, name
        assert "import time" not in text, name
        assert "hbrt" not in text, name


@each("name", COMMANDS)
def test_a_result_is_what_the_cpu_makes_of_the_picture(
    dsp_board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    program = sample(name)
    result = program["main"](str(odd_picture(tmp_path)), str(tmp_path))
    reference = expected(name, str(odd_picture(tmp_path)), SimpleNamespace(**program))
    np.testing.assert_array_equal(result, reference)
    assert np.ptp(result) > 0
    file = tmp_path / f"{name}.png"
    assert capsys.readouterr() == (f"Wrote {file}\n", "")
    shown = cv2.imread(str(file))
    assert shown is not None
    assert np.ptp(shown) > 0


def test_one_runs_by_itself_copied_alone_with_no_board(shell: Shell, tmp_path: Path) -> None:
    copied = shutil.copy(SAMPLES / "arm" / "cv" / "flip.py", tmp_path)
    said = shell.python(copied)
    assert (said.returncode, said.stdout, said.stderr) == (0, "Wrote ./flip.png\n", "")
    flipped, picture = cv2.imread(str(shell.cwd / "flip.png")), cv2.imread(PICTURE)
    assert flipped is not None
    assert picture is not None
    np.testing.assert_array_equal(flipped[:, ::-1], picture)
    assert list(shell.home.iterdir()) == []


def test_what_fails_ends_a_sample_with_a_sentence(dsp_board: Board, tmp_path: Path) -> None:
    check(0, "hbSysAllocMem")
    with pytest.raises(SystemExit, match=r"^hbSysAllocMem returned -6000129: A block must have 1 to "):
        check(hb.hbSysAllocMem(hb.hbSysMem(), 0), "hbSysAllocMem")
    with pytest.raises(SystemExit, match=f"^OpenCV cannot read the picture {__file__}.$"):
        read_picture(__file__)
    with pytest.raises(SystemExit, match=f"^Cannot write {tmp_path}/missing/a.png.$"):
        write_picture(f"{tmp_path}/missing/a.png", np.zeros((2, 2), np.uint8))


def test_a_directory_that_cannot_be_is_a_sentence(dsp_board: Board, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=f"^Cannot write {tmp_path}/file/below/sobel.png.$"):
        sample("sobel")["main"](str(odd_picture(tmp_path)), str(tmp_path / "file" / "below"))


def test_a_wrong_result_is_a_failure(dsp_board: Board, tmp_path: Path) -> None:
    threshold = sample("threshold")
    picture = str(odd_picture(tmp_path))
    result = threshold["main"](picture, str(tmp_path))
    given, names = {"input_file": picture}, SimpleNamespace(**threshold)
    assert verdict_of("cv", "threshold", result, names, given) == (0, True, {})
    result[3, 5] ^= 1
    assert verdict_of("cv", "threshold", result, names, given) == (1, False, {})
    assert verdict_of("cv", "threshold", result[1:], names, given) == (np.inf, False, {})


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
def test_the_images_own_op_takes_colors_nv12_and_in_place(dsp_board: Board) -> None:
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
    gray, short, color, deep = (
        described([dsp_board.empty(shape, dtype)])
        for shape, dtype in (
            ((10, 20), np.uint8),
            ((10, 19), np.uint8),
            ((10, 20, 3), np.uint8),
            ((10, 20), np.int16),
        )
    )
    shifted = hbVPImage.from_buffer_copy(gray)
    shifted.dataPhyAddr += 1
    for src, dst, why in (
        (color, gray, "dst is Y U8C1: it must be RGB U8C3, like src."),
        (gray, color, "dst is RGB U8C3: it must be Y U8C1, like src."),
        (deep, deep, "src is Y S16C1: this op takes Y U8C1"),
        (gray, short, "dst is 19 x 10 pixels: with this src it must be 20 x 10."),
        (gray, shifted, "overlaps src"),
    ):
        with pytest.raises(OpFailedError) as caught:
            dsp_board.call(0x1800, CvParam(src=src, dst=dst), None)
        assert why in caught.value.text
        assert len(caught.value.text.splitlines()) == 1
    with pytest.raises(OpFailedError, match="The input block has 56 bytes, not 112, for src and dst"):
        dsp_board.call(0x1800, gray, None)


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
    assert all(result["modeled_us"] > 0 and not result["modeled_is_estimated"] for result in document["results"])
    whole = cv2.imread(str(shell.cwd / "output" / "contact_sheet.png"))
    assert whole is not None
    assert whole.shape == (222, 1010, 3)  # one row of four: the picture and three results


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
        "sys.argv = ['hbrt', 'run', 'cv', 'flip']\nfrom hbrt.cli.group import main; main()"
    )
    answer: subprocess.CompletedProcess[str] = shell.python("-c", program)
    assert answer.returncode == 3
    assert answer.stderr.endswith("install hbrt with its extra 'cv', as in pip install '.[cv]' in its clone.\n")
    assert list(shell.home.iterdir()) == []
