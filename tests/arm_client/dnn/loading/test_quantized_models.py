"""Models that onnxruntime's quantizer made, through the C names, against the file as it is in exact arithmetic."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import arm_client as hb
from arm_client.dnn.capi.runtime import runtime
from arm_client.dnn.spec.spec import TensorSpec
from hbrt.dnn_types import hbDNNQuantiType
from hbrt.models.spec.quantization import quantize
from tests.arm_client.dnn.exact import exact
from tests.arm_client.dnn.nets import F32, Net, ctrl, good, model_bytes

Load = Callable[[bytes], Net]
SHAPE = (1, 3, 9, 11)


class Pictures(CalibrationDataReader):  # type: ignore[misc]
    """Some inputs to calibrate with."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self._inputs: Iterator[dict[str, NDArray[Any]]] = iter(
            [{"x": rng.normal(0.3, 1, SHAPE).astype(np.float32)} for _ in range(8)]
        )

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        return next(self._inputs, None)


def convolutions() -> bytes:
    """Two convolutions: the output is four-dimensional."""
    rng = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in (("w1", (8, 3, 3, 3)), ("b1", (8,)), ("w2", (5, 8, 3, 3)), ("b2", (5,)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["y"], pads=[1, 1, 1, 1]),
    ]
    return model_bytes(nodes, [("x", F32, SHAPE)], [("y", F32, (1, 5, 9, 11))], weights)


@pytest.fixture(params=[False, True], ids=["per-tensor", "per-channel"])
def quantized(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    float_file, file = tmp_path / "float.onnx", tmp_path / "int8.onnx"
    float_file.write_bytes(convolutions())
    quantize_static(
        str(float_file),
        str(file),
        Pictures(),
        quant_format=QuantFormat.QDQ,
        per_channel=request.param,
        activation_type=QuantType.QUInt8 if request.param else QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    return file.read_bytes()


def specs_of(net: Net) -> tuple[TensorSpec, TensorSpec]:
    model = runtime.models.get(net.handle.value).model
    return model.inputs[0], model.outputs[0]


def scale_of(tensor: hb.hbDNNTensor) -> tuple[float, int]:
    """Scale and zero point as a C program reads them."""
    told = tensor.properties.scale
    assert (tensor.properties.quantiType, told.scaleLen, told.zeroPointLen) == (hbDNNQuantiType.SCALE, 1, 1)
    return told.scaleData[0], told.zeroPointData[0]


def onnx_quantize(values: NDArray[Any], scale: float, zero: int, dtype: Any) -> NDArray[Any]:
    """As QuantizeLinear: rounds, then adds the zero point."""
    limits = np.iinfo(dtype)
    steps = np.rint(values / np.float32(scale)).astype(np.int64) + zero
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def padded(tensor: hb.hbDNNTensor, dtype: Any) -> NDArray[Any]:
    """The tensor's memory, of its aligned shape."""
    shape = tuple(tensor.properties.alignedShape.dimensionSize[:4])
    array: NDArray[Any] = tensor.sysMem[0].array(dtype, shape)
    return array


def test_the_integers_are_those_of_exact_arithmetic(load: Load, quantized: bytes) -> None:
    net = load(quantized)
    (source, result) = specs_of(net)
    scale, _ = scale_of(net.inputs[0])
    zero = int(source.quantization.zero_point[0]) if source.quantization else 0
    values = np.random.default_rng(11).normal(0.3, 1.5, SHAPE).astype(np.float32)
    stored = onnx_quantize(values, scale, zero, source.graph_dtype)
    assert source.aligned_shape == (1, 3, 9, 16)
    padded(net.inputs[0], source.graph_dtype)[..., :11] = stored
    assert net.run() == 0, hb.last_error()
    found = padded(net.outputs[0], result.graph_dtype)
    out_scale, _ = scale_of(net.outputs[0])
    assert result.quantization is not None
    out_zero = int(result.quantization.zero_point[0])
    # y = (q - zero) * scale is undone exactly: q is what the original computed before its last node.
    taken = (stored.astype(np.float64) - zero) * scale
    expected = np.rint(exact(quantized, {"x": taken}) / out_scale).astype(np.int64) + out_zero
    np.testing.assert_array_equal(found[..., :11], expected)
    assert len(np.unique(found[..., :11])) > 50
    assert not found[..., 11:].any()  # padding is zero


def test_the_runtime_pads_when_aligned_is_set_to_valid(load: Load, quantized: bytes) -> None:
    net = load(quantized)
    source, result = specs_of(net)
    values = np.random.default_rng(12).integers(0, 100, SHAPE).astype(source.graph_dtype)
    padded(net.inputs[0], source.graph_dtype)[..., :11] = values
    assert net.run() == 0
    expected = padded(net.outputs[0], result.graph_dtype)[..., :11].copy()
    for tensor in (net.inputs[0], net.outputs[0]):
        tensor.properties.alignedShape = tensor.properties.validShape
    net.fill(values)
    assert net.run() == 0, hb.last_error()
    np.testing.assert_array_equal(net.read(result.graph_dtype), expected)


def test_what_lies_in_the_padding_does_not_matter(load: Load, quantized: bytes) -> None:
    net = load(quantized)
    source, result = specs_of(net)
    array = padded(net.inputs[0], source.graph_dtype)
    array[...] = 3
    assert net.run() == 0
    expected = padded(net.outputs[0], result.graph_dtype).copy()
    array[..., 11:] = 99
    assert net.run() == 0
    np.testing.assert_array_equal(padded(net.outputs[0], result.graph_dtype), expected)


def test_vendors_rounding_gives_other_integers_only_at_ties(load: Load, quantized: bytes) -> None:
    source, _ = specs_of(load(quantized))
    rule = source.quantization
    assert rule is not None
    scale, zero = float(rule.scale[0]), int(rule.zero_point[0])
    values = np.random.default_rng(13).normal(0, 1, 100_000).astype(np.float32)
    vendor = quantize(values, rule, source.graph_dtype).astype(np.int64)
    onnx = onnx_quantize(values, scale, zero, source.graph_dtype)
    differs = vendor != onnx
    distance = np.abs(values[differs] / np.float32(scale) % 1 - 0.5)
    assert differs.mean() < 1e-3
    assert (distance < 1e-4).all()


def shift_model(scale: float) -> bytes:
    constants = [
        helper.make_tensor("s", TensorProto.FLOAT, [], [scale]),
        helper.make_tensor("z", TensorProto.INT8, [], [0]),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Neg", ["d"], ["n"]),
        helper.make_node("QuantizeLinear", ["n", "s", "z"], ["w"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["y"]),
    ]
    return model_bytes(nodes, [("x", F32, (1, 4))], [("y", F32, (1, 4))], constants, opset=13)


@pytest.mark.parametrize(("wanted", "kind"), [("shift", 1), ("scale", 2)])
def test_shift_is_told_when_the_description_asks_for_it(load: Load, wanted: str, kind: int) -> None:
    model = ModelProto.FromString(shift_model(0.125))
    helper.set_model_props(model, {"hbrt.description": f"quanti_type: {wanted}"})
    net = load(model.SerializeToString())
    for tensor in (net.inputs[0], net.outputs[0]):
        assert tensor.properties.quantiType == kind
    if kind == hbDNNQuantiType.SHIFT:
        assert (net.inputs[0].properties.shift.shiftLen, net.inputs[0].properties.shift.shiftData[0]) == (1, 3)
    net.fill(np.array([[1, -128, 127, 0]], np.int8))
    assert net.run() == 0
    assert net.read(np.int8).tolist() == [[-1, 127, -127, 0]]


def test_a_scale_for_each_channel(load: Load) -> None:
    constants = [
        numpy_helper.from_array(np.array([0.5, 0.25, 2], np.float32), "s"),
        numpy_helper.from_array(np.array([0, 1, -2], np.int8), "z"),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    net = load(model_bytes(nodes, [("x", F32, (1, 3, 2))], [("y", F32, (1, 3, 2))], constants, opset=13))
    told = net.inputs[0].properties
    assert (told.quantiType, told.quantizeAxis, told.scale.scaleLen) == (2, 1, 3)
    assert told.scale.scaleData[:3] == [0.5, 0.25, 2.0]
    assert told.scale.zeroPointData[:3] == [0, 1, -2]
    net.fill(np.array([[[2, -2], [5, 1], [0, -1]]], np.int8))
    assert net.run() == 0
    assert net.read().tolist() == [[[1.0, 0.0], [1.0, 0.0], [4.0, 2.0]]]


def test_properties_outlive_the_model(load: Load) -> None:
    packed, handle = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
    data = shift_model(0.3)
    good(hb.hbDNNInitializeFromDDR(packed, [data], [len(data)], 1))
    names, count = ctypes.POINTER(ctypes.c_char_p)(), ctypes.c_int32()
    good(hb.hbDNNGetModelNameList(names, count, packed))
    good(hb.hbDNNGetModelHandle(handle, packed, names[0]))
    properties = hb.hbDNNTensorProperties()
    good(hb.hbDNNGetInputTensorProperties(properties, handle, 0))
    good(hb.hbDNNRelease(packed))
    assert properties.scale.scaleData[0] == np.float32(0.3)


def test_real_numbers_are_refused_by_their_bytes(load: Load, quantized: bytes) -> None:
    net = load(quantized)
    net.inputs[0].properties.tensorType = hb.hbDNNDataType.HB_DNN_TENSOR_TYPE_F32
    task = hb.hbDNNTaskHandle_t()
    assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()) == hb.HB_DNN_INVALID_ARGUMENT
    assert "HB_DNN_TENSOR_TYPE_F32" in hb.last_error()
