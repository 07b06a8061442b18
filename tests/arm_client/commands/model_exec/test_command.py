"""hrt_model_exec on a board: what it shows, runs, measures and writes, and what it says of wrong use."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner, Result

from arm_client.client import Board
from arm_client.commands.model_exec import command
from arm_client.dnn.tensors.images import encode
from hbrt.dnn_types import hbDNNDataType
from tests.arm_client.dnn.exact import exact
from tests.each import each
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

DIGITS = Path(__file__).resolve().parents[4] / "samples" / "dnn"
INT8, FLOAT = DIGITS / "digits_int8.onnx", DIGITS / "digits_float.onnx"


def tool(*arguments: object) -> Result:
    """The tool in this process, on the board of the test."""
    return CliRunner().invoke(command.group, [str(argument) for argument in arguments])


def good(*arguments: object) -> str:
    """What it prints; it must succeed."""
    answer = tool(*arguments)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def parsed(file: Path, text: str, description: str = "") -> Path:
    """A model in ONNX's text form, and its YAML, as files."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 21]>\n{text}')
    file.write_bytes(model.SerializeToString())
    if description:
        file.with_suffix(".yaml").write_text(description)
    return file


def read(file: Path) -> Any:
    """A picture, BGR."""
    return cv2.imread(str(file))


@pytest.fixture
def digit(tmp_path: Path) -> Path:
    """A 1, as real numbers in a .npy file."""
    held = np.load(DIGITS / "digits_test.npz")
    assert held["labels"][0] == 1
    np.save(tmp_path / "digit.npy", (held["images"][0] / 16).astype(np.float32)[None, None])
    return tmp_path / "digit.npy"


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture of 60 x 40 with smooth colors."""
    rows, columns = np.mgrid[0:40, 0:60]
    cv2.imwrite(str(tmp_path / "photo.png"), np.dstack([rows * 6, columns * 4, 255 - rows * 3]).astype(np.uint8))
    return tmp_path / "photo.png"


def test_model_info_shows_a_block_as_users_know_it(dsp_board: Board) -> None:
    lines = good("model_info", f"--model_file={INT8}").splitlines()
    assert re.fullmatch(r"Load model to DDR cost \d+\.\d{3}ms\.", lines[0])
    assert lines[1:] == [
        "This model file has 1 model:",
        "[digits_int8]",
        "-" * 69,
        "[model name]: digits_int8",
        "",
        "input[0]:",
        "name: image",
        "input source: HB_DNN_INPUT_FROM_DDR",
        "valid shape: (1,1,8,8,)",
        "aligned shape: (1,1,8,16,)",
        "aligned byte size: 128",
        "tensor type: HB_DNN_TENSOR_TYPE_S8",
        "tensor layout: HB_DNN_LAYOUT_NCHW",
        "quanti type: SCALE",
        "stride: (128,128,16,1,)",
        "scale data: 0.00392157",
        "zero point data: -128",
        "",
        "output[0]:",
        "name: logits",
        "valid shape: (1,10,)",
        "aligned shape: (1,10,)",
        "aligned byte size: 10",
        "tensor type: HB_DNN_TENSOR_TYPE_S8",
        "tensor layout: HB_DNN_LAYOUT_NONE",
        "quanti type: SCALE",
        "stride: (10,1,)",
        "scale data: 0.150594",
        "zero point data: -24",
        "-" * 69,
    ]


def test_model_info_of_several_files(dsp_board: Board) -> None:
    text = good("model_info", "-model_file", f"{INT8},{FLOAT}")
    assert "This model file has 2 models:\n[digits_int8][digits_float]\n" in text
    assert text.count("[model name]: ") == 2
    document = json.loads(good("model_info", f"--model_file={INT8},{FLOAT}", "--model_name=digits_float", "--json"))
    (model,) = document["models"]
    assert (model["name"], model["inputs"][0]["tensor_type"]) == ("digits_float", "HB_DNN_TENSOR_TYPE_F32")
    assert model["outputs"][0]["valid_shape"] == [1, 10]
    assert [step["processor"] for step in model["steps"]] == ["BPU"]


def test_model_info_of_a_picture_says_where_it_comes_from(dsp_board: Board, tmp_path: Path) -> None:
    text = "g (float[1,3,32,64] a, float[1,3,32,64] b) => (float[1,3,32,64] y) { y = Add(a, b) }"
    description = (
        "{input_name: a;b, input_type_rt: nv12;nv12, input_type_train: bgr;bgr, input_layout_train: NCHW;NCHW,"
        " input_source: {a: pyramid, b: resizer}}"
    )
    shown = good("model_info", "--model_file", parsed(tmp_path / "two.onnx", text, description))
    assert re.findall("input source: (.*)", shown) == ["HB_DNN_INPUT_FROM_PYRAMID", "HB_DNN_INPUT_FROM_RESIZER"]
    assert shown.count("tensor type: HB_DNN_IMG_TYPE_NV12\n") == 2


@pytest.mark.parametrize("kind", ["npy", "valid.bin", "aligned.bin", "txt"])
def test_infer_takes_numbers_from_files(dsp_board: Board, digit: Path, tmp_path: Path, kind: str) -> None:
    stored = np.rint(np.load(digit) * 255 - 128).astype(np.int8)
    file = tmp_path / f"image.{kind}" if kind != "npy" else digit
    if kind == "valid.bin":
        file.write_bytes(stored.tobytes())
    elif kind == "aligned.bin":
        file.write_bytes(np.pad(stored, ((0, 0), (0, 0), (0, 0), (0, 8))).tobytes())
    elif kind == "txt":
        file.write_text(" ".join(map(str, stored.ravel().tolist())) + "\n12 13")
    shown = good(
        "infer", f"--model_file={INT8}", f"--input_file={file}", "--enable_cls_post_process", "--frame_count=2"
    )
    found = re.findall(r"class result: \[id\](\d+), \[score\](-?\d+\.\d{6})", shown)
    logits = exact(INT8, {"image": (stored + 128.0) / 255})
    assert [number for number, _ in found] == ["1", "1"]
    assert [float(score) for _, score in found] == pytest.approx([logits.max()] * 2, abs=1e-5)
    assert re.findall(r"-----Frame (\d) begin-----\nInfer time: \d+\.\d{3} ms\n", shown) == ["0", "1"]
    assert shown.count("  top 5: [id]") == 2


def test_infer_turns_a_photo_into_what_the_model_takes(dsp_board: Board, photo: Path, tmp_path: Path) -> None:
    text = "g (float[1,3,20,30] x) => (float[1,3,20,30] y) { y = Identity(x) }"
    model = parsed(
        tmp_path / "same.onnx", text, "{input_type_rt: nv12, input_type_train: bgr, input_layout_train: NCHW}"
    )
    shown = json.loads(
        good(
            "infer",
            "--model_file",
            model,
            "--input_file",
            photo,
            "--enable_dump=true",
            "--dump_path",
            tmp_path,
            "--json",
        )
    )
    given, result = (Path(file) for file in shown["frames"][0]["files"])
    small = cv2.resize(read(photo), (30, 20), interpolation=cv2.INTER_AREA)
    (expected,) = encode(np.asarray(small, np.uint8), hbDNNDataType.HB_DNN_IMG_TYPE_NV12, stride_multiple=16)
    assert given.read_bytes() == expected.tobytes()
    pixels = np.frombuffer(result.read_bytes(), np.float32).reshape(3, 20, 30).transpose(1, 2, 0)
    assert np.abs(pixels - small).mean() < 6  # chroma has a quarter of the pixels
    again = good("infer", "--model_file", model, "--input_file", given, "--enable_dump", "--dump_path", tmp_path / "2")
    assert "Dumped " in again
    assert (tmp_path / "2" / result.name).read_bytes() == result.read_bytes()


def test_a_dump_that_was_not_enabled_is_told(dsp_board: Board, digit: Path, tmp_path: Path) -> None:
    arguments = ("infer", "--model_file", INT8, "--input_file", digit, "--dump_path", tmp_path / "none")
    answer = tool(*arguments, "--hybrid_dequantize_process=true")
    assert answer.exit_code == 0
    assert (
        answer.stderr == "Nothing is written: --hybrid_dequantize_process sets the format, --enable_dump turns writing "
        "on.\n"
    )
    assert not (tmp_path / "none").exists()
    assert tool(*arguments, "--hybrid_dequantize_process=true", "--enable_dump").stderr == ""


def test_infer_writes_tensors(dsp_board: Board, digit: Path, tmp_path: Path) -> None:
    arguments = ("infer", "--model_file", INT8, "--input_file", digit, "--enable_dump", "--dump_path")
    good(*arguments, tmp_path / "bin")
    good(*arguments, tmp_path / "txt", "--dump_format=txt", "--dump_txt_axis=3")
    good(*arguments, tmp_path / "real", "--hybrid_dequantize_process=true", "--dump_precision=2", "--dump_txt_axis=0")
    stem = "digits_int8_frame0"
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == [
        f"{stem}_input_0_image.bin",
        f"{stem}_output_0_logits.bin",
    ]
    stored = np.rint(np.load(digit) * 255 - 128).astype(np.int8)[0, 0]
    padded = np.frombuffer((tmp_path / "bin" / f"{stem}_input_0_image.bin").read_bytes(), np.int8).reshape(8, 16)
    np.testing.assert_array_equal(padded[:, :8], stored)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "txt" / f"{stem}_input_0_image.txt"), padded)
    logits = exact(INT8, {"image": (stored[None, None] + 128.0) / 255})
    line = (tmp_path / "real" / f"{stem}_output_0_logits.txt").read_text()
    assert line == " ".join(f"{value:.2f}" for value in logits[0]) + "\n"


def test_infer_writes_what_every_node_takes_and_gives(dsp_board: Board, digit: Path, tmp_path: Path) -> None:
    shown = good(
        "infer", "--model_file", FLOAT, "--input_file", digit, "--dump_intermediate=2", "--dump_path", tmp_path
    )
    folder = tmp_path / "digits_float_layers"
    files = sorted(path.name for path in folder.iterdir())
    assert f"Dumped {len(files)} files of layers." in shown
    nodes = onnx.load(FLOAT).graph.node
    assert len(files) == 4 * len(nodes)
    for at, node in enumerate(nodes):
        for kind in ("input", "output"):
            assert {f"{at:04d}_{node.name}_{kind}_0.{end}" for end in ("bin", "txt")} <= set(files)
    for at in range(1, len(nodes)):
        before = next(folder.glob(f"{at - 1:04d}_*_output_0.bin")).read_bytes()
        assert next(folder.glob(f"{at:04d}_*_input_0.bin")).read_bytes() == before
    last = np.fromfile(next(folder.glob("0008_*_output_0.bin")), np.float32)
    bare = onnxruntime.InferenceSession(FLOAT).run(None, {"image": np.load(digit)})[0]
    np.testing.assert_allclose(last, bare[0], atol=1e-5)


def test_infer_writes_the_nodes_of_a_quantized_model_too(dsp_board: Board, digit: Path, tmp_path: Path) -> None:
    good("infer", "--model_file", INT8, "--input_file", digit, "--dump_intermediate=1", "--dump_path", tmp_path)
    (logits,) = (tmp_path / "digits_int8_layers").glob("*_logits_DequantizeLinear_output_0.bin")
    np.testing.assert_allclose(
        np.fromfile(logits, np.float32),
        exact(INT8, {"image": np.load(digit)})[0],
        atol=0.11,  # one step of its scale
    )


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The float model with one weight of its second convolution changed."""
    model = onnx.load(FLOAT)
    (weight,) = (one for one in model.graph.initializer if one.name == "conv2_w")
    values = onnx.numpy_helper.to_array(weight).copy()
    values[3, 0, 1, 1] += 4
    weight.CopyFrom(onnx.numpy_helper.from_array(values, "conv2_w"))
    onnx.save(model, tmp_path / "changed.onnx")
    return tmp_path / "changed.onnx"


@pytest.mark.parametrize("model", [INT8, FLOAT])
def test_compare_names_the_first_layer_that_differs(dsp_board: Board, changed: Path, digit: Path, model: Path) -> None:
    given = ("compare", "--input_file", digit, "--json")
    assert json.loads(good(*given, "--model_file", model, "--against", FLOAT))["first"] is None
    answer = tool(*given, "--model_file", changed, "--against", model)
    assert answer.exit_code == 1
    found = json.loads(answer.stdout)
    first = found["first"]
    if model is FLOAT:
        assert (first["node"], first["value"], first["where"][:2]) == ("conv2", "c2", [0, 3])
        assert [one["differs"] for one in found["layers"]][:3] == [False, False, True]
        assert (
            tool(*given[:-1], "--model_file", changed, "--against", model)
            .stdout.splitlines()[-1]
            .startswith("The first layer that differs is Conv conv2: the cosine of its result c2 is 0.")
        )
    else:  # the reference has no value before its activation
        assert (first["node"], first["value"]) == ("relu2", "r2")


def test_compare_takes_values_and_refuses_what_is_no_reference(dsp_board: Board, digit: Path, tmp_path: Path) -> None:
    given = ("compare", FLOAT, "--input_file", digit, "--against")
    logits = onnxruntime.InferenceSession(FLOAT).run(None, {"image": np.load(digit)})[0]
    np.savez(tmp_path / "good.npz", logits=logits, another=np.zeros(3))
    assert good(*given, tmp_path / "good.npz").splitlines()[-1] == "None of 1 layers differs."
    np.savez(tmp_path / "shape.npz", logits=logits[:, :9])
    assert "has the shape [1, 10] here, [1, 9] in the reference" in tool(*given, tmp_path / "shape.npz").output
    np.savez(tmp_path / "other.npz", nothing=logits)
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    other = parsed(tmp_path / "other.onnx", "g (float[1] x) => (float[1] y) { y = Relu(x) }")
    for file, why in (
        (tmp_path / "other.npz", "has no value with the name of a layer's result"),
        (tmp_path / "bad.npz", "is not an archive of arrays"),
        (digit, "a reference is a model, .onnx, or its values by name, .npz"),
        (other, "takes the input 'x', but the model has image"),
    ):
        answer = tool(*given, file)
        assert (answer.exit_code, why in answer.output) == (2, True), answer.output


def test_perf_sweeps_threads_rates_and_models(dsp_board: Board) -> None:
    given = ("perf", "--model_file", f"{INT8},{FLOAT}", "--json", "--frame_count", 20)
    points = json.loads(good(*given, "--all_models", "--sweep_threads=1,3"))["points"]
    assert [(one["model_name"], one["thread_num"]) for one in points] == [
        ("digits_int8", 1), ("digits_float", 1), ("digits_int8", 3), ("digits_float", 3)
    ]  # fmt: skip
    assert all(1 <= one["frame_count"] <= 20 for one in points)
    assert max(one["frame_count"] for one in points[:2]) == 20
    points = json.loads(good(*given, "--model_name=digits_int8", "--sweep_rates=40,1000000"))["points"]
    assert points[0]["fps"] < 45
    late = points[1]  # each frame waits for those before it: the last one as long as all take
    assert late["maximum_ms"] == pytest.approx(late["run_time_ms"], rel=0.5)
    spread = json.loads(good(*given, "--model_name=digits_int8", "--until_spread=1e9"))
    assert (spread["rounds"], spread["frame_count"]) == (5, 100)


@each(
    "flag, why",
    [
        ("--sweep_threads=0", "write integers above 0, up to 32"),
        ("--sweep_rates=fast", "write numbers above 0"),
        ("--sweep_threads=2 --profile_path=.", "--profile_path works with a single measurement"),
        ("--until_spread=2 --perf_time=1", "leave out --perf_time"),
    ],
)
def test_perf_refuses_loads_that_are_none(dsp_board: Board, flag: str, why: str) -> None:
    answer = tool("perf", "--model_file", FLOAT, *flag.split())
    assert (answer.exit_code, why in answer.output) == (2, True), answer.output


def test_infer_takes_regions_of_photos(dsp_board: Board, photo: Path, tmp_path: Path) -> None:
    text = "g (float[1,3,10,12] x) => (float[1,3] y) { m = ReduceMean <keepdims = 0> (x, a) y = Identity(m) }"
    text = text.replace("{", "<int64[2] a = {2, 3}> {", 1)
    model = parsed(
        tmp_path / "mean.onnx",
        text,
        "{input_type_rt: nv12, input_type_train: bgr, input_layout_train: NCHW, input_source: resizer}",
    )
    rois = "0,0,9,9;30,20,49,39"
    assert "Frame count   is: 3\n" in good(
        "perf", "--model_file", model, "--roi_infer", f"--roi={rois}", "--frame_count=3"
    )
    arguments = ("--roi_infer=true", f"--roi={rois}", f"--input_file={photo},{photo}", "--enable_dump")
    shown = json.loads(good("infer", "--model_file", model, *arguments, "--dump_path", tmp_path, "--json"))
    means = np.fromfile(shown["frames"][0]["files"][-1], np.float32).reshape(2, 3)
    picture = read(photo)
    for mean, (left, top, right, bottom) in zip(means, ((0, 0, 9, 9), (30, 20, 49, 39)), strict=True):
        region = picture[top : bottom + 1, left : right + 1].reshape(-1, 3)
        np.testing.assert_allclose(mean, region.mean(0), atol=4)


@pytest.mark.parametrize("kind", ["nv12", "gray", "rgb"])
def test_every_element_of_a_batch_gets_the_picture(dsp_board: Board, photo: Path, tmp_path: Path, kind: str) -> None:
    channels, train = (1, "gray") if kind == "gray" else (3, "rgb")
    text = f"g (float[3,{channels},20,30] x) => (float[3,{channels}] y) "
    text += "<int64[2] a = {2, 3}> { y = ReduceMean <keepdims = 0> (x, a) }"
    model = parsed(
        tmp_path / "batch.onnx",
        text,
        f"{{input_type_rt: {kind}, input_type_train: {train}, input_layout_train: NCHW}}",
    )
    dump = ("--enable_dump", "--dump_path", tmp_path, "--json")
    shown = json.loads(good("infer", "--model_file", model, "--input_file", photo, *dump))
    means = np.fromfile(shown["frames"][0]["files"][-1], np.float32).reshape(3, channels)
    np.testing.assert_array_equal(means, means[[0, 0, 0]])
    picture = cv2.cvtColor(read(photo), cv2.COLOR_BGR2GRAY if channels == 1 else cv2.COLOR_BGR2RGB)
    np.testing.assert_allclose(means[0], picture.reshape(-1, channels).mean(0), atol=4)


def test_regions_beside_a_tensor_of_a_model_with_a_batch(dsp_board: Board, photo: Path, tmp_path: Path) -> None:
    text = (
        "g (float[2,3,10,12] x, float[2,4] c) => (float[2,7] y) "
        "<int64[2] a = {2, 3}> { m = ReduceMean <keepdims = 0> (x, a) y = Concat <axis = 1> (c, m) }"
    )
    model = parsed(
        tmp_path / "beside.onnx",
        text,
        "{input_name: x;c, input_type_rt: nv12;featuremap, input_type_train: bgr;featuremap, "
        "input_source: {x: resizer, c: ddr}}",
    )
    regions = ("--roi_infer", "--roi=0,0,9,9;30,20,49,39;0,0,9,9")
    assert "Frame count   is: 3\n" in good("perf", "--model_file", model, *regions, "--frame_count=3")

    files = []
    for element in range(3):
        np.arange(element, element + 4, dtype=np.float32).tofile(tmp_path / f"{element}.bin")
        files += [photo, tmp_path / f"{element}.bin"]
    dump = ("--enable_dump", "--dump_path", tmp_path, "--json")
    shown = json.loads(good("infer", "--model_file", model, *regions, "--input_file", ",".join(map(str, files)), *dump))
    rows = np.fromfile(shown["frames"][0]["files"][-1], np.float32).reshape(4, 7)
    np.testing.assert_array_equal(rows[:3, :4], np.arange(4) + np.arange(3)[:, None])
    np.testing.assert_array_equal(rows[0, 4:], rows[2, 4:])


def test_infer_of_a_model_that_takes_nothing(dsp_board: Board, tmp_path: Path) -> None:
    text = "g () => (float[2] y) { y = Constant <value = float[2] {3.0, 4.0}> () }"
    shown = good("infer", "--model_file", parsed(tmp_path / "none.onnx", text), "--enable_cls_post_process")
    assert "class result: [id]1, [score]4.000000" in shown


def test_perf_sums_up_all_frames(dsp_board: Board) -> None:
    shown = good("perf", f"--model_file={FLOAT}", "--frame_count=25", "--thread_num=3", "--statistic_cycle=10")
    counts = re.findall(r"^Frame count: (\d+),  Thread Average: ", shown, re.MULTILINE)
    assert counts == ["10", "20", "25"]
    block = shown[shown.index("Running condition:") :]
    assert "  Thread number is: 3\n  Frame count   is: 25\n  Program run time: " in block
    assert re.search(r"  Frame      rate       is: \d+\.\d{3} FPS\nLatency percentiles:\n  p50 is: ", block)


def test_perf_in_one_document_with_its_profile(dsp_board: Board, tmp_path: Path) -> None:
    document = json.loads(
        good("perf", "--model_file", INT8, "--frame_count=20", "--core_id=1", "--profile_path", tmp_path, "--json")
    )
    assert (document["model_name"], document["frame_count"], document["core_id"]) == ("digits_int8", 20, 1)
    assert document["minimum_ms"] <= document["percentiles_ms"]["p50"] <= document["maximum_ms"]
    assert document["model_latency"]["segment_0"]["avg_time"] < document["average_ms"]
    first, second = map(json.loads, (tmp_path / "profiler.log").read_text().split("***"))
    assert first["perf_result"] == {"FPS": document["fps"], "average_latency": document["average_ms"]}
    assert first["running_condition"]["thread_num"] == 1
    modeled = document["modeled"]
    assert (modeled["board"], 0 < modeled["low_ms"] < modeled["run_ms"] < modeled["high_ms"]) == ("j5", True)
    assert second["model_latency"] == document["model_latency"]
    with (tmp_path / "profiler.csv").open() as file:
        assert [(row["name"], row["count"]) for row in csv.DictReader(file)] == [("segment_0", "20")]


def test_perf_runs_for_a_time(dsp_board: Board) -> None:
    document = json.loads(
        good("perf", "--model_file", FLOAT, "--perf_time_in_seconds=1", "--frame_count=1", "--thread_num=2", "--json")
    )
    assert document["run_time_ms"] >= 1000
    assert document["frame_count"] > 2


def test_perf_makes_up_numbers_for_open_sizes(dsp_board: Board, tmp_path: Path) -> None:
    text = "g (float[n,4] x, int64[1] i) => (float[m,4] y) { y = Gather(x, i) }"
    model = parsed(tmp_path / "open.onnx", text)
    answer = tool("perf", "--model_file", model)
    assert answer.exit_code == 2
    assert "x has the shape [-1, 4]" in answer.output
    document = json.loads(good("perf", "--model_file", model, "--input_valid_shape=7,4;", "--frame_count=5", "--json"))
    assert document["frame_count"] == 5


@each("arguments, code, sentence", [
        ("infer", 2, "Missing option '--model_file'"),
        ("infer --model_file={int8}", 2, "Give --input_file"),
        ("infer --model_file=none.onnx --input_file=x.npy", 2, "Cannot read the model file none.onnx"),
        ("infer --model_file={int8} --input_file=none.npy", 2, "No such file: none.npy"),
        ("infer --model_file={int8} --input_file=a.npy,b.npy", 2, "takes 1 inputs (image); --input_file has 2."),
        ("infer --model_file={int8} --input_file=a.gif", 2, "a.gif: the name must end with one of .jpeg, .jpg, .png, "),
        ("infer --model_file={int8} --input_file=a.png", 2, "a.png is a picture; image takes HB_DNN_TENSOR_TYPE_S8"),
        ("infer --model_file={int8} --input_file=a.png", 2, "'input_parameters: {input_type_rt: rgb, "),
        ("infer --model_file={int8} --input_file={short}", 2, "has 63 bytes; image takes 64 (int8 of the shape"),
        ("infer --model_file={int8} --input_file={few}", 2, "holds 3 numbers; image takes 64"),
        ("infer --model_file={int8} --input_file={words}", 2, "is not made of numbers of int8"),
        ("infer --model_file={int8} --input_file={objects}", 2, "objects.npy is not an array as numpy.save writes it"),
        ("infer --model_file={int8} --input_file={several}", 2, "several.npy is not an array as numpy.save"),
        ("infer --model_file={int8} --input_file={torn}", 2, "torn.npy is not an array as numpy.save writes it"),
        ("infer --model_file={int8} --input_file={row}", 2, "'image' has the shape [1, 1, 8, 8], not [63]."),
        ("infer --model_file={int8} --input_file={digit} --dump_txt_axis=7", 2, "--dump_txt_axis is 7;"),
        ("infer --model_file={int8} --input_file={digit} --roi=1,2,3,4", 2, "--roi is for models with resizer inputs"),
        ("infer --model_file={int8} --input_file={digit} --roi_infer", 2, "no resizer input, leave out --roi_infer"),
        ("infer --model_file={int8},{float} --input_file={digit}", 2, "name one with --model_name: digits_int8, "),
        ("perf --model_file={int8} --model_name=digits", 2, "Unknown model 'digits'; known are digits_int8."),
        ("perf --model_file={int8} --core_id=3", 2, "3 is not in the range 0<=x<=2"),
        ("perf --model_file={int8} --thread_num=33", 2, "33 is not in the range 1<=x<=32"),
        ("perf --model_file={int8} --input_valid_shape=1;2", 2, "--input_valid_shape has 2 shapes, the model 1 inputs"),
        ("perf --model_file={int8} other.onnx", 2, "unexpected extra argument (other.onnx)"),
        ("perf --model_file={int8} --frames=3", 2, "No such option"),
    ])  # fmt: skip
def test_wrong_use_is_a_sentence(
    dsp_board: Board, digit: Path, tmp_path: Path, arguments: str, code: int, sentence: str
) -> None:
    (tmp_path / "short.bin").write_bytes(bytes(63))
    (tmp_path / "few.txt").write_text("1, 2 3")
    (tmp_path / "words.txt").write_text("one two")
    np.save(tmp_path / "objects.npy", np.array([None], object), allow_pickle=True)
    np.save(tmp_path / "row.npy", np.zeros(63))
    with (tmp_path / "several.npy").open("wb") as file:
        np.savez(file, a=np.zeros(1))
    (tmp_path / "torn.npy").write_bytes((tmp_path / "row.npy").read_bytes()[:200])
    arrays = {name: tmp_path / f"{name}.npy" for name in ("objects", "row", "several", "torn")}
    named: dict[str, Any] = {**arrays, "int8": INT8, "float": FLOAT, "digit": digit}
    named |= {"short": tmp_path / "short.bin", "few": tmp_path / "few.txt", "words": tmp_path / "words.txt"}
    answer = tool(*arguments.format(**named).split())
    assert (answer.exit_code, answer.stdout) == (code, ""), answer.output
    assert sentence in answer.stderr


def test_a_picture_that_is_none_is_wrong_use_as_other_files_are(dsp_board: Board, tmp_path: Path) -> None:
    text = "g (float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Neg(x) }"
    model = parsed(
        tmp_path / "net.onnx", text, "{input_type_rt: nv12, input_type_train: bgr, input_layout_train: NCHW}"
    )
    (tmp_path / "fake.jpg").write_text("no picture")
    answer = tool("infer", "--model_file", model, "--input_file", str(tmp_path / "fake.jpg"))
    assert answer.exit_code == 2
    assert "fake.jpg is not a picture that OpenCV can read, for x." in answer.stderr


def test_a_run_that_takes_too_long_is_given_up(dsp_board: Board, tmp_path: Path) -> None:
    text = (
        "g (float[300,300] x, int64 n) => (float[300,300] y) { go = Constant <value = bool {1}> ()"
        " y = Loop (n, go, x) <body = step (int64 i, bool c, float[300,300] a) => (bool d, float[300,300] b)"
        " { d = Identity(c) b = MatMul(a, a) }> }"
    )
    (tmp_path / "n.txt").write_text("1000000")
    np.save(tmp_path / "x.npy", np.zeros((300, 300), np.float32))
    files = f"{tmp_path / 'x.npy'},{tmp_path / 'n.txt'}"
    answer = tool(
        "perf", "--model_file", parsed(tmp_path / "long.onnx", text), "--input_file", files, "--task_timeout=20",
        "--thread_num=2",
    )  # fmt: skip
    assert answer.exit_code == 124
    assert "did not finish within 20 ms" in answer.stderr


def test_it_starts_a_private_board_and_leaves_nothing(shell: Shell) -> None:
    code = "from arm_client.commands.model_exec.command import main; main()"
    answer = shell.python("-c", code, "perf", f"--model_file={FLOAT}", "--frame_count=3")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "Frame count   is: 3\n" in answer.stdout
    assert list(shell.home.iterdir()) == []
    version = shell.python("-c", code, "--version")
    assert re.fullmatch(r"\d+\.\d+\.\d+ \(hbrt .* emulator\)\n", version.stdout)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "HBRT_CACHE",
            "x",
            "Error: Invalid HBRT_CACHE 'x': must be coherent, strict or evicting:SEED, as in evicting:7.\n",
        ),
        (
            "HBRT_CORES",
            "99",
            "Invalid HBRT_CORES 99: must be 0 to 8. It sets: DSP cores of a board that is started without --cores",
        ),
    ],
)
def test_a_board_that_cannot_be_is_wrong_usage(shell: Shell, name: str, value: str, sentence: str) -> None:
    shell.environment[name] = value
    code = "from arm_client.commands.model_exec.command import main; main()"
    answer = shell.python("-c", code, "perf", f"--model_file={FLOAT}", "--frame_count=3")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert sentence in answer.stderr.splitlines(keepends=True)[-1]
    assert "memory" not in answer.stderr


def test_a_step_on_the_dsp_is_shown_and_measured(shell: Shell, tmp_path: Path) -> None:
    model = parsed(
        tmp_path / "soft.onnx", "g (float[1,9] x) => (float[1,9] y) { a = Exp(x) b = Softmax(a) y = Neg(b) }"
    )
    shell.environment["HB_DNN_ENABLE_DSP"] = "1"
    code = "from arm_client.commands.model_exec.command import main; main()"
    shell.environment["HBRT_AUTOSTART"] = "0"
    told = shell.python("-c", code, "model_info", f"--model_file={model}")  # it runs nothing: it needs no board
    assert (told.returncode, told.stderr) == (0, "")
    del shell.environment["HBRT_AUTOSTART"]
    steps = told.stdout.partition("\nsteps:\n")[2].splitlines()
    assert [step.partition(": ")[2] for step in steps[:3]] == ["BPU, 1 Exp", "DSP, 1 Softmax", "BPU, 1 Neg"]
    run = shell.python("-c", code, "perf", f"--model_file={model}", "--frame_count=3", "--profile_path=.", "--json")
    assert (run.returncode, run.stderr) == (0, "")
    assert list(json.loads(run.stdout)["processor_latency"]) == [
        "BPU_inference_time_cost",
        "DSP_inference_time_cost",
    ]
    with (tmp_path / "profiler.csv").open() as file:
        assert [row["processor"] for row in csv.DictReader(file)] == ["BPU", "DSP", "BPU"]


def test_ctrl_c_ends_a_measurement_and_its_board(shell: Shell) -> None:
    code = "from arm_client.commands.model_exec.command import main; main()"
    process = shell.start("-u", "-c", code, "perf", f"--model_file={FLOAT}", "--perf_time=5", "--thread_num=2")
    assert process.stdout is not None
    while not process.stdout.readline().startswith("Frame count: "):
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert list(shell.home.iterdir()) == []


def test_a_bar_on_the_terminal_leaves_the_output_alone(shell: Shell) -> None:
    terminal, stderr = os.openpty()
    code = "from arm_client.commands.model_exec.command import main; main()"
    command = [sys.executable, "-c", code, "perf", f"--model_file={FLOAT}", "--frame_count=400"]
    environment = {**shell.environment, "TERM": "xterm", "COLUMNS": "100"}
    with ThreadPoolExecutor(1) as pool:  # it is read meanwhile: the bar of a slow run fills a terminal's buffer
        shown = pool.submit(all_of, terminal)
        try:
            run = subprocess.run(
                command,
                cwd=shell.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                check=True,
                timeout=PATIENCE_S,
            )
        finally:
            os.close(stderr)
    assert re.findall(r"^Frame count: (\d+),", run.stdout, re.MULTILINE) == ["200", "400"]
    assert b"frames" in shown.result()
    assert b"Frame count" not in shown.result()


def all_of(terminal: int) -> bytes:
    """What is written to a terminal until its other side is closed."""
    shown = b""
    with contextlib.suppress(OSError):  # EIO: it is closed
        while chunk := os.read(terminal, 1 << 16):
            shown += chunk
    os.close(terminal)
    return shown


def test_a_boundary_that_is_kept_for_its_zero_point_is_said(dsp_board: Board, tmp_path: Path) -> None:
    file = parsed(
        tmp_path / "wide.onnx",
        "g (float[2,3] x) => (float[2,3] y) <float s = {0.5}, uint16 z = {32768}>"
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    )
    answer = tool("model_info", f"--model_file={file}")
    why = "The input 'x' keeps real numbers: the zero point 32768 of its QuantizeLinear (uint16) is outside"
    assert f"note: {why}" in answer.stdout
    assert f"[DNN] WARNING: {file}: {why}" in answer.stderr
    assert why in json.loads(good("model_info", f"--model_file={file}", "--json"))["models"][0]["notes"][0]
