"""hbrt model new: the files that it writes, what it says of them, and what it refuses."""

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from click.testing import CliRunner, Result

from arm_client.commands.model.command import command
from arm_client.dnn.errors import ModelError
from arm_client.dnn.loading.model import load
from hbrt.dnn_types import hbDNNTensorLayout

HEAD = """
<ir_version: 8, opset_import: ["" : 21]>
net (float[1,3,32,32] images) => (float[1,5,8,16] head)
<float[5,3,1,1] w = {1,0,0, 0,1,0, 0,0,1, 1,1,1, 2,0,0}, float s = {0.5}, int8 z = {0}> {
  c = Conv(images, w)
  p = AveragePool<kernel_shape = [4,2], strides = [4,2]>(c)
  q = QuantizeLinear(p, s, z)
  head = DequantizeLinear(q, s, z)
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(HEAD), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def new(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["new", *map(str, arguments)])


def test_a_detector_has_its_board_s_shape(source: Path) -> None:
    target = source.with_name("yolo.bin")
    answer = new(source, "--as", target, "--input", "nv12", "--scale", "0.5", "--output", "nhwc")
    assert answer.exit_code == 0, answer.output
    assert answer.output.splitlines()[1:] == [
        "input images: IMG_TYPE_NV12 [1, 3, 32, 32]",
        "output head: TENSOR_TYPE_S8 [1, 8, 16, 5]",
        "The output head is quantized (SCALE): the program dequantizes it.",
    ]
    assert "scale_value: 0.5" in target.with_suffix(".yaml").read_text()
    assert load([target])[0].outputs[0].layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC
    assert "already exists" in new(source, "--as", target).output


def test_a_format_of_pictures_needs_an_input_for_one(source: Path) -> None:
    answer = new(source, "--as", source.with_name("gray.bin"), "--input", "gray")
    assert "No input has the shape of a gray picture: images [1, 3, 32, 32]. Leave out --input." in answer.output
    assert sorted(file.name for file in source.parent.iterdir()) == ["net.onnx"]


def test_a_transposed_head_has_the_same_numbers(source: Path) -> None:
    from arm_client.commands.model.new import write

    target = source.with_name("nhwc.bin")
    write(source, target, is_nhwc=True)
    given = {"images": np.random.default_rng(0).normal(size=(1, 3, 32, 32)).astype(np.float32)}
    run = [
        np.asarray(next(iter(onnx.reference.ReferenceEvaluator(onnx.load(file)).run(None, given))))
        for file in (source, target)
    ]
    np.testing.assert_array_equal(run[0].transpose(0, 2, 3, 1), run[1])


def test_what_a_program_would_not_expect_is_said(source: Path) -> None:
    answer = new(source, "--as", source.with_name("plain.bin"))
    assert "The input images looks like a picture and takes float32 numbers" in answer.output
    assert "--output nhwc" in answer.output


def test_a_compiled_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for name, data in (("yolo.bin", b"\x08\x01"), ("yolo.hbm", bytes(range(256)))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=f"hbrt model new FILE.onnx --as {name} --input nv12"):
            load([tmp_path / name])
    (tmp_path / "yolo.rknn").write_bytes(b"RKNN" + bytes(range(200)))
    with pytest.raises(ModelError, match=r"yolo\.rknn is not an ONNX model.*RKNNLite or rknn_init"):
        load([tmp_path / "yolo.rknn"])
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(bytes(range(256)))
    answer = new(broken, "--as", tmp_path / "other.bin")
    assert (answer.exit_code, "is not an ONNX model" in answer.output) == (2, True)
