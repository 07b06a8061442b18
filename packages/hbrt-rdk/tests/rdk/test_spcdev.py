"""libspcdev's names in C, over files, and its models on hbDNN."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from click.testing import CliRunner

from arm_client.commands.model.command import command
from hbrt.samples_dir import samples_dir
from tests.native.arm.conftest import Compile, Run, board, compiled, run  # noqa: F401 - fixtures

DIGITS = samples_dir() / "dnn"


def test_a_c_program_has_cameras_codecs_displays_and_models(
    compiled: Compile,  # noqa: F811
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    seen, shown, model = tmp_path / "red.png", tmp_path / "shown.png", tmp_path / "digits.onnx"
    cv2.imwrite(str(seen), np.full((48, 64, 3), (0, 0, 255), np.uint8))
    shutil.copyfile(DIGITS / "digits_float.onnx", model)
    options = ["--as", str(tmp_path / "digits.bin"), "--input", "gray", "--scale", "0.0039"]
    made = CliRunner().invoke(command, ["new", str(model), *options])
    assert made.exit_code == 0, made.output
    image = np.load(DIGITS / "digits_test.npz")["images"][0].astype(np.uint8)
    (tmp_path / "digit").write_bytes(image.tobytes())
    program = compiled(str(Path(__file__).with_name("pictures.c")), "-lspcdev")
    answer = run(program, tmp_path / "digits.bin", tmp_path / "digit", HBRT_CAMERA=str(seen), HBRT_DISPLAY=str(shown))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    session = onnxruntime.InferenceSession(model)
    given = {session.get_inputs()[0].name: image[None, None].astype(np.float32) * np.float32(0.0039)}
    (expected,) = session.run(None, given)
    np.testing.assert_array_equal(np.array(answer.stdout.split(), np.float32), expected.reshape(-1))
    picture = cv2.imread(str(shown))
    assert picture is not None
    assert [int(one) for one in picture[8, 8]] == [0, 255, 0]
