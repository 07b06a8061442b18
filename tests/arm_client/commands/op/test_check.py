"""``hbrt op check`` through real processes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Shell

REFERENCES = """
import numpy as np

def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max())
    return (e / e.sum()).astype(np.float32)

def off_by_one(x):
    y = softmax(x)
    y[-1] = 3.0
    return y

def nan(x):
    return np.full_like(x, np.nan)

def text(x):
    return "abc"

def ragged(x):
    return [1, [2]]

def wide(x):
    return x.astype(np.longdouble)

def leaves(x):
    raise SystemExit(0)

def swapped(x):
    return softmax(x).astype(">f4")

def near(x):
    return softmax(x) + np.float32(1e-5)

def fails(x):
    return {}["no such key"]

def double(x):
    return softmax(x).astype(np.float64)

def three(x, y, z):
    return b""

def alone(x, scale=2):
    from hbrt.nn_types import hbDSPSoftmaxParam
    assert scale == 2
    return hbDSPSoftmaxParam(data_size=x.nbytes, input=x.phy_addr)
"""
IMAGES = """
import numpy as np
from hbrt.cv_types import *

def image(array):
    height, width = array.shape
    return hbVPImage(
        imageFormat=HB_VP_IMAGE_FORMAT_Y, imageType=HB_VP_IMAGE_TYPE_U8C1,
        width=width, height=height, stride=width, dataPhyAddr=array.phy_addr,
    )

def flip_param(source, result):
    assert (result.shape, result.dtype) == (source.shape, np.uint8)
    return hbDSPCvFlipParam(src=image(source), dst=image(result), flipCode=HB_VP_FLIP_BOTH)

def flip(x):
    return x[::-1, ::-1]

def flip_but_one(x):
    y = flip(x).copy()
    y[-1, 0] ^= 1
    return y

def equalize_param(source, result):
    return hbDSPCvEqualizeHistParam(src=image(source), dst=image(result))

def equalize(x):
    counts = np.bincount(x.ravel(), minlength=256)
    first = np.flatnonzero(counts)[0]
    if counts[first] == x.size:
        return x
    scale = np.float32(255) / np.float32(x.size - counts[first])
    table = np.rint((counts.cumsum() - counts[first]).astype(np.float32) * scale)
    return table.clip(0, 255).astype(np.uint8)[x]
"""


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "references.py"
    path.write_text(REFERENCES, encoding="utf-8")
    return path


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images.py"
    path.write_text(IMAGES, encoding="utf-8")
    return path


@pytest.mark.parametrize(("cmd", "function"), [("0x809", "flip"), ("0x806", "equalize")])
def test_an_op_of_images_whose_result_lies_in_the_output_block(
    running: Shell, images: Path, cmd: str, function: str
) -> None:
    against = ("--against", f"{images}:{function}", "--params", f"{images}:{function}_param", "--dtype", "uint8")
    said = running.good("op", "check", cmd, *against, "--shape", "48x64", "--shape", "1-40x1-40", "--cases", 30)
    assert f" agrees with {images}:{function} in 30 cases; largest difference 0 ulp." in said


def test_a_difference_in_an_image_has_a_row_and_a_column(running: Shell, images: Path) -> None:
    check = ("op", "check", "0x809", "--against", f"{images}:flip_but_one", "--params", f"{images}:flip_param")
    answer = running.hbrt(*check, "--dtype", "uint8", "--shape", "3x5")
    assert answer.returncode == 1
    assert f" differs from {images}:flip_but_one. Case 0 (3x5 uint8, normal): element [2, 0] is " in answer.stdout
    found = json.loads(running.hbrt(*check, "--dtype", "uint8", "--shape", "3x5", "--json").stdout)
    assert (found["shape"], found["index"], found["place"], found["ulp"]) == ([3, 5], 10, [2, 0], 1)


def test_an_op_that_refuses_a_shape_is_told_with_the_shape(running: Shell, images: Path) -> None:
    check = ("op", "check", "0x809", "--against", f"{images}:flip", "--params", f"{images}:flip_param")
    answer = running.hbrt(*check, "--dtype", "uint8", "--shape", "2x3", "--shape", "1x32767")
    assert answer.returncode == 1
    assert answer.stderr.startswith("The call that failed was case 1 (1x32767 uint8, uniform).\nError: Command 0x809: ")


def test_params_that_can_do_with_the_input_alone_get_no_more(running: Shell, references: Path) -> None:
    check = ("op", "check", "0x400", "--against", f"{references}:softmax", "--params", f"{references}:alone")
    running.good(*check, "--ulp", 4, "--cases", 3)


def test_a_reference_of_another_type_than_the_op_writes_is_told_so(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:double")
    assert (answer.returncode, answer.stdout) == (1, "Runs on board default.\n")
    assert answer.stderr.startswith(
        "Error: The reference returned float64 for case 0 (1 float32, normal), but the op writes float32: "
    )
    assert answer.stderr.endswith("Return the expected contents of the output block, as with .astype(np.float32).\n")


def test_an_op_that_agrees(running: Shell, references: Path) -> None:
    said = running.good("op", "check", "0x400", "--against", f"{references}:softmax", "--ulp", 4, "--cases", 15)
    assert said.startswith(
        f"Runs on board default.\nCommand 0x400 (softmax) agrees with {references}:softmax in 15 cases; largest "
        "difference "
    )
    assert re.search(r"\nOn the board a call takes \d.* [µn]s to \d.* µs, modeled\.\n$", said)


SPEAKING = """
from dsp_server import *
from dsp_server.ops.nn.softmax import hb_dsp_softmax

def op(input, output, tm):
    print("one more row")
    return hb_dsp_softmax(input, output, tm)

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x400, op)
    hb_dsp_start()
"""


def test_what_an_op_says_is_shown_once_whose_board_it_may_be(shell: Shell, references: Path) -> None:
    image = shell.cwd / "speaking.py"
    image.write_text(SPEAKING, encoding="utf-8")
    shell.environment["HBRT_IMAGE"] = str(image)
    command = ("op", "check", "0x400", "--against", f"{references}:softmax", "--ulp", 4, "--cases", 3)
    private = shell.python("-m", "hbrt", *command)
    shell.good("start", "--image", image)
    started = shell.python("-m", "hbrt", *command)
    for answer in (private, started):
        assert answer.returncode == 0
        assert answer.stderr.count(" 0x400 one more row\n") == 3


def test_an_op_that_differs(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:off_by_one", "--ulp", 4)
    assert answer.returncode == 1
    assert answer.stdout.startswith(
        f"Runs on board default.\nCommand 0x400 (softmax) differs from {references}:off_by_one. Case 0 (1 float32, "
        "normal): element 0 is 1.0, "
        "the reference has 3.0, "
    )
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:off_by_one", "--ulp", 4, "--json")
    found = json.loads(answer.stdout)
    assert (answer.returncode, found["equal"], found["index"], found["got"], found["expected"]) == (1, False, 0, 1, 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--against", "nothing"], "Invalid function 'nothing': expected MODULE:FUNCTION or FILE.py:FUNCTION."),
        (["--against", "no_such_module:f"], "Cannot import no_such_module: No module named 'no_such_module'."),
        (["--against", "math:nope"], "math has no function nope."),
        (["--against", "math:sqrt", "--dtype", "object"], "Unknown type 'object':"),
        (["--against", "math:sqrt", "--dtype", "longdouble"], "Unknown type 'longdouble':"),
        (["--against", "math:sqrt", "--dtype", "f4,,"], "Unknown type 'f4,,':"),
        (["--against", "math:sqrt", "--params", "bisect:nope"], "bisect has no function nope."),
        (["--against", "math:sqrt", "--shape", "4x0"], "Invalid side 0 in '4x0': lengths and steps must be 1"),
        (["--against", "math:sqrt", "--atol", "nan"], "Invalid difference nan: must be a finite number, 0 or more."),
        (["--against", "math:sqrt", "--atol", "inf"], "Invalid difference inf: must be a finite number, 0 or more."),
        (["--against", "math:sqrt", "--atol", "-1"], "-1.0 is not in the range x>=0."),
    ],
)
def test_wrong_usage_is_a_sentence(shell: Shell, arguments: list[str], sentence: str) -> None:
    code, said = shell.refused("op", "check", "0x400", *arguments)
    assert code == 2
    assert sentence in said


def test_params_that_take_three_arrays_are_wrong_usage(shell: Shell, references: Path) -> None:
    code, said = shell.refused("op", "check", "0x400", "--against", "math:sqrt", "--params", f"{references}:three")
    assert code == 2
    assert f"{references}:three is three(x, y, z), which takes neither one nor two arrays" in said


@pytest.mark.parametrize("cmd", ["0", "0xffff", "0x10000"])
def test_a_number_that_is_no_ops_is_wrong_usage(shell: Shell, cmd: str) -> None:
    code, said = shell.refused("op", "check", cmd, "--against", "math:sqrt")
    assert code == 2
    assert f"Command {int(cmd, 0):#x} is not an op; 'hbrt ops' lists those of the running board." in said


def test_a_script_that_ends_when_it_is_imported_is_named(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    answer = shell.hbrt("op", "check", "0x400", "--against", f"{file}:f")
    assert answer.returncode == 2
    assert f"Error: Cannot import {file}:\nTraceback" in answer.stderr
    assert answer.stderr.endswith("SystemExit: 0\n")


def test_the_order_of_a_references_bytes_does_not_matter(running: Shell, references: Path) -> None:
    running.good("op", "check", "0x400", "--against", f"{references}:swapped", "--ulp", 4, "--cases", 5)


def test_a_difference_may_be_small_instead_of_near(running: Shell, references: Path) -> None:
    check = ("op", "check", "0x400", "--against", f"{references}:near", "--ulp", 4, "--cases", 15)
    assert running.hbrt(*check).returncode == 1
    assert running.good(*check, "--atol", 1.1e-5).startswith(
        "Runs on board default.\nCommand 0x400 (softmax) agrees with "
    )


def test_an_unknown_command_is_the_users_failure(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x1abc", "--against", f"{references}:softmax")
    assert answer.returncode == 1
    assert "No op is registered for command 0x1abc." in answer.stderr


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            "text",
            "Error: The reference returned an array of type <U3 for case 0 (1 float32, normal): return the expected",
        ),
        ("wide", "Error: The reference returned an array of type float128 for case 0 (1 float32, normal): return the"),
        ("ragged", "Error: The reference returned no array for case 0 (1 float32, normal): setting an array element"),
        ("leaves", "Error: The reference failed on case 0 (1 float32, normal):\nTraceback (most recent call last):\n"),
        ("fails", "Error: The reference failed on case 0 (1 float32, normal):\nTraceback (most recent call last):\n"),
    ],
)
def test_a_reference_that_fails_is_not_called_a_defect(
    running: Shell, references: Path, function: str, sentence: str
) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:{function}")
    assert (answer.returncode, answer.stdout) == (1, "Runs on board default.\n")
    assert answer.stderr.startswith(sentence)
    assert "arm_client" not in answer.stderr  # of the traceback only what is the caller's
    if function == "fails":
        assert answer.stderr.endswith("KeyError: 'no such key'\n")


def test_a_reference_whose_file_fails(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n", encoding="utf-8")
    answer = shell.hbrt("op", "check", "0x400", "--against", f"{file}:f")
    assert answer.returncode == 2
    assert f"Error: Cannot import {file}:\nTraceback" in answer.stderr
    assert answer.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "arm_client" not in answer.stderr


def test_an_op_with_other_parameters_is_told_of_params(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x401", "--against", f"{references}:softmax")
    assert answer.returncode != 0
    assert answer.stderr.startswith("Without --params the input block was {int32 data_size; uint64 input}; ")
    assert "Error: Command 0x401: " in answer.stderr


def test_json_has_no_nan(running: Shell, references: Path) -> None:
    answer = running.hbrt("op", "check", "0x400", "--against", f"{references}:nan", "--json")
    found = json.loads(answer.stdout, parse_constant=pytest.fail)
    assert (found["got"], found["expected"], found["ulp"]) == (1.0, "nan", None)
