"""The YAML next to a model: the compiler's keys in its sections or flat, and a message for what cannot be meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import example, given, strategies as st

from arm_client.dnn.errors import ModelError
from arm_client.dnn.loading.description import Description
from arm_client.dnn.loading.description_file import INPUT_KEYS, beside, parse, read
from hbrt.dnn_types import hbDNNTensorLayout
from hbrt.status import Status
from tests.each import each

NHWC, NCHW, _ = hbDNNTensorLayout
COMPILER = """
model_parameters:
  onnx_model: 'mobilenetv1.onnx'
  march: "bayes"
  output_model_file_prefix: 'mobilenetv1_224x224_nv12'
  working_dir: './out'
input_parameters:
  input_name: "data"
  input_type_rt: 'nv12'
  input_layout_rt: ''
  input_type_train: 'bgr'
  input_layout_train: 'NCHW'
  input_shape: '1x3x224x224'
  input_batch: 2
  norm_type: 'data_mean_and_scale'
  mean_value: '103.94 116.78 123.68'
  scale_value: 0.017
calibration_parameters:
  cal_data_dir: './calibration'
  preprocess_on: False
compiler_parameters:
  compile_mode: 'latency'
  input_source: {"data": "resizer"}
  optimize_level: 'O3'
"""


def test_the_compilers_own_file() -> None:
    found = parse(COMPILER, ["data"])
    assert (found.name, found.batch, found.prefers_shift) == ("mobilenetv1_224x224_nv12", 2, False)
    data = found.inputs["data"]
    assert (data.type_rt, data.type_train, data.source, data.is_image) == ("nv12", "bgr", "resizer", True)
    assert (data.layout_rt, data.layout_train, data.shape) == (None, NCHW, (1, 3, 224, 224))
    np.testing.assert_array_equal(data.mean, np.array([103.94, 116.78, 123.68], np.float32))
    np.testing.assert_array_equal(data.scale, np.array([0.017], np.float32))
    assert not data.video_range


def test_several_inputs_in_the_order_of_their_names() -> None:
    found = parse(
        """
        input_name: b;a;
        input_type_rt: rgb;featuremap
        input_layout_rt: NHWC;NCHW;
        input_layout_train: nchw;NHWC
        norm_type: data_mean;no_preprocess
        mean_value: 1 2 3;None
        input_source: "{'_default_value': 'ddr'}"
        quanti_type: SHIFT
        """,
        ["a", "b"],
    )
    a, b = found.inputs["a"], found.inputs["b"]
    assert (a.type_rt, a.layout_rt, a.layout_train, a.mean.tolist()) == ("featuremap", NCHW, NHWC, [0.0])
    assert (b.type_rt, b.type_train, b.layout_rt, b.layout_train) == ("rgb", "rgb", NHWC, NCHW)
    assert b.mean.tolist() == [1.0, 2.0, 3.0]
    assert found.prefers_shift


def test_values_may_be_yaml_lists_and_the_batch_flat() -> None:
    found = parse("input_name: [a, b]\ninput_type_rt: [gray, rgb]\nmean_value: [128, null]\nbatch: 4", ["a", "b"])
    assert (found.inputs["a"].mean.tolist(), found.inputs["b"].mean.tolist(), found.batch) == ([128.0], [0.0], 4)


def test_a_single_input_needs_no_name() -> None:
    found = parse("input_type_rt: gray\nscale_value: 0.00392156862745098,", ["only"])
    assert found.inputs["only"].scale.tolist() == [np.float32(1 / 255)]


def test_standard_deviations_are_divided_by() -> None:
    found = parse("input_type_rt: rgb\nnorm_type: data_mean_and_std\nmean_value: 1\nstd_value: 2 4 8", ["x"])
    assert found.inputs["x"].scale.tolist() == [0.5, 0.25, 0.125]


def test_norm_type_decides_which_values_count() -> None:
    found = parse("input_type_rt: rgb\nnorm_type: data_scale\nmean_value: 7\nscale_value: 2", ["x"])
    assert (found.inputs["x"].mean.tolist(), found.inputs["x"].scale.tolist()) == ([0.0], [2.0])


def test_video_range() -> None:
    text = "input_type_rt: nv12\ninput_type_train: {}\ninput_space_and_range: bt601_video"
    assert parse(text.format("rgb"), ["x"]).inputs["x"].video_range
    assert not parse(text.format("rgb").replace("bt601_video", "regular"), ["x"]).inputs["x"].video_range


@pytest.mark.parametrize("section", ["", "input_parameters:\n  "])
def test_the_emulators_own_key_stands_at_the_top_or_among_the_inputs(section: str) -> None:
    assert parse(f"{section}quanti_type: shift", ["x"]).prefers_shift


@each("text", ["", "# nothing", "model_parameters:\n  march: bayes", "input_parameters:"])
def test_nothing_said(text: str) -> None:
    assert parse(text, ["x", "y"]) == Description()


@each(
    "text, says",
    [
        ("a: [", "is not YAML"),
        ("inputs: [image]", "inputs is not a key of input_parameters; known: input_"),
        ("- 1", "contains a list"),
        ("input_parameters: 3", "input_parameters is 3"),
        ("input_type_rt: rgba", "input_type_rt is 'rgba'; give one of nv12, yuv444"),
        ("input_type_rt: nv12", "input_type_train"),
        ("input_type_rt: gray\ninput_type_train: rgb", "gray goes with gray"),
        ("input_type_rt: rgb;rgb", "2 values for 1 inputs"),
        ("input_name: q\ninput_type_rt: rgb", "input_name is 'q'"),
        ("input_name: x;x", "each input once"),
        ("input_layout_rt: NCWH", "input_layout_rt is 'NCWH'; give one of nhwc, nchw"),
        ("input_typ_rt: rgb", "known: input_type_rt."),
        ("input_parameters:\n  mean_val: 3", "known: mean_value."),
        ("input_parameters:\n  color: 3", "known: input_name, "),
        ("input_type_rt: rgb\nmean_value: 1 2", "mean_value is '1 2'; give one finite number, or 3"),
        ("input_type_rt: rgb\nmean_value: one", "mean_value is 'one'"),
        ("input_type_rt: rgb\nscale_value: .inf", "finite"),
        ("input_type_rt: rgb\nnorm_type: data_mean", "requires mean_value"),
        ("input_type_rt: rgb\nstd_value: 0", "other than 0"),
        ("input_type_rt: rgb\nstd_value: 1\nscale_value: 1", "give only one"),
        ("norm_type: data_mean\nmean_value: 3", "only images are normalized"),
        ("input_type_rt: rgb\nnorm_type: minus", "norm_type is 'minus'"),
        ("input_shape: 1x-1x3", "input_shape is '1x-1x3'"),
        ("input_shape: 1x3.5", "input_shape"),
        ("input_batch: 0", "1..4096"),
        ("input_batch: 1;2", "1..4096"),
        ("input_batch: two", "1..4096"),
        ("input_type_rt: rgb\ninput_source: {x: pyramid}", "delivers nv12 or gray"),
        ("input_source: {y: ddr}", "inputs of the model: x"),
        ("input_source: {x: camera}", "ddr, pyramid, resizer"),
        ("input_source: [1]", "a mapping"),
        ("input_type_rt: {a: b}", "separated by ';'"),
        ("quanti_type: both", "scale, shift"),
        ("output_model_file_prefix: [a]", "a name"),
        (
            "input_type_rt: nv12\ninput_type_train: yuv444\ninput_space_and_range: bt601_video",
            "on yuv444. Remove",
        ),
        (
            "input_type_rt: yuv444\ninput_type_train: rgb\ninput_space_and_range: bt601_video",
            "it is yuv444 for",
        ),
        ("input_space_and_range: bt709\ninput_type_rt: nv12\ninput_type_train: rgb", "regular, bt601_video"),
    ],
)
def test_what_cannot_be_meant(text: str, says: str) -> None:
    with pytest.raises(ModelError) as error:
        parse(text, ["x"], "m.yaml")
    assert says in str(error.value)
    assert str(error.value).startswith("m.yaml")
    assert error.value.status == Status.HB_DNN_INCOMPATIBLE_MODEL


def test_several_inputs_need_their_names() -> None:
    with pytest.raises(ModelError, match="inputs a, b; list them in input_name"):
        parse("input_type_rt: rgb;rgb", ["a", "b"])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["rgb", "nv12"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3),
    max_leaves=5,
)


@example({"norm_type": "data_mean", "mean_value": 3.5e38})  # infinite as a float32
@example({"norm_type": "data_std", "std_value": 1e-45})
@given(st.dictionaries(st.sampled_from([*INPUT_KEYS, "input_source", "input_parameters", "quanti_type"]), _VALUES))
def test_any_value_is_taken_or_refused(values: dict[str, object]) -> None:
    sentence = "the description: taken"
    try:
        parse(yaml.safe_dump(values, allow_unicode=True), ["x"])
    except ModelError as error:
        sentence = str(error)
    assert sentence.startswith("the description")


def test_files(tmp_path: Path) -> None:
    model = tmp_path / "net.v2.onnx"
    assert beside(model) is None
    (tmp_path / "net.v2.yml").write_text("batch: 2")
    found = beside(model)
    assert found == tmp_path / "net.v2.yml"
    assert read(found, ["x"]).batch == 2
    (tmp_path / "net.v2.yaml").write_bytes(b"\xff\xfe\x00")
    broken = beside(model)
    assert broken == tmp_path / "net.v2.yaml"
    with pytest.raises(ModelError, match="not YAML"):
        read(broken, ["x"])
    broken.write_text("#" * (1 << 20) + "\n")
    with pytest.raises(ModelError, match="1048576 bytes"):
        read(broken, ["x"])
    with pytest.raises(ModelError, match="Cannot read") as error:
        read(tmp_path / "gone.yaml", ["x"])
    assert error.value.status == Status.HB_DNN_CAN_NOT_OPEN_FILE


def test_the_example_of_the_page() -> None:
    page = (Path(__file__).parents[4] / "docs" / "dnn-tensors.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n")[2].partition("```")[0]
    data = parse(text, ["data"]).inputs["data"]
    assert (data.type_rt, data.type_train, data.layout_train, data.source) == ("nv12", "bgr", NCHW, "pyramid")
    assert data.mean.size == 3
    for key in INPUT_KEYS:
        assert f"`{key}`" in page
