"""Which Quantize and Dequantize nodes become the tensors' own type, and that the rewritten graph computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from hbrt.models.loading.boundary import quantized_boundary
from hbrt.models.spec.quantization import dequantize
from hbrt.models.spec.spec import QuantizationKind
from tests.each import each

CONSTANTS = "<float s = {0.5}, int8 z = {3}, float t = {0.25}, uint8 u = {200}>"
WHOLE = """
    q = QuantizeLinear(x, s, z)
    d = DequantizeLinear(q, s, z)
    r = Relu(d)
    w = QuantizeLinear(r, t, u)
    y = DequantizeLinear(w, t, u)
"""

HELD = (-128, 127)  # the zero points of an API whose structures have eight bits for them


def parse(
    body: str, inputs: str = "float[2,3] x", outputs: str = "float[2,3] y", constants: str = CONSTANTS
) -> ModelProto:
    header = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
    model = onnx.parser.parse_model(f"{header} g ({inputs}) => ({outputs}) {constants} {{{body}}}")
    onnx.checker.check_model(model)
    return model


def run(model: ModelProto, **feeds: NDArray[Any]) -> list[NDArray[Any]]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[NDArray[Any]] = session.run(None, feeds)
    return results


def kinds(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def element_types(model: ModelProto) -> list[int]:
    return [value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output]]


def test_both_ends_become_integers_and_the_given_model_stays() -> None:
    model = parse(WHOLE)
    before = model.SerializeToString()
    found = quantized_boundary(model)
    assert model.SerializeToString() == before
    assert kinds(found.model) == ["DequantizeLinear", "Relu", "QuantizeLinear"]
    assert element_types(found.model) == [TensorProto.INT8, TensorProto.UINT8]
    assert [value.name for value in [*found.model.graph.input, *found.model.graph.output]] == ["x", "y"]
    assert len(found.removed) == 2
    onnx.checker.check_model(found.model, full_check=True)
    x, y = found.quantization["x"], found.quantization["y"]
    assert (x.kind, x.scale.tolist(), x.zero_point.tolist()) == (QuantizationKind.SCALE, [0.5], [3])
    assert (y.kind, y.scale.tolist(), y.zero_point.tolist()) == (QuantizationKind.SCALE, [0.25], [200])


def test_the_rewritten_graph_computes_what_the_original_does() -> None:
    model = parse(WHOLE)
    found = quantized_boundary(model)
    real = np.random.default_rng(1).normal(0, 20, (2, 3)).astype(np.float32)
    quantized = np.clip(np.rint(real / np.float32(0.5)) + 3, -128, 127).astype(np.int8)  # as ONNX rounds
    (stored,) = run(found.model, x=quantized)
    (expected,) = run(model, x=real)
    assert stored.dtype == np.uint8
    np.testing.assert_array_equal(dequantize(stored, found.quantization["y"]), expected)


@pytest.mark.parametrize("axis", [1, -1])
def test_one_scale_for_each_index_of_an_axis(axis: int) -> None:
    constants = "<float[3] s = {0.5, 0.25, 2.0}, int8[3] z = {0, 1, -2}>"
    body = f"q = QuantizeLinear<axis = {axis}>(x, s, z) y = DequantizeLinear<axis = {axis}>(q, s, z)"
    model = parse(body, constants=constants)
    found = quantized_boundary(model)
    rule = found.quantization["x"]
    assert (rule.axis, rule.scale.tolist(), rule.zero_point.tolist()) == (1, [0.5, 0.25, 2.0], [0, 1, -2])


def test_only_the_input_goes_when_nothing_is_left_between() -> None:
    found = quantized_boundary(parse("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"))
    assert kinds(found.model) == ["DequantizeLinear"]
    assert element_types(found.model) == [TensorProto.INT8, TensorProto.FLOAT]
    assert list(found.quantization) == ["x"]
    np.testing.assert_array_equal(run(found.model, x=np.full((2, 3), 13, np.int8))[0], np.full((2, 3), 5.0))


def test_a_branch_that_reads_the_integers_keeps_reading_them() -> None:
    model = parse("""
        c = Cast<to = 9>(b)
        q = QuantizeLinear(x, s, z)
        y = If (c) <then_branch = then () => (a) { a = DequantizeLinear(q, s, z) },
                    else_branch = else () => (e) { f = DequantizeLinear(q, s, z) e = Neg(f) }>
    """, inputs="float[2,3] x, uint8[1] b")  # fmt: skip
    found = quantized_boundary(model)
    assert list(found.quantization) == ["x"]
    quantized = np.full((2, 3), 13, np.int8)
    for b in (0, 1):
        (result,) = run(found.model, x=quantized, b=np.array([b], np.uint8))
        np.testing.assert_array_equal(result, np.full((2, 3), 5.0 if b else -5.0))


def test_an_output_whose_integers_are_read_inside_too() -> None:
    model = parse("""
        r = Relu(x)
        w = QuantizeLinear(r, s, z)
        y = DequantizeLinear(w, s, z)
        v = Cast<to = 1>(w)
    """, outputs="float[2,3] y, float[2,3] v")  # fmt: skip
    found = quantized_boundary(model)
    real = np.arange(6, dtype=np.float32).reshape(2, 3)
    before, after = run(model, x=real), run(found.model, x=real)
    assert list(found.quantization) == ["y"]
    np.testing.assert_array_equal(dequantize(after[0], found.quantization["y"]), before[0])
    np.testing.assert_array_equal(after[1], before[1])


@pytest.mark.parametrize(
    ("body", "inputs", "outputs"),
    [
        pytest.param("q = QuantizeLinear(x, s, z) a = Relu(x) b = DequantizeLinear(q, s, z) y = Add(a, b)",
                     "float[2,3] x", "float[2,3] y", id="input has another reader"),
        pytest.param("q = QuantizeLinear(x, k, z) b = DequantizeLinear(q, s, z) y = Relu(b)",
                     "float[2,3] x, float k", "float[2,3] y", id="scale is an input"),
        pytest.param("k = Abs(s) q = QuantizeLinear(x, k, z) b = DequantizeLinear(q, s, z) y = Relu(b)",
                     "float[2,3] x", "float[2,3] y", id="scale is computed"),
        pytest.param("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)",
                     "float[2,3] x", "float[2,3] y, int8[2,3] q", id="integers are an output"),
        pytest.param("r = Relu(x) q = QuantizeLinear(r, s, z) y = DequantizeLinear(q, s, z) a = Abs(y)",
                     "float[2,3] x", "float[2,3] y, float[2,3] a", id="output has a reader"),
        pytest.param("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)",
                     "float[2,3] x", "float[2,3] y, float[2,3] x", id="input is an output"),
        pytest.param("r = Relu(x) q = QuantizeLinear(r, s, z) y = DequantizeLinear(q, s, z)",
                     "float[2,3] x", "float[2,3] y, int8[2,3] q", id="integers of an output are an output"),
        pytest.param("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)",
                     "float[2,3] x, float s", "float[2,3] y", id="scale is a default of an input"),
        pytest.param("y = Relu(x)", "float[2,3] x", "float[2,3] y", id="nothing quantized"),
    ],
)  # fmt: skip
def test_a_graph_that_needs_its_real_numbers_stays(body: str, inputs: str, outputs: str) -> None:
    model = parse(body, inputs, outputs)
    found = quantized_boundary(model)
    assert found.model is model
    assert found.removed == ()


@pytest.mark.parametrize(("shape", "scales"), [((2, 6), (2, 3)), ((6,), (3,))])
def test_block_quantization_stays(shape: tuple[int, ...], scales: tuple[int, ...]) -> None:
    scale = numpy_helper.from_array(np.full(scales, 0.5, np.float32), "s2")
    zero = numpy_helper.from_array(np.zeros(scales, np.int8), "z2")
    axis = len(shape) - 1
    node = helper.make_node("QuantizeLinear", ["x", "s2", "z2"], ["q"], axis=axis, block_size=2)
    back = helper.make_node("DequantizeLinear", ["q", "s2", "z2"], ["y"], axis=axis, block_size=2)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([node, back], "g", values[:1], values[1:], [scale, zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    found = quantized_boundary(model)
    assert (found.model, found.quantization) == (model, {})


@pytest.mark.parametrize("scale", ["0.0", "-0.5"])
def test_a_scale_that_quantizes_nothing_stays(scale: str) -> None:
    model = parse(
        "q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)", constants=f"<float s = {{{scale}}}, int8 z = {{0}}>"
    )
    assert quantized_boundary(model).model is model


def test_a_scale_for_each_index_needs_to_know_the_axis() -> None:
    constants = "<float[3] s = {0.5, 0.25, 2.0}, int8[3] z = {0, 1, -2}>"
    model = parse("q = QuantizeLinear<axis = -1>(x, s, z) y = Cast<to = 1>(q)", constants=constants)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert quantized_boundary(model).model is model


def test_a_zero_point_that_the_structure_cannot_hold_is_said() -> None:
    wide = "<float s = {0.5}, uint16 z = {32768}, float t = {0.25}, int16 u = {-129}, int16 w = {-128}>"
    body = "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) r = Relu(d) "
    kept = quantized_boundary(
        parse(f"{body} v = QuantizeLinear(r, t, u) y = DequantizeLinear(v, t, u)", constants=wide), held=HELD
    )
    assert (kept.removed, kept.quantization) == ((), {})
    why = "is outside -128..127, the range that the API can hold; quantize the model with a zero point of 0 there"
    stays = "keeps real numbers: the zero point"
    assert kept.notes == (
        f"The input 'x' {stays} 32768 of its QuantizeLinear (uint16) {why}",
        f"The output 'y' {stays} -129 of its DequantizeLinear (int16) {why}",
    )
    half = quantized_boundary(
        parse(f"{body} v = QuantizeLinear(r, t, w) y = DequantizeLinear(v, t, w)", constants=wide), held=HELD
    )
    assert list(half.quantization) == ["y"]
    assert [note.partition(":")[0] for note in half.notes] == ["The input 'x' keeps real numbers"]
    own = quantized_boundary(
        parse("d = DequantizeLinear(x, s, z) y = Relu(d)", inputs="uint16[2,3] x", constants=wide), held=HELD
    )
    assert own.quantization == {}
    assert own.notes[0].startswith(
        "The input 'x' reports no quantization: the zero point 32768 of its DequantizeLinear"
    )
    assert quantized_boundary(parse(WHOLE), held=HELD).notes == ()
    picture = parse("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)", constants=wide)
    assert [note[:11] for note in quantized_boundary(picture, keep={"x"}, held=HELD).notes] == ["The output "]


def test_integers_that_the_file_itself_takes_are_told() -> None:
    model = parse("d = DequantizeLinear(x, s, z) r = Relu(d) y = QuantizeLinear(r, t, u)",
                  "int8[2,3] x", "uint8[2,3] y")  # fmt: skip
    found = quantized_boundary(model)
    assert found.model is model
    assert found.quantization["x"].scale.tolist() == [0.5]
    assert found.quantization["y"].zero_point.tolist() == [200]


def test_integers_that_the_file_takes_without_a_zero_point() -> None:
    found = quantized_boundary(parse("d = DequantizeLinear(x, s) y = Relu(d)", "int8[2,3] x"))
    assert (found.quantization["x"].scale.tolist(), found.quantization["x"].zero_point.tolist()) == ([0.5], [0])


def test_nothing_is_said_of_values_that_have_gone() -> None:
    model = onnx.shape_inference.infer_shapes(parse(WHOLE))
    assert {info.name for info in model.graph.value_info} == {"q", "d", "r", "w"}
    found = quantized_boundary(model)
    assert {info.name for info in found.model.graph.value_info} == {"d", "r"}
    onnx.checker.check_model(found.model, full_check=True)


def test_images_keep_their_real_numbers() -> None:
    found = quantized_boundary(parse(WHOLE), keep={"x"})
    assert element_types(found.model) == [TensorProto.FLOAT, TensorProto.UINT8]
    assert list(found.quantization) == ["y"]


def test_without_a_zero_point_the_type_is_uint8() -> None:
    found = quantized_boundary(parse("q = QuantizeLinear(x, s) d = DequantizeLinear(q, s) r = Relu(d)"
                                     "w = QuantizeLinear(r, t) y = DequantizeLinear(w, t)"))  # fmt: skip
    assert element_types(found.model) == [TensorProto.UINT8, TensorProto.UINT8]
    assert found.quantization["y"].zero_point.tolist() == [0]


def test_microsofts_16_bit_nodes_and_constants_that_are_nodes() -> None:
    body = """
        s = Constant<value_float = 0.001>()
        z = Constant<value = uint16 {100}>()
        q = com.microsoft.QuantizeLinear(x, s, z)
        d = com.microsoft.DequantizeLinear(q, s, z)
        r = Relu(d)
        w = com.microsoft.QuantizeLinear(r, s, z)
        y = com.microsoft.DequantizeLinear(w, s, z)
    """
    found = quantized_boundary(parse(body, constants=""))
    assert element_types(found.model) == [TensorProto.UINT16, TensorProto.UINT16]
    assert found.quantization["x"].zero_point.tolist() == [100]


@each("kind, zero, is_told", [("int16", -128, True), ("int16", 3634, False), ("uint16", 128, False)])
def test_a_zero_point_that_the_c_structure_would_tell_wrongly_stays_in_the_graph(
    kind: str,
    zero: int,
    is_told: bool,  # noqa: FBT001
) -> None:
    model = parse(
        WHOLE, constants=f"<float s = {{0.5}}, {kind} z = {{{zero}}}, float t = {{0.5}}, {kind} u = {{{zero}}}>"
    )
    assert sorted(quantized_boundary(model).quantization) == ["x", "y"]
    found = quantized_boundary(model, held=HELD)
    assert sorted(found.quantization) == (["x", "y"] if is_told else [])
    if not is_told:
        assert element_types(found.model) == [TensorProto.FLOAT, TensorProto.FLOAT]


def test_constants_that_nobody_reads_any_more_leave_with_the_nodes() -> None:
    model = parse("q = QuantizeLinear(x, s, z) y = Cast<to = 1>(q)")
    found = quantized_boundary(model)
    # t and u were never read: they are the file's own, and stay.
    assert sorted(tensor.name for tensor in found.model.graph.initializer) == ["t", "u"]
