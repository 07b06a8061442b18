"""libspcdev's names in C, over files, and its models on hbDNN."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime
from click.testing import CliRunner

from arm_client.commands.model.command import command
from hbrt.dnn_types import hbDNNDataType
from hbrt.samples_dir import samples_dir
from tests.native.arm.conftest import Compile, Run, board, compiled, run  # noqa: F401 - fixtures
from tools.stand_in import write_model

DIGITS = samples_dir() / "dnn"
PREDICT = Path(__file__).with_name("predict.c")


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


def test_nv12_may_be_given_in_two_blocks(compiled: Compile, run: Run, tmp_path: Path) -> None:  # noqa: F811
    program, model, picture = compiled(str(PREDICT), "-lspcdev"), tmp_path / "one.bin", tmp_path / "picture"
    write_model(model, [{"shape": [1, 3, 32, 24], "type": "nv12"}], [{"shape": [1, 5]}])
    picture.write_bytes(bytes(at % 256 for at in range(32 * 24 * 3 // 2)))
    together = run(program, model, picture)
    separate = run(program, model, picture, int(hbDNNDataType.HB_DNN_IMG_TYPE_NV12_SEPARATE))
    assert separate.returncode == together.returncode == 0, separate.stderr
    assert separate.stdout == together.stdout


def test_an_input_that_the_model_pads_is_given_without_padding(
    compiled: Compile,  # noqa: F811
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Rows of 8 bytes become rows of 16."""
    model, given = DIGITS / "digits_int8.onnx", tmp_path / "digit"
    held = {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(model).graph.initializer}
    stored = np.arange(64, dtype=np.int8).reshape(1, 1, 8, 8)
    given.write_bytes(stored.tobytes())
    answer = run(compiled(str(PREDICT), "-lspcdev"), model, given)
    assert answer.returncode == 0, answer.stderr
    real = (stored.astype(np.float32) - held["image_zero_point"]) * held["image_scale"]
    (expected,) = onnxruntime.InferenceSession(model).run(None, {"image": real.astype(np.float32)})
    got = (np.array(answer.stdout.split(), np.float32) - held["logits_zero_point"]) * held["logits_scale"]
    np.testing.assert_array_equal(got, np.asarray(expected).reshape(-1))
