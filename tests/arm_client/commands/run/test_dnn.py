"""``hbrt run dnn``: the model samples for real, with their own models and with a user's."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from hbrt.samples_dir import samples_dir

if TYPE_CHECKING:
    from tests.shared import Shell

SMALL = """<ir_version: 8, opset_import: ["" : 17]>
small (float[1,3,8,10] data) => (float[1,3] prob) {
  m = ReduceMean <axes = [2, 3], keepdims = 0> (data)
  prob = Softmax (m)
}"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A model that says which of blue, green and red a picture has most of."""
    onnx.save(onnx.parser.parse_model(SMALL), tmp_path / "small.onnx")
    (tmp_path / "small.yaml").write_text(
        "{input_type_rt: nv12, input_type_train: bgr, input_layout_train: NCHW, norm_type: data_scale,"
        " scale_value: 0.01}"
    )
    return tmp_path / "small.onnx"


def test_all_samples_run_on_models_of_their_own(shell: Shell, tmp_path: Path) -> None:
    shell.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    document = shell.json("run", "dnn", "--output", tmp_path / "out")
    layer, digits, mobilenet = document["results"]
    assert document["passed"]
    assert layer["report"][0].startswith("row 0: column ")
    assert min(digits["accuracy"].values()) > 0.98
    assert set(digits["accuracy"]) == {"digits_float", "digits_int8"}
    assert digits["report"][0].startswith("digits_float: image 0, a 1: 1 (")
    (said,) = mobilenet["report"]  # and no classes, which would mean nothing
    assert said.endswith(": 1000 scores. Its weights are random; name a trained MODEL to see classes.")
    assert mobilenet["max_error"] < 1e-6
    (built,) = (tmp_path / "cache" / "hbrt").iterdir()
    assert {path.name for path in built.iterdir()} == {"mobilenetv1.onnx", "mobilenetv1.yaml"}
    assert list(shell.home.iterdir()) == []
    hold_to_the_paper(built / "mobilenetv1.onnx")
    hold_to_pictures(built / "mobilenetv1.onnx")


def hold_to_the_paper(mobilenet: Path) -> None:
    """It is as large as the paper says."""
    model = onnx.load(mobilenet)
    parameters = sum(onnx.numpy_helper.to_array(tensor).size for tensor in model.graph.initializer)
    assert parameters == pytest.approx(4.2e6, rel=0.02)
    assert [node.op_type for node in model.graph.node].count("Conv") == 27


def hold_to_pictures(mobilenet: Path) -> None:
    """It tells pictures apart."""
    builder = runpy.run_path(str(samples_dir() / "dnn" / "build_mobilenet.py"))
    session = onnxruntime.InferenceSession(mobilenet)
    rng = np.random.default_rng(9)
    tops: set[tuple[int, ...]] = set()
    for _ in range(4):
        picture: NDArray[np.uint8] = builder["scene"](rng)
        x = (picture.transpose(2, 0, 1)[None] - np.reshape(builder["MEAN"], (3, 1, 1))) * builder["SCALE"]
        (prob,) = session.run(None, {"data": x.astype(np.float32)})
        assert prob.sum() == pytest.approx(1, abs=1e-4)
        assert 0.002 < prob.max() < 0.99  # neither all alike nor one alone
        tops.add(tuple(prob[0].argsort()[::-1][:5]))
    assert len(tops) == 4


def test_a_users_model_and_picture(shell: Shell, small: Path, tmp_path: Path) -> None:
    picture = np.zeros((30, 40, 3), np.uint8)
    picture[..., 2] = 250
    cv2.imwrite(str(tmp_path / "red.png"), picture)
    printed = shell.good("run", "dnn", "mobilenetv1", "--model", small, "--input", tmp_path / "red.png")
    assert "small on red.png, softmax on the DSP:\ntop 1: class 2, " in printed
    assert "random" not in printed
    assert printed.rstrip().endswith("1 of 1 passed, on a private board, in relay mode.")


def test_scores_that_are_no_probabilities_are_not_shown_as_percent() -> None:
    report = runpy.run_path(str(samples_dir() / "arm" / "dnn" / "mobilenetv1.py"))["report"]
    assert report("x", np.array([0.25, 0.75], np.float32)) == [
        "x, softmax on the DSP:",
        "top 1: class 1, 75.00%",
        "top 2: class 0, 25.00%",
    ]
    for logits in ([0.5, 0.9], [-0.5, 1.5]):
        told = report("x", np.array(logits, np.float32))
        assert told[:2] == ["x, its output is not a softmax's:", f"top 1: class 1, score {logits[1]:.4f}"]


def test_a_model_that_takes_no_picture_is_a_sentence(shell: Shell, small: Path) -> None:
    small.with_suffix(".yaml").unlink()
    answer = shell.hbrt("run", "dnn", "mobilenetv1", "--model", small)
    assert answer.returncode == 1
    assert "is HB_DNN_TENSOR_TYPE_F32; this program needs HB_DNN_IMG_TYPE_NV12" in answer.stderr


def test_the_sample_releases_all_when_a_call_fails(shell: Shell, small: Path) -> None:
    fails = "import runpy, sys, arm_client as hb; hb.hbDNNWaitTaskDone = lambda *_: -1; "
    sample = samples_dir() / "arm" / "dnn" / "mobilenetv1.py"
    answer = shell.python("-c", f"{fails}runpy.run_path(sys.argv[1])['main'](sys.argv[2])", sample, small)
    assert answer.returncode == 1
    assert "hbDNNWaitTaskDone returned -1" in answer.stderr
    assert "leak" not in answer.stderr


def test_a_model_is_for_samples_that_take_one(shell: Shell, small: Path) -> None:
    for arguments, refusal in (
        (("nn", "softmax", "--model", small), "is for model samples; "),
        (("dnn", "digits", "--input", small), "is for picture samples; "),
        (("dnn", "mobilenetv1", "--image", small), "--image is for programs"),
    ):
        answer = shell.hbrt("run", *arguments)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert refusal in answer.stderr
