"""The toolkit as programs use it: convert, simulate, export, run."""

import json
import os
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from rknn.api import RKNN
from rknn.api.custom_op import get_node_attr
from rknn_api.commands.benchmark import command as benchmark
from rknn_api.container import Container
from rknn_api.toolkit import hybrid, quantize
from rknn_api.toolkit.accuracy import error_between
from rknnlite.api import RKNNLite
from tests.limits import PATIENCE_S
from tests.nursery import run_program
from tests.rknn_api import nets

F = np.float32


@pytest.fixture
def rknn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RKNN:
    """An object in an empty folder; its models run in this process, without a board."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HBRT_BPU", "inline")
    return RKNN()


def build(rknn: RKNN, model: Path, dataset: Path | None, **how: Any) -> Path:
    """Converts a model and exports it."""
    batch = how.pop("rknn_batch_size", None)
    rknn.config(**{"target_platform": "rk3588", **how})
    assert rknn.load_onnx(model) == 0, rknn.last_error
    assert rknn.build(do_quantization=dataset is not None, dataset=dataset, rknn_batch_size=batch) == 0, rknn.last_error
    assert rknn.export_rknn("net.rknn") == 0, rknn.last_error
    return Path("net.rknn").resolve()


def test_the_digits_are_known_and_are_onnxruntimes_bit_for_bit(rknn: RKNN, tmp_path: Path) -> None:
    images, labels = nets.digits()
    dataset = nets.arrays(tmp_path, *images[:20].transpose(0, 3, 1, 2)[:, None])
    path = build(rknn, nets.DIGITS, dataset, mean_values=[[0]], std_values=[[16]])
    assert rknn.init_runtime() == 0
    found = [rknn.inference([image[None]]) for image in images]
    logits = np.concatenate([one[0] for one in found if one])
    assert (logits.argmax(1) == labels).mean() > 0.97
    bare = nets.bare(path)
    wanted = np.concatenate([bare.run(None, {"image": image.transpose(2, 0, 1)[None]})[0] for image in images])
    np.testing.assert_array_equal(logits, wanted)
    info = Container.read(path).metadata.inputs[0]
    assert (info.stored, info.zero_point, info.std) == ("int8", -128, (16.0,))
    assert info.scale == pytest.approx(1 / 255)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"quantized_method": "layer", "quantized_algorithm": "kl_divergence"},
        {"target_platform": "rk3562", "quantized_dtype": "w8a16", "quantized_algorithm": "mmse"},
        {"optimization_level": 0, "quant_img_RGB2BGR": True},
        None,
    ],
)
def test_a_small_mobilenet_is_onnxruntimes_bit_for_bit(rknn: RKNN, tmp_path: Path, how: dict[str, Any] | None) -> None:
    dataset = nets.pictures(tmp_path) if how is not None else None
    normal = {"mean_values": [[103.94, 116.78, 123.68]], "std_values": [[58.82, 58.82, 58.82]]}
    path = build(rknn, nets.mobilenet(tmp_path), dataset, **normal, **(how or {}))
    image = np.random.default_rng(5).integers(0, 256, (1, nets.SIDE, nets.SIDE, 3), np.uint8)
    (wanted,) = nets.bare(path).run(None, {"data": image.transpose(0, 3, 1, 2).astype(F)})
    assert rknn.init_runtime() == 0
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0
    assert lite.init_runtime() == 0
    for found in (
        rknn.inference([image], data_type="uint8"),
        rknn.inference([image.transpose(0, 3, 1, 2)], data_format="nchw"),
        lite.inference([image]),
    ):
        assert found is not None
        np.testing.assert_array_equal(found[0], wanted)
    ops = [node.op_type for node in nets.graph_of(path).graph.node]
    assert ("BatchNormalization" in ops) == bool(how and how.get("optimization_level") == 0)
    assert ("QuantizeLinear" in ops) == (how is not None)


@pytest.mark.parametrize("stored", ["int8", "float16"])
@pytest.mark.parametrize("shape", ["residual", "branches", "upward", "dense"])
def test_int8_is_an_independent_evaluation_and_real_numbers_are_onnxruntimes(
    rknn: RKNN, tmp_path: Path, shape: str, stored: str
) -> None:
    rng = np.random.default_rng(8)
    dataset = nets.arrays(tmp_path, *rng.uniform(0, 255, (6, 1, 3, 16, 16))) if stored == "int8" else None
    path = build(rknn, nets.shaped(tmp_path, shape), dataset, mean_values=[[0, 0, 0]], std_values=[[255, 255, 255]])
    assert rknn.init_runtime() == 0
    graph, bare = nets.graph_of(path), nets.bare(path)
    graph.opset_import[0].version = 21  # onnx.reference has no QuantizeLinear of 17; its meaning is the same
    independent = ReferenceEvaluator(graph)
    for image in rng.integers(0, 256, (10, 1, 16, 16, 3), np.uint8):
        found = rknn.inference([image])
        assert found is not None
        given = {graph.graph.input[0].name: image.transpose(0, 3, 1, 2).astype(F)}
        evaluator = independent if stored == "int8" else bare
        (wanted,) = evaluator.run(None, given)
        np.testing.assert_array_equal(found[0], wanted)
        assert len(np.unique(wanted)) > 5


class cstSoftmax:  # noqa: N801 - a program's own
    """The guide's example."""

    op_type = "cstSoftmax"

    def shape_infer(self, node: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        return in_shapes.copy(), in_dtypes.copy()

    def compute(self, node: Any, inputs: Any) -> Any:
        axis = get_node_attr(node, "axis")
        assert get_node_attr(node, "none") is None
        power = np.exp(inputs[0] - inputs[0].max(axis=axis, keepdims=True))
        return [power / power.sum(axis=axis, keepdims=True)]


def custom_model(folder: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("cstSoftmax", ["c"], ["s"], domain="own", axis=-1),
        helper.make_node("Mul", ["s", "two"], ["y"]),
    ]
    weights = {"w": np.random.default_rng(1).standard_normal((4, 3, 1, 1)).astype(F), "two": np.array([2], F)}
    return nets.saved(folder, nodes, {"x": [1, 3, 4, 4]}, ["y"], weights)


def test_an_op_of_the_programs_own_is_converted_and_run(rknn: RKNN, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    samples = rng.standard_normal((4, 1, 3, 4, 4)).astype(F)
    rknn.config(target_platform="rk3566")
    assert rknn.reg_custom_op(cstSoftmax()) == 0
    assert rknn.load_onnx(custom_model(tmp_path)) == 0, rknn.last_error
    assert rknn.build(dataset=nets.arrays(tmp_path, *samples)) == 0, rknn.last_error
    assert rknn.export_rknn("net.rknn") == 0
    assert rknn.init_runtime() == 0, rknn.last_error
    found = rknn.inference([samples[0].transpose(0, 2, 3, 1)])
    assert found is not None
    np.testing.assert_allclose(found[0].sum(-1), 2, rtol=0.02)
    assert Container.read(tmp_path / "net.rknn").metadata.custom_ops == ("cstSoftmax",)
    lite = RKNNLite()
    assert lite.load_rknn("net.rknn") == 0
    assert lite.init_runtime() == -1
    assert "custom ops cstSoftmax" in lite.last_error


def test_sizes_that_the_op_knows_replace_names_of_the_file(rknn: RKNN, tmp_path: Path) -> None:
    nodes = [helper.make_node("cstSoftmax", ["x"], ["y"], domain="own", axis=1)]
    model = nets.saved(tmp_path, nodes, {"x": [1, 3, 4, 4]}, ["y"])
    named = onnx.load(model)
    for at, size in enumerate(("p0", "p1", "p2", "p3")):
        named.graph.output[0].type.tensor_type.shape.dim.add().dim_param = f"{size}{at}"
    onnx.save(named, model)
    rknn.config(target_platform="rk3566")
    assert rknn.reg_custom_op(cstSoftmax()) == 0
    assert rknn.load_onnx(model) == 0, rknn.last_error
    assert rknn.build(do_quantization=False) == 0, rknn.last_error
    assert rknn.export_rknn("net.rknn") == 0
    assert Container.read(tmp_path / "net.rknn").metadata.outputs[0].shape == (1, 3, 4, 4)
    (output,) = nets.graph_of(tmp_path / "net.rknn").graph.output
    assert [dim.dim_value for dim in output.type.tensor_type.shape.dim] == [1, 3, 4, 4]


def wrong(**members: Any) -> Any:
    """An op that has something else than the guide's."""
    return type("cstSoftmax", (cstSoftmax,), members)()


def renamed(self: Any, node: Any, x: Any) -> Any:
    return [x]


@pytest.mark.parametrize(
    ("op", "why"),
    [
        (cstSoftmax, "is a class; register an object of it: reg_custom_op(cstSoftmax())"),
        (wrong(op_type=3), "op_type is 3; it must be a string"),
        (wrong(op_type="Softmax"), "which ONNX has; use a name of your own, such as 'cstSoftmax'"),
        (wrong(compute=None), "has no compute; define: def compute(self, node, inputs)"),
        (wrong(compute=renamed), "takes (node, x); its parameters' names are fixed"),
        (wrong(shape_infer=renamed), "def shape_infer(self, node, in_shapes, in_dtypes)"),
    ],
)
def test_a_registration_that_fails_says_why(rknn: RKNN, op: Any, why: str) -> None:
    rknn.config(target_platform="rk3566")
    assert rknn.reg_custom_op(op) == -1
    assert why in rknn.last_error


def raising(self: Any, node: Any, inputs: Any) -> Any:
    raise ValueError("no idea")


def raising_infer(self: Any, node: Any, in_shapes: Any, in_dtypes: Any) -> Any:
    raise ValueError("no idea")


def one_list(self: Any, node: Any, in_shapes: Any, in_dtypes: Any) -> Any:
    return in_shapes


def no_list(self: Any, node: Any, inputs: Any) -> Any:
    return inputs[0][0]


def two_lists(self: Any, node: Any, inputs: Any) -> Any:
    return inputs * 2


def in_place(self: Any, node: Any, inputs: Any) -> Any:
    inputs[0] *= 2
    return inputs


def no_batch(self: Any, node: Any, inputs: Any) -> Any:
    return [inputs[0][0]]


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"shape_infer": raising_infer}, "shape_infer (node 'cstSoftmax_1') raised ValueError"),
        ({"shape_infer": one_list}, "must return (out_shapes, out_dtypes)"),
        ({"compute": raising}, "compute (node 'cstSoftmax_1') raised ValueError: no idea"),
        ({"compute": no_list}, "returned ndarray; it must return a list"),
        ({"compute": two_lists}, "returned 2 outputs; it must return a list with one array for each of 1 outputs"),
        ({"compute": no_batch}, "returned the shape [4, 4, 4], but shape_infer returned [1, "),
    ],
)
def test_an_op_that_fails_says_where(rknn: RKNN, tmp_path: Path, members: Any, why: str) -> None:
    rknn.config(target_platform="rk3566")
    assert rknn.reg_custom_op(wrong(**members)) == 0
    assert rknn.load_onnx(custom_model(tmp_path)) == 0
    assert rknn.reg_custom_op(cstSoftmax()) == -1  # too late
    assert rknn.build(dataset=nets.arrays(tmp_path, np.ones((1, 3, 4, 4)))) == -1
    assert why in rknn.last_error


def test_an_op_that_works_in_place_changes_nothing_that_others_read(rknn: RKNN, tmp_path: Path) -> None:
    rknn.config(target_platform="rk3566")
    assert rknn.reg_custom_op(wrong(compute=in_place)) == 0
    assert rknn.load_onnx(custom_model(tmp_path), outputs=["c", "y"]) == 0, rknn.last_error
    assert rknn.build(do_quantization=False) == 0, rknn.last_error
    assert rknn.init_runtime() == 0, rknn.last_error
    found = rknn.inference([np.ones((1, 4, 4, 3), F)])
    assert found is not None
    np.testing.assert_array_equal(found[1], found[0] * 4)


def test_a_model_with_an_op_that_nobody_registered_says_what_to_do(rknn: RKNN, tmp_path: Path) -> None:
    rknn.config(target_platform="rk3566")
    assert rknn.load_onnx(custom_model(tmp_path)) == -1
    assert "reg_custom_op, between config and load_onnx" in rknn.last_error


def pooled(folder: Path, shape: list[Any]) -> Path:
    """A model of any size: a convolution, relu, mean over the picture."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["feature"]),
        helper.make_node("GlobalAveragePool", ["feature"], ["y"]),
    ]
    weights = {"w": np.random.default_rng(7).standard_normal((5, 3, 3, 3)).astype(F)}
    return nets.saved(folder, nodes, {"x": shape}, ["y", "feature"], weights)


def test_a_model_of_several_shapes_takes_those_of_its_list_alone(rknn: RKNN, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    model = pooled(tmp_path, [1, 3, 8, 8])
    dataset = nets.arrays(tmp_path, *rng.standard_normal((3, 1, 3, 8, 8)))
    sets = [[[1, 3, 4, 6]], [[1, 3, 8, 8]]]
    path = build(rknn, model, dataset, dynamic_input=sets)
    metadata = Container.read(path).metadata
    assert metadata.inputs[0].shape == (1, 3, 8, 8)
    assert metadata.dynamic_input == (((1, 3, 8, 8),), ((1, 3, 4, 6),))
    assert metadata.dynamic_output == (((1, 5, 1, 1), (1, 5, 8, 8)), ((1, 5, 1, 1), (1, 5, 4, 6)))
    assert rknn.init_runtime() == 0
    bare = nets.bare(path)
    for ((_, channels, height, width),) in sets:
        x = rng.standard_normal((1, height, width, channels)).astype(F)
        found = rknn.inference([x])
        assert found is not None
        for one, other in zip(found, bare.run(None, {"x": x.transpose(0, 3, 1, 2)}), strict=True):
            np.testing.assert_array_equal(one, other)
        np.save(tmp_path / "one.npy", x)
        assert rknn.accuracy_analysis([str(tmp_path / "one.npy")], tmp_path / "snapshot") == 0, rknn.last_error
    assert rknn.inference([np.zeros((1, 6, 4, 3), F)]) is None
    assert "must have [1, 8, 8, 3] or [1, 4, 6, 3] in NHWC" in rknn.last_error


def test_a_constant_shape_inside_and_wrong_sets_are_refused(rknn: RKNN, tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "to"], ["y"])]
    model = nets.saved(tmp_path, nodes, {"x": [1, 24]}, ["y"], {"to": np.array([4, 6], np.int64)})
    rknn.config(target_platform="rk3588", dynamic_input=[[[1, 24]], [[1, 12]]])
    assert rknn.load_onnx(model) == -1 or rknn.build(do_quantization=False) == -1
    assert rknn.load_onnx(pooled(tmp_path, [1, 3, 8])) == -1
    for platform, sets, why in (
        ("rk3588", [[[1, 3]], [[1, 3], [2, 3]]], "same number of inputs"),
        ("rk3588", [[[1, 3.5]]], "each with a shape for each input"),
        ("rv1106", [[[1, 3]]], "rv1106 only runs models with one shape"),
    ):
        assert rknn.config(target_platform=platform, dynamic_input=sets) == -1
        assert why in rknn.last_error


def test_a_batch_is_as_many_images_one_behind_the_other(rknn: RKNN, tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    images = rng.standard_normal((5, 8, 8, 3)).astype(F)
    path = build(rknn, pooled(tmp_path, [1, 3, 8, 8]), None, rknn_batch_size=5)
    assert rknn.init_runtime(core_mask=RKNN.NPU_CORE_0_1_2) == 0
    found = rknn.inference([images])
    assert found is not None
    bare = nets.bare(path)
    for at, image in enumerate(images):
        for one, other in zip(found, bare.run(None, {"x": image.transpose(2, 0, 1)[None]}), strict=True):
            np.testing.assert_array_equal(one[at : at + 1], other)
    assert rknn.inference([images[:4]]) is None
    assert "must have [5, 8, 8, 3]" in rknn.last_error


def test_results_that_are_no_numbers_are_not_taken_for_alike() -> None:
    x = np.array([1.0, 2.0], np.float32)
    for bad in (np.nan, np.inf):
        assert np.isnan(error_between(x, np.array([1.0, bad], np.float32))).all()
    assert error_between(x, x).euc == 0


def test_layers_are_compared_whole_and_alone(rknn: RKNN, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = nets.pictures(tmp_path)
    build(rknn, nets.mobilenet(tmp_path), dataset, mean_values=[[127] * 3], std_values=[[64] * 3])
    assert rknn.accuracy_analysis([str(tmp_path / "picture1.png")]) == 0, rknn.last_error
    text = Path("snapshot/error_analysis.txt").read_text()
    assert text in capsys.readouterr().out
    rows = [line.split() for line in text.splitlines() if line.startswith("[")]
    assert rows[0][:4] == ["[Input]", "data", "1.00000", "0.0000"]
    kinds = [row[0] for row in rows]
    assert kinds.count("[ConvClip]") == 5
    assert kinds[-1] == "[Softmax]"
    entire, single = (np.array([float(row[at]) for row in rows[1:]]) for at in (3, 5))
    assert (single[:-1] <= entire[:-1] * 1.2 + 1e-4).all()
    assert single[1:-1].sum() < entire[1:-1].sum()
    golden, simulated = (np.load(f"snapshot/{name}/prob.npy") for name in ("golden", "simulator"))
    np.testing.assert_array_equal(np.genfromtxt("snapshot/golden/prob.txt").astype(F), golden.reshape(-1))
    assert np.linalg.norm(golden - simulated) == pytest.approx(entire[-1], abs=1e-3)


def test_layers_that_the_file_between_names_stay_in_real_numbers(rknn: RKNN, tmp_path: Path) -> None:
    dataset = nets.pictures(tmp_path)
    rknn.config(target_platform="rk3588", mean_values=[[127] * 3], std_values=[[64] * 3])
    assert rknn.load_onnx(nets.mobilenet(tmp_path)) == 0
    assert rknn.hybrid_quantization_step1(dataset, custom_hybrid=[["r2", "r3"]]) == 0, rknn.last_error
    text = Path("net.quantization.cfg").read_text()
    assert "custom_quantize_layers:\n  " in text
    files = ["net.model", "net.data", "net.quantization.cfg"]
    assert rknn.hybrid_quantization_step2(*files) == 0, rknn.last_error
    assert rknn.export_rknn("net.rknn") == 0
    graph = nets.graph_of(tmp_path / "net.rknn").graph
    integers = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    convolutions = [node.input[1] in integers for node in graph.node if node.op_type == "Conv"]
    assert convolutions == [True, True, True, False, True]
    assert rknn.init_runtime() == 0
    assert rknn.inference([np.zeros((1, nets.SIDE, nets.SIDE, 3), np.uint8)]) is not None
    for changed, why in (
        ("custom_quantize_layers: {none: float16}", "custom_quantize_layers has 'none'"),
        ("custom_quantize_layers: [r2]", "['r2'] found where 'name: value' is expected"),
        ("- r2", "['r2'] found where 'name: value' is expected"),
        ("quantize_parameters: {none: {min: [0], max: [1]}}", "quantize_parameters has 'none' from 0.0 to 1.0"),
        ("quantize_parameters: {r2: {min: [5], max: [1]}}", "quantize_parameters has 'r2' from 5.0 to 1.0"),
        ("quantize_parameters: {r2: {min: [.nan], max: [1]}}", "quantize_parameters has 'r2' from nan to 1.0"),
    ):
        Path("net.quantization.cfg").write_text(changed)
        assert rknn.hybrid_quantization_step2(*files) == -1
        assert why in rknn.last_error
    Path("net.quantization.cfg").write_text("")
    assert rknn.hybrid_quantization_step2(*files) == 0, rknn.last_error  # nothing is changed


@pytest.mark.parametrize(
    ("platform", "dtype", "stored", "near"),
    [
        ("rk3576", "w4a16", {"int8"}, 0.25),
        ("rv1106", "w16a16i", {"int16", "int32"}, 1e-3),
        ("rv1106", "asymmetric_quantized-16", {"int16", "int32"}, 1e-3),
    ],
)
def test_types_that_a_chip_has_are_those_of_the_weights(
    rknn: RKNN, tmp_path: Path, platform: str, dtype: str, stored: set[str], near: float
) -> None:
    dataset, model = nets.pictures(tmp_path), nets.mobilenet(tmp_path)
    image = np.random.default_rng(5).integers(0, 256, (1, nets.SIDE, nets.SIDE, 3), np.uint8)
    found = []
    for quantizes in (True, False):
        rknn.config(target_platform=platform, quantized_dtype=dtype, mean_values=[[127] * 3], std_values=[[64] * 3])
        assert rknn.load_onnx(model) == 0
        assert rknn.build(quantizes, dataset) == 0, rknn.last_error
        assert rknn.export_rknn("net.rknn") == 0
        assert rknn.init_runtime() == 0
        found += rknn.inference([image]) or []
        graph = nets.graph_of(tmp_path / "net.rknn").graph
        if quantizes:
            weights = {node.input[0] for node in graph.node if node.op_type == "DequantizeLinear"}
            tensors = [numpy_helper.to_array(one) for one in graph.initializer if one.name in weights]
            assert {str(one.dtype) for one in tensors} == stored
            assert dtype != "w4a16" or max(np.abs(one).max() for one in tensors) == 7
    assert 0 < np.abs(found[0] - found[1]).max() < near


def test_the_second_step_needs_the_files_of_the_first_alone(rknn: RKNN, tmp_path: Path) -> None:
    dataset, how = nets.pictures(tmp_path), {"mean_values": [[127] * 3], "std_values": [[64] * 3]}
    rknn.config(target_platform="rk3562", quantized_method="layer", custom_string="first", **how)
    assert rknn.load_onnx(nets.mobilenet(tmp_path)) == 0
    assert rknn.hybrid_quantization_step1(dataset) == 0, rknn.last_error
    assert re.findall(r"^ {4}(\w+):$", Path("net.quantization.cfg").read_text(), re.MULTILINE)[0] == "data"
    second = RKNN()
    assert second.hybrid_quantization_step2("net.model", "net.data", "net.quantization.cfg") == 0, second.last_error
    assert second.export_rknn("net.rknn") == 0
    metadata = Container.read(tmp_path / "net.rknn").metadata
    assert (metadata.target_platform, metadata.custom_string) == ("rk3562", "first")
    assert metadata.inputs[0].mean == (127.0,) * 3
    whole = {"mean_values": [[0]], "dynamic_input": [[[1, 3, 32, 32]], [[1, 3, 16, 16]]]}
    assert rknn.config(target_platform="rk3588", **whole) == 0
    assert hybrid.config_of(json.loads(json.dumps(hybrid.stored(rknn._configured())))) == rknn._configured()


def test_one_image_is_a_batch_of_one_and_one_array_the_one_input(
    rknn: RKNN, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(rknn, nets.DIGITS, None)
    image = np.random.default_rng(3).integers(0, 17, (1, 8, 8, 1)).astype(np.uint8)
    assert rknn.init_runtime() == 0
    lite = RKNNLite()
    assert lite.load_rknn(path) == lite.init_runtime() == 0
    (wanted,) = rknn.inference([image]) or []
    for given in (image, image[0], [image[0]], (image[0],)):
        (found,) = rknn.inference(given) or []
        np.testing.assert_array_equal(found, wanted)
    said = capsys.readouterr().err
    assert said.count("W inference: The dims of input(ndarray) shape (8, 8, 1) is wrong, expect dims is 4!") == 3
    assert "Try expand dims to (1, 8, 8, 1)!" in said
    (found,) = lite.inference(image) or []
    np.testing.assert_array_equal(found, wanted)
    assert lite.inference([image[0]]) is None  # as the vendor's
    assert "need 4dims input, but 3dims input buffer feed" in lite.last_error


def test_async_mode_gives_the_outputs_of_the_frame_before(rknn: RKNN) -> None:
    path = build(rknn, nets.DIGITS, None)
    frames = [np.full((1, 8, 8, 1), at, np.uint8) for at in range(3)]
    assert rknn.init_runtime() == 0
    wanted = [(rknn.inference([one]) or [])[0] for one in frames]
    lite = RKNNLite()
    assert lite.load_rknn(path) == lite.init_runtime(async_mode=True, device_id="0") == 0
    assert rknn.init_runtime(async_mode=True) == 0
    for late in (rknn, lite):
        found = []
        for one in frames:
            (output,) = late.inference([one]) or []
            found.append(output.copy())
            output[:] = 0  # an array is the program's own
        np.testing.assert_array_equal(found, [wanted[0], *wanted[:2]])
    lite.release()


def test_outputs_are_kept_for_async_mode_alone(rknn: RKNN) -> None:
    build(rknn, nets.DIGITS, None)
    assert rknn.init_runtime() == 0
    (output,) = rknn.inference([np.zeros((1, 8, 8, 1), np.uint8)]) or []
    kept = weakref.ref(output)
    del output
    assert kept() is None


def test_layers_that_lose_most_stay_in_real_numbers_by_themselves(rknn: RKNN, tmp_path: Path) -> None:
    dataset = nets.pictures(tmp_path)

    def integers(**how: Any) -> int:
        rknn.config(target_platform="rk3588", **how)
        assert rknn.load_onnx(nets.mobilenet(tmp_path)) == 0
        assert rknn.build(dataset=dataset, auto_hybrid=True) == 0, rknn.last_error
        assert rknn.export_rknn("net.rknn") == 0
        graph = nets.graph_of(tmp_path / "net.rknn").graph
        made = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
        return sum(node.input[1] in made for node in graph.node if node.op_type == "Conv")

    assert integers(auto_hybrid_cos_thresh=0) == 5
    assert integers(auto_hybrid_euc_thresh=0) == 0


@pytest.mark.parametrize("shape", [[], [1], [1, 1], [8], [1, 8]])
def test_a_bias_of_gemm_may_have_any_shape_that_is_a_row(rknn: RKNN, tmp_path: Path, shape: list[int]) -> None:
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((16, 8)).astype(F), "b": np.asarray(rng.standard_normal(shape), F)}
    model = nets.saved(tmp_path, [helper.make_node("Gemm", ["x", "w", "b"], ["y"])], {"x": [4, 16]}, ["y"], weights)
    x = rng.standard_normal((4, 16)).astype(F)
    path = build(rknn, model, nets.arrays(tmp_path, x))
    assert sum(node.op_type == "QuantizeLinear" for node in nets.graph_of(path).graph.node) == 2
    (found,) = nets.bare(path).run(None, {"x": x})
    np.testing.assert_allclose(found, x @ weights["w"] + weights["b"], atol=0.25)


def test_a_node_that_cannot_be_quantized_is_named(
    rknn: RKNN, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = {"w": np.ones((16, 8), F), "b": np.arange(4, dtype=F)[:, None]}
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="fc")
    model = nets.saved(tmp_path, [node], {"x": [4, 16]}, ["y"], weights)
    dataset = nets.arrays(tmp_path, np.ones((4, 16), F))
    build(rknn, model, dataset)
    assert "The Gemm of y stays in real numbers: its bias differs from row to row." in capsys.readouterr().err
    monkeypatch.setattr(quantize, "biased_by_row", lambda _model: [])
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0
    assert rknn.build(dataset=dataset) == -1
    assert rknn.last_error.startswith("onnxruntime cannot quantize the Gemm 'fc': ")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mean_value": [[0]]}, "no argument 'mean_value'; did you mean 'mean_values'?"),
        ({"target_platform": "rk3558"}, "Unknown platform 'rk3558'; did you mean 'rk35"),
        ({"quantized_dtype": "w8a16"}, "rk3566 supports 'w8a8'"),
        ({"quantized_dtype": "w4a16", "target_platform": "rk3588"}, "rk3588 supports 'w8a8'"),
        ({"quantized_dtype": "w4a8"}, "which supports 'w8a8' or 'w8a16' or 'w4a16' or 'w16a16i'"),
        ({"quantized_algorithm": "gdq"}, "which supports 'normal' or 'mmse' or 'kl_divergence'"),
        ({"remove_weight": True, "dynamic_input": [[[1, 3, 8, 8]]]}, "cannot share another's weights"),
        ({"dynamic_input": [[[1, 3, (8, 32), 8]]]}, "it must be a list of sets"),
        ({"quantized_method": "group32"}, "groups are for four-bit weights"),
        ({"std_values": [[0]]}, "it is a divisor, so none of its numbers may be 0"),
        ({"optimization_level": 4}, "it must be 0 to 3"),
        ({"custom_string": "x" * 1024}, "fewer than 1024 bytes"),
        ({"mean_values": 3}, "one list of numbers, one per channel"),
        ({"mean_values": [[float("nan")]]}, "one list of numbers, one per channel"),
        ({"target_platform": ["rk3588"]}, "Unknown platform"),
        ({"quantized_method": ["layer"]}, "it must be 'layer' or 'channel'"),
    ],
)
def test_a_wrong_configuration_is_refused(rknn: RKNN, given: Any, why: str) -> None:
    assert rknn.config(target_platform="rk3588") == 0
    assert rknn.config(**given) == -1
    assert why in rknn.last_error
    assert rknn.load_onnx(nets.DIGITS) == -1
    assert "call config first" in rknn.last_error


def test_calls_out_of_order_or_with_what_does_not_fit_say_so(rknn: Any, tmp_path: Path) -> None:
    def refused(result: Any, why: str) -> None:
        assert result in {None, -1}
        assert why in rknn.last_error

    refused(rknn.load_onnx(nets.DIGITS), "call config first")
    rknn.config(target_platform="rk3576", mean_values=[[1, 2]])
    refused(rknn.build(), "call load_onnx first")
    refused(rknn.export_rknn("x.rknn"), "call build first")
    refused(rknn.init_runtime(), "call build or load_rknn first")
    refused(rknn.inference([]), "call init_runtime first")
    refused(rknn.load_caffe("x.prototxt", blobs="x.caffemodel"), "call load_onnx")
    refused(rknn.load_onnx("none.onnx"), "No such file")
    refused(rknn.load_onnx(nets.DIGITS, outputs=["none"]), "no such value")
    refused(rknn.load_onnx(None), "model is NoneType; give the path")
    refused(rknn.load_onnx(nets.DIGITS, ["image"], [[1, 2, 8, 8]]), "but the model [1, 1, 8, 8]")
    refused(rknn.load_onnx(nets.DIGITS, ["image"], [[1, 8, 8]]), "write the batch, too, as in [1, 1, 8, 8].")
    refused(rknn.load_onnx(nets.DIGITS, ["image"], ["1188"]), "it must have the sizes of 'image'")
    refused(rknn.load_onnx(nets.DIGITS, input_initial_val=["no"]), "which needs float32")
    refused(rknn.load_onnx(nets.DIGITS, input_initial_val=[np.ones(3)]), "has the shape [3] for 'image'")
    assert rknn.load_onnx(nets.DIGITS, inputs=["image"], input_size_list=[[1, 1, 8, 8]], outputs=["p2"]) == 0
    refused(rknn.build(do_quantization=False), "mean_values has 2 numbers for the input 'image'")
    rknn.config(target_platform="rk3576")
    refused(rknn.build(), "call load_onnx first")
    assert rknn.load_onnx(nets.DIGITS) == 0
    refused(rknn.build(), "do_quantization needs a dataset")
    refused(rknn.build(dataset="none.txt"), "cannot be read: No such file")
    refused(rknn.build(dataset=nets.listed(tmp_path, ["a.npy b.npy"])), "has 2 files but the model has 1")
    refused(rknn.build(dataset=nets.arrays(tmp_path, np.ones((1, 8, 8)))), "has the shape [1, 8, 8]")
    refused(rknn.build(dataset=nets.arrays(tmp_path, np.full((1, 1, 8, 8), np.nan))), "which is not a range")
    refused(rknn.build(do_quantization=False, rknn_batch_size=0), "above 0")
    refused(rknn.build(do_quantization=False, rknn_batch_size="3"), "above 0")
    refused(rknn.build(do_quantization=False, rknn_batch_size=1 << 30), "a tensor must have less than 4 GiB")
    assert rknn.build(do_quantization=False) == 0
    refused(rknn.accuracy_analysis([np.ones((1, 1, 8, 8))]), "the path of a picture or an .npy file")
    refused(rknn.init_runtime(target="rk3588"), "The model is for rk3576, but the target is rk3588")
    refused(rknn.init_runtime(core_mask=RKNN.NPU_CORE_2), "has the NPU cores 0 to 1")
    refused(rknn.init_runtime(core_mask=99), "must be one of NPU_CORE_AUTO")
    assert rknn.init_runtime(target="rk3576", device_id="29d5dd97766a5c27") == 0


def test_inputs_that_do_not_fit_and_what_a_failed_call_leaves(rknn: RKNN) -> None:
    def refused(result: Any, why: str) -> None:
        assert result in {None, -1}
        assert why in rknn.last_error

    rknn.config(target_platform="rk3576")
    assert rknn.load_onnx(nets.DIGITS) == 0
    assert rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime(target="rk3576", core_mask=RKNN.NPU_CORE_ALL) == 0
    good = np.ones((1, 8, 8, 1), np.uint8)
    refused(rknn.inference([good, good]), "2 inputs were given, but the model has 1")
    refused(rknn.inference([good[0, :7]]), "has the shape [1, 7, 8, 1]; it must have [1, 8, 8, 1] in NHWC")
    refused(rknn.inference([good[0, 0]]), "has the shape [8, 1]; it must have [1, 8, 8, 1] in NHWC")
    for other in ("chw", 3):
        refused(rknn.inference([good], data_format=cast("str", other)), "'nhwc' or 'nchw'")
    refused(rknn.inference([good.astype("S1")]), "the model takes float32")
    assert rknn.inference([good]) is not None
    assert rknn.export_rknn("net.rknn") == 0
    refused(rknn.build(), "do_quantization needs a dataset")
    refused(rknn.export_rknn("net.rknn"), "call build first")
    refused(rknn.inference([good]), "call init_runtime first")
    assert rknn.load_rknn("net.rknn") == 0
    refused(rknn.init_runtime(), "target='rk3576'")
    assert rknn.init_runtime(target="rk3576") == 0
    rknn.release()
    refused(rknn.inference([good]), "call init_runtime first")


def test_cost_and_memory_are_said_to_be_modeled_and_time_to_be_measured(
    rknn: RKNN, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(rknn, nets.mobilenet(tmp_path), nets.pictures(tmp_path))
    assert rknn.init_runtime() == 0
    assert rknn.eval_perf() is None
    assert "call init_runtime with target='rk3588'" in rknn.last_error
    assert rknn.init_runtime(target="rk3588", perf_debug=True, core_mask=RKNN.NPU_CORE_0_1) == 0
    text = rknn.eval_perf(inputs=[])
    assert text
    assert text in capsys.readouterr().out
    table, measured = text.rsplit("\n\n", 1)
    assert measured.startswith("Measured on this machine")
    whole = table.splitlines()[-1]
    assert whole.startswith("A run on one core, modeled by published times of whole models: ")
    assert "(docs/accuracy.md)" in whole
    rows = [line.split() for line in table.splitlines() if line[:1].isdigit()]
    kinds = ["InputOperator", *["ConvClip"] * 5, "GlobalAveragePool", "Flatten", "Gemm", "Softmax", "OutputOperator"]
    assert [row[1] for row in rows] == kinds
    assert {row[3] for row in rows if row[1] in {"Softmax", "OutputOperator"}} == {"CPU"}
    assert rknn.eval_memory() is None
    assert rknn.init_runtime(target="rk3588", eval_mem=True) == 0
    sizes = rknn.eval_memory(is_print=False)
    assert sizes
    assert sizes["total_memory"] == sum(size for name, size in sizes.items() if name != "total_memory")
    assert "ConvClip" not in (rknn.eval_perf() or "ConvClip")
    lite = RKNNLite(verbose=True)
    assert lite.load_rknn(path) == lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0_1) == 0
    assert table in capsys.readouterr().out


@pytest.mark.long
def test_programs_are_written_for_a_model_and_agree_with_the_simulator(
    rknn: RKNN, tmp_path: Path, board_home: Path
) -> None:
    images, _ = nets.digits()
    dataset = nets.arrays(tmp_path, *images[:5].transpose(0, 3, 1, 2)[:, None])
    assert rknn.codegen("demo") == -1
    build(rknn, nets.DIGITS, dataset, std_values=[[16]])
    assert rknn.codegen("demo", inputs=["array2.npy"]) == 0, rknn.last_error
    assert rknn.codegen("demo", inputs=["none.npy"]) == 0  # skipped
    assert rknn.codegen("demo", inputs=["none.npy"], overwrite=True) == -1
    environment = {"HBRT_HOME": str(board_home), "PATH": os.environ["PATH"]}
    programs = [[sys.executable, "main.py"]]
    if shutil.which("cc") is not None:
        compiled = [sys.executable, "-m", "hbrt", "cc", "main.c", "-o", "main", "-lm"]
        subprocess.run(compiled, cwd="demo", env=environment, check=True, timeout=PATIENCE_S)
        programs.append(["./main"])
    for program in programs:
        answer = subprocess.run(
            program, cwd="demo", env=environment, check=False, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.endswith(", cosine 1.000000\n")
    assert rknn.codegen("demo", overwrite=True) == 0, rknn.last_error
    assert not list(Path("demo").glob("*_0.bin"))  # of the former inputs


@pytest.mark.parametrize(("kind", "inputs"), [(TensorProto.DOUBLE, {"x": [1, 3]}), (TensorProto.FLOAT, {})])
def test_programs_that_c_has_no_words_for_are_not_written(
    rknn: RKNN, tmp_path: Path, kind: int, inputs: dict[str, Any]
) -> None:
    node = (
        helper.make_node("Identity", ["x"], ["y"]) if inputs else helper.make_node("RandomNormal", [], ["y"], shape=[1])
    )
    build(rknn, nets.saved(tmp_path, [node], inputs, ["y"], kind=kind), None)
    assert rknn.codegen("demo") == -1
    assert "codegen needs a model whose inputs have types of the C API" in rknn.last_error
    assert not Path("demo").exists()


def test_a_program_for_an_output_of_zeros_says_that_it_agrees(rknn: RKNN, tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    build(rknn, nets.saved(tmp_path, [node], {"x": []}, ["y"]), None)
    np.save("scalar.npy", F(-3))
    assert rknn.codegen("demo", inputs=["scalar.npy"]) == 0, rknn.last_error
    answer = run_program(["main.py"], PATIENCE_S, cwd="demo")
    assert (answer.stdout, answer.stderr) == ("output 0: [], cosine 1.000000\n", "")


def test_the_benchmark_says_what_a_file_has_and_what_a_run_takes(rknn: RKNN, tmp_path: Path) -> None:
    path = build(rknn, nets.DIGITS, nets.arrays(tmp_path, np.ones((1, 1, 8, 8))))
    printed = CliRunner().invoke(benchmark, [str(path), "", "3", "3"])
    assert printed.exit_code == 0, printed.output
    lines = printed.output.splitlines()
    assert lines[1] == "digits_float, for rk3588, w8a8"
    assert lines[2].startswith("input 0: image [1, 1, 8, 8] NCHW float32, stored as int8, scale ")
    assert [line.split(":")[0].strip() for line in lines[5:8]] == ["0", "1", "2"]
    assert lines[8].startswith("average ")
    for arguments, why in (
        (["", "3", "8"], "Invalid core_mask 8"),
        (["a.npy#b.npy"], "2 inputs were given"),
        (["a.npy"], "No such file: a.npy"),
    ):
        printed = CliRunner().invoke(benchmark, [str(path), *arguments])
        assert printed.exit_code == 1
        assert why in printed.output
    assert CliRunner().invoke(benchmark, [str(nets.DIGITS)]).exit_code == 1


def test_a_model_without_its_weights_is_small_and_is_not_run_alone(rknn: RKNN, tmp_path: Path) -> None:
    path = build(rknn, nets.mobilenet(tmp_path), None, remove_weight=True, custom_string="mine")
    assert path.stat().st_size < (tmp_path / "net.onnx").stat().st_size / 2
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0
    assert lite.list_support_target_platform() == {
        "support_target_platform": ["rk3588"],
        "filled_target_platform": ["rk3588"],
    }
    assert lite.init_runtime() == -1
    assert "RKNN_FLAG_SHARE_WEIGHT_MEM" in lite.last_error


def test_the_names_refuse_to_stand_in_for_the_vendors(tmp_path: Path) -> None:
    for name in ("rknn_toolkit2", "rknn_toolkit_lite2"):
        folder = tmp_path / f"{name}-2.3.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.3.2\n")
    for module in ("rknn.api", "rknn.utils", "rknnlite.api"):
        answer = run_program(["-c", f"import {module}"], PATIENCE_S, env={"PYTHONPATH": str(tmp_path)})
        assert "2.3.2 is installed here, and hbrt's packages have the same names" in answer.stderr
