"""Models that are not the usual one of float32 with an input: each is converted, costed and compared, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from rknn.api import RKNN
from rknn_api.container import Container
from tests.rknn_api import nets

F = np.float32
RNG = np.random.default_rng(6)


@pytest.fixture
def rknn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RKNN:
    """An object in an empty folder; its models run in this process, without a board."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HBRT_BPU", "inline")
    return RKNN()


def ready(rknn: RKNN, model: Path, dataset: Path | None = None, *, quantized: bool = True, **how: Any) -> None:
    """Converts a model, and makes it ready on the board."""
    rknn.config(target_platform="rk3588", **how)
    assert rknn.load_onnx(model) == 0, rknn.last_error
    assert rknn.build(do_quantization=quantized, dataset=dataset) == 0, rknn.last_error
    assert rknn.init_runtime(target="rk3588", perf_debug=True, eval_mem=True) == 0, rknn.last_error


def rows(rknn: RKNN) -> list[list[str]]:
    """Op type, data type and target of each layer that eval_perf lists."""
    text = rknn.eval_perf(is_print=False)
    assert text is not None, rknn.last_error
    assert rknn.eval_memory(is_print=False) is not None, rknn.last_error
    return [line.split()[1:4] for line in text.splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize("quantized", [False, True])
def test_a_model_without_inputs_has_a_cost_and_needs_no_dataset(
    rknn: RKNN, tmp_path: Path, capfd: pytest.CaptureFixture[str], *, quantized: bool
) -> None:
    nodes = [helper.make_node("RandomNormal", [], ["k"], shape=[1, 3, 4, 4]), helper.make_node("Relu", ["k"], ["y"])]
    ready(rknn, nets.saved(tmp_path, nodes, {}, ["y"]), quantized=quantized)
    found = rknn.inference([])
    assert found is not None
    assert found[0].shape == (1, 3, 4, 4)
    assert [row[0] for row in rows(rknn)] == ["RandomNormal", "Relu", "OutputOperator"]
    assert rknn.accuracy_analysis([]) == 0, rknn.last_error
    assert ("W build: Nothing in the model is quantized" in capfd.readouterr().err) == quantized


def test_a_model_without_inputs_may_be_loaded_with_empty_lists(rknn: RKNN, tmp_path: Path) -> None:
    value = numpy_helper.from_array(np.ones((1, 2), F))
    model = nets.saved(tmp_path, [helper.make_node("Constant", [], ["y"], value=value)], {}, ["y"])
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model, inputs=[], input_size_list=[], input_initial_val=[]) == 0, rknn.last_error
    assert rknn.build(do_quantization=False) == 0, rknn.last_error
    assert rknn.init_runtime() == 0, rknn.last_error
    found = rknn.inference([])
    assert found is not None
    np.testing.assert_array_equal(found[0], [[1, 1]])


def test_a_model_that_computes_nothing_has_a_cost(rknn: RKNN, tmp_path: Path) -> None:
    ready(rknn, nets.saved(tmp_path, [], {"x": [1, 4]}, ["x"]), quantized=False)
    assert rows(rknn) == [["InputOperator", "FLOAT16", "CPU"], ["OutputOperator", "FLOAT16", "CPU"]]


@pytest.mark.parametrize("algorithm", ["normal", "mmse", "kl_divergence"])
def test_a_model_of_tensors_without_elements_is_built(rknn: RKNN, tmp_path: Path, algorithm: str) -> None:
    model = nets.saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": [0, 3]}, ["y"])
    ready(rknn, model, nets.arrays(tmp_path, np.zeros((0, 3))), quantized_algorithm=algorithm)
    found = rknn.inference([np.zeros((0, 3), F)])
    assert found is not None
    assert found[0].shape == (0, 3)


def test_layers_behind_a_first_input_of_whole_numbers_are_quantized_ones(rknn: RKNN, tmp_path: Path) -> None:
    nodes = [helper.make_node("Gather", ["words", "x"], ["g"]), helper.make_node("MatMul", ["g", "dense"], ["y"])]
    weights = {"words": RNG.standard_normal((10, 8), F), "dense": RNG.standard_normal((8, 4), F)}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.INT64, [1, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "words.onnx").write_bytes(model.SerializeToString())
    np.save("words.npy", np.array([[1, 2, 3, 4, 5]]))
    ready(rknn, tmp_path / "words.onnx", nets.listed(tmp_path, ["words.npy"]))
    assert rows(rknn) == [
        ["InputOperator", "INT64", "CPU"],
        ["Gather", "INT8", "NPU"],
        ["MatMul", "INT8", "NPU"],
        ["OutputOperator", "FLOAT16", "CPU"],
    ]


def test_a_model_of_float16_is_quantized_with_its_mean(rknn: RKNN, tmp_path: Path) -> None:
    weights = {"w": RNG.standard_normal((4, 3, 3, 3), F).astype(np.float16)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    model = nets.saved(tmp_path, nodes, {"x": [1, 3, 8, 8]}, ["y"], weights, kind=TensorProto.FLOAT16)
    images = RNG.integers(0, 256, (4, 1, 3, 8, 8), np.uint8)
    ready(rknn, model, nets.arrays(tmp_path, *images), mean_values=[[100, 110, 120]], std_values=[[60, 60, 60]])
    found = rknn.inference([images[0].transpose(0, 2, 3, 1)])
    assert found is not None
    assert found[0].dtype == np.float16
    rknn.export_rknn("net.rknn")
    assert "w_as_float32_quantized" in {one.name for one in nets.graph_of(Path("net.rknn")).graph.initializer}
    assert ["ConvRelu", "INT8", "NPU"] in rows(rknn)
    assert rknn.accuracy_analysis(["array0.npy"]) == 0, rknn.last_error
    assert np.load("snapshot/simulator/y_as_float32.npy").std() > 0


@pytest.mark.parametrize("method", ["layer", "channel"])
@pytest.mark.parametrize("opset", [8, 10, 12])
def test_a_model_of_an_older_operator_set_is_quantized(rknn: RKNN, tmp_path: Path, opset: int, method: str) -> None:
    weights = {"w": RNG.standard_normal((4, 3, 3, 3), F), "b": RNG.standard_normal(4, F)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"])]
    model = nets.saved(tmp_path, nodes, {"x": [1, 3, 8, 8]}, ["y"], weights, opset=opset)
    image = RNG.standard_normal((1, 3, 8, 8), F)
    ready(rknn, model, nets.arrays(tmp_path, image), quantized_method=method)
    found = rknn.inference([image], data_format="nchw")
    ready(rknn, model, quantized=False)
    golden = rknn.inference([image], data_format="nchw")
    assert found is not None
    assert golden is not None
    assert 0 < np.abs(found[0] - golden[0]).max() < 0.05 * np.ptp(golden[0])


def test_a_model_that_is_too_old_for_integers_says_how_to_renew_it(
    rknn: RKNN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr("onnx.version_converter.convert_version", refuse)
    model = nets.saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 3]}, ["y"], opset=9)
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(model) == 0
    assert rknn.build(dataset=nets.arrays(tmp_path, np.ones((1, 3)))) == -1
    assert "operator set 9, but integers need 10 or later: convert it with onnx.version_converter" in rknn.last_error


def test_constants_that_are_nodes_are_quantized_as_weights(rknn: RKNN, tmp_path: Path) -> None:
    weight = numpy_helper.from_array(RNG.standard_normal((3, 4), F))
    nodes = [
        helper.make_node("Constant", [], ["w"], value=weight),
        helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0, 3.0, 4.0]),
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "k"], ["y"]),
    ]
    model = nets.saved(tmp_path, nodes, {"x": [1, 3]}, ["y"])
    ready(rknn, model, nets.arrays(tmp_path, RNG.standard_normal((1, 3), F)), optimization_level=0)
    assert [row[:2] for row in rows(rknn)[1:3]] == [["MatMul", "INT8"], ["Add", "INT8"]]
    rknn.export_rknn("net.rknn")
    assert "w_quantized" in {one.name for one in nets.graph_of(Path("net.rknn")).graph.initializer}


def test_layers_that_make_lists_of_tensors_have_a_row(rknn: RKNN, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    ready(rknn, nets.saved(tmp_path, nodes, {"x": [1, 3]}, ["y"]), quantized=False)
    assert [row[0] for row in rows(rknn)[1:3]] == ["SequenceConstruct", "ConcatFromSequence"]


def test_a_mean_for_an_input_of_whole_numbers_is_refused(rknn: RKNN, tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    model = nets.saved(tmp_path, nodes, {"x": [1, 3, 4, 4]}, ["y"], kind=TensorProto.UINT8)
    rknn.config(target_platform="rk3588", mean_values=[[1, 2, 3]])
    assert rknn.load_onnx(model) == 0
    assert rknn.build(do_quantization=False) == -1
    assert rknn.last_error.startswith("mean_values is for inputs of real numbers, but 'x' is of uint8")
    ready(rknn, model, quantized=False, mean_values=[[0, 0, 0]], std_values=[[1, 1, 1]])


@pytest.mark.parametrize("algorithm", ["normal", "kl_divergence"])
def test_inputs_that_are_no_range_name_their_sample(rknn: RKNN, tmp_path: Path, algorithm: str) -> None:
    model = nets.saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 3]}, ["y"])
    rknn.config(target_platform="rk3588", quantized_algorithm=algorithm)
    assert rknn.load_onnx(model) == 0
    assert rknn.build(dataset=nets.arrays(tmp_path, np.ones((1, 3)), [[1, np.inf, 2]])) == -1
    assert "The value 'x' is 1.0 to inf on sample 2 of the dataset" in rknn.last_error


@pytest.mark.parametrize("algorithm", ["normal", "mmse", "kl_divergence"])
def test_a_mask_of_infinity_stays_in_real_numbers_and_the_rest_is_quantized(
    rknn: RKNN, tmp_path: Path, algorithm: str, capfd: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["share"], axis=-1),
        helper.make_node("MatMul", ["share", "w"], ["y"]),
    ]
    mask = np.where(np.tri(4, dtype=bool), 0, -np.inf).astype(F)
    model = nets.saved(tmp_path, nodes, {"x": [4, 4]}, ["y"], {"w": RNG.standard_normal((4, 4), F), "mask": mask})
    x = RNG.standard_normal((4, 4), F)
    ready(rknn, model, nets.arrays(tmp_path, np.zeros((4, 4)), x), quantized_algorithm=algorithm)
    assert "'masked', 'mask' stay in real numbers" in capfd.readouterr().err
    assert ["MatMul", "INT8", "NPU"] in rows(rknn)
    found = rknn.inference([x])
    ready(rknn, model, quantized=False)
    golden = rknn.inference([x])
    assert found is not None
    assert golden is not None
    assert 0 < np.abs(found[0] - golden[0]).max() < 0.1


def test_one_list_is_for_the_first_of_two_inputs(rknn: RKNN, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nodes = [helper.make_node("Neg", [name], [f"{name}_out"]) for name in ("image", "text")]
    inputs = {"image": (1, 3, 4, 4), "text": (1, 2, 3)}
    model = nets.saved(tmp_path, nodes, inputs, ["image_out", "text_out"])
    ready(rknn, model, quantized=False, mean_values=[[1, 2, 3]], std_values=[[2, 2, 2]])
    told = capfd.readouterr().err
    assert "W build: mean_values has no numbers for 'text': nothing is subtracted." in told
    assert "W build: std_values has no numbers for 'text': it is not divided." in told
    found = rknn.inference([np.full((1, 4, 4, 3), 7, np.uint8), np.ones((1, 2, 3), F)])
    assert found is not None
    np.testing.assert_array_equal(found[0][0, :, 0, 0], [-3, -2.5, -2])
    np.testing.assert_array_equal(found[1], -np.ones((1, 2, 3)))


@pytest.mark.parametrize(
    "how", [{"mean_values": [[1], [2]]}, {"std_values": [[1], [2]]}, {"quant_img_RGB2BGR": [True, False]}]
)
def test_a_list_for_more_inputs_than_there_are_is_refused(rknn: RKNN, how: dict[str, Any]) -> None:
    rknn.config(target_platform="rk3588", **how)
    assert rknn.load_onnx(nets.DIGITS) == 0
    assert rknn.build(do_quantization=False) == -1
    assert rknn.last_error == f"{next(iter(how))} is for 2 inputs, but the model has 1."


def test_a_list_that_is_none_is_refused(rknn: Any) -> None:
    rknn.config(target_platform="rk3588")
    wrong: list[dict[str, Any]] = [
        {"inputs": "image"},
        {"outputs": []},
        {"input_size_list": 5},
        {"input_initial_val": 5},
    ]
    for how in wrong:
        assert rknn.load_onnx(nets.DIGITS, **how) == -1
        assert "pass a list with one entry for each, or omit it" in rknn.last_error


def test_nothing_is_lost_where_all_names_are_odd(rknn: RKNN, tmp_path: Path) -> None:
    names = ["a b", "../c/d:0", "日本", "x" * 300]
    nodes = [helper.make_node("Sum", names, ["s\n"]), helper.make_node("MatMul", ["s\n", "w w"], ["/"])]
    model = nets.saved(
        tmp_path, nodes, {name: [1, 3] for name in names}, ["/"], {"w w": RNG.standard_normal((3, 4), F)}
    )
    given = [np.full((1, 3), at, F) for at in range(4)]
    for at, array in enumerate(given):
        np.save(f"{at}.npy", array)
    ready(rknn, model, nets.listed(tmp_path, ["0.npy 1.npy 2.npy 3.npy"]))
    assert rknn.inference(given) is not None, rknn.last_error
    assert rknn.accuracy_analysis([f"{at}.npy" for at in range(4)]) == 0, rknn.last_error
    assert rknn.export_rknn("net.rknn") == 0
    assert [one.name for one in Container.read(Path("net.rknn")).metadata.inputs] == names
    text = Path("snapshot/error_analysis.txt").read_text(encoding="utf-8")
    assert "日本" in text
    assert "[Sum] s\\n " in text


def test_a_list_as_an_output_is_refused(rknn: RKNN, tmp_path: Path) -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"])]
    value = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph(nodes, "net", [given], [value])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "list.onnx").write_bytes(model.SerializeToString())
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(tmp_path / "list.onnx") == 0, rknn.last_error
    assert rknn.build(do_quantization=False) == -1
    assert rknn.last_error == "'s' is not a tensor; inputs and outputs of a model must be numeric."
