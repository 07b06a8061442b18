"""Models with a description, through the C names: pictures, batches, layouts; and descriptions that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

import arm_client as hb
from arm_client.dnn.errors import ModelError
from arm_client.dnn.loading.description_file import parse
from arm_client.dnn.loading.model_specs import Specified, specify
from arm_client.dnn.tensors.images import encode
from hbrt.dnn_types import hbDNNDataType, hbDNNTensorLayout
from hbrt.models.loading import model_file
from hbrt.models.spec.graph_edits import graph_inputs
from hbrt.status import Status
from tests.arm_client.dnn.nets import F32, Net, ctrl, good, model_bytes
from tests.each import each

Load = Callable[[bytes], Net]
T = hbDNNDataType
NHWC, NCHW, _ = hbDNNTensorLayout


def described(data: bytes, text: str) -> bytes:
    model = ModelProto.FromString(data)
    helper.set_model_props(model, {"hbrt.description": text})
    return bytes(model.SerializeToString())


def identity(*shape: int | str, element: int = F32) -> bytes:
    return model_bytes([helper.make_node("Identity", ["x"], ["y"])], [("x", element, shape)], [("y", element, shape)])


def specified(data: bytes, text: str) -> Specified:
    proto = model_file.read_bytes(data, "test").proto
    before = proto.SerializeToString()
    found = specify(proto, parse(text, [value.name for value in graph_inputs(proto.graph)]))
    assert proto.SerializeToString() == before
    return found


def picture(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    """Random colors, each on 2 x 2 pixels, so that NV12 loses none."""
    small = np.random.default_rng(seed).integers(0, 256, (height // 2, width // 2, 3), np.uint8)
    return small.repeat(2, 0).repeat(2, 1)


def write(mem: hb.hbSysMem, plane: NDArray[np.uint8]) -> None:
    mem.array(np.uint8, plane.shape)[...] = plane


NV12 = "{input_type_rt: nv12, input_type_train: rgb, mean_value: 10, scale_value: 0.5}"


def close_to(found: NDArray[Any], bgr: NDArray[np.uint8]) -> bool:
    """Whether a (1, 3, H, W) result is the picture in RGB, less 10, by half."""
    expected = (bgr[:, :, ::-1].transpose(2, 0, 1) - np.float32(10)) * np.float32(0.5)
    return bool(np.abs(found[0] - expected).max() <= 1.5)  # 3 of 255


def test_nv12(load: Load) -> None:
    net = load(described(identity(1, 3, 6, 20), NV12))
    properties = net.inputs[0].properties
    assert properties.tensorType == T.HB_DNN_IMG_TYPE_NV12
    assert properties.alignedShape.dimensionSize[:4] == [1, 3, 6, 32]
    assert properties.stride[:] == [0] * 8
    assert properties.alignedByteSize == 6 * 32 * 3 // 2
    bgr = picture(6, 20)
    write(net.inputs[0].sysMem[0], encode(bgr, T.HB_DNN_IMG_TYPE_NV12, stride_multiple=16)[0])
    assert net.run() == 0, hb.last_error()
    assert close_to(net.read(), bgr)


def test_nv12_in_two_blocks_with_a_stride_of_the_callers(load: Load) -> None:
    net = load(described(identity(1, 3, 6, 20), NV12))
    tensor, bgr = net.inputs[0], picture(6, 20)
    expected = encode(bgr, T.HB_DNN_IMG_TYPE_NV12, stride_multiple=16)[0]
    write(tensor.sysMem[0], expected)
    assert net.run() == 0
    before = net.read()
    good(hb.hbSysFreeMem(tensor.sysMem[0]))
    tensor.properties.tensorType = T.HB_DNN_IMG_TYPE_NV12_SEPARATE
    tensor.properties.alignedShape.dimensionSize[3] = 48
    for mem, plane in zip(
        tensor.sysMem, encode(bgr, T.HB_DNN_IMG_TYPE_NV12_SEPARATE, stride_multiple=48), strict=False
    ):
        good(hb.hbSysAllocMem(mem, plane.nbytes))
        write(mem, plane)
    assert net.run() == 0, hb.last_error()
    np.testing.assert_array_equal(net.read(), before)


def test_a_crop_by_its_address(load: Load) -> None:
    net = load(described(identity(1, 3, 6, 20), NV12))
    tensor, bgr = net.inputs[0], picture(20, 64)
    luma, pairs = encode(bgr, T.HB_DNN_IMG_TYPE_NV12_SEPARATE)
    whole = [hb.hbSysMem(), hb.hbSysMem()]
    for at, (mem, plane, row) in enumerate(zip(whole, (luma, pairs), (4, 2), strict=True)):
        good(hb.hbSysAllocMem(mem, plane.nbytes))
        write(mem, plane)
        if at == 0:
            good(hb.hbSysFreeMem(tensor.sysMem[0]))
        tensor.sysMem[at] = hb.hbSysMem(mem.phyAddr + row * 64 + 16, None, plane.nbytes - row * 64 - 16)
    tensor.properties.tensorType = T.HB_DNN_IMG_TYPE_NV12_SEPARATE
    tensor.properties.alignedShape.dimensionSize[3] = 64
    assert net.run() == 0, hb.last_error()
    assert close_to(net.read(), bgr[4:10, 16:36])
    tensor.sysMem[0].phyAddr += 8
    assert hb.hbDNNInfer(hb.hbDNNTaskHandle_t(), net.outputs, net.inputs, net.handle, ctrl()) == -6000001
    assert "to the left by 8 pixels" in hb.last_error()
    for mem in whole:
        good(hb.hbSysFreeMem(mem))


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_batch_of_pictures(load: Load, *, is_apart: bool) -> None:
    net = load(described(identity(1, 3, 6, 20), NV12.replace("}", ", input_batch: 3}")))
    assert net.inputs[0].properties.validShape.dimensionSize[:4] == [3, 3, 6, 20]
    assert net.outputs[0].properties.validShape.dimensionSize[:4] == [3, 3, 6, 20]
    pictures = [picture(6, 20, seed) for seed in range(3)]
    planes = [encode(bgr, T.HB_DNN_IMG_TYPE_NV12, stride_multiple=16)[0] for bgr in pictures]
    if is_apart:
        tensors = (hb.hbDNNTensor * 3)()
        for tensor, plane in zip(tensors, planes, strict=True):
            tensor.properties = net.inputs[0].properties
            for shape in (tensor.properties.validShape, tensor.properties.alignedShape):
                shape.dimensionSize[0] = 1
            good(hb.hbSysAllocMem(tensor.sysMem[0], plane.nbytes))
            write(tensor.sysMem[0], plane)
        good(hb.hbSysFreeMem(net.inputs[0].sysMem[0]))
        net.inputs = tensors
    else:
        write(net.inputs[0].sysMem[0], np.vstack(planes))
    assert net.run() == 0, hb.last_error()
    found = net.read()
    assert all(close_to(found[at : at + 1], bgr) for at, bgr in enumerate(pictures))


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by ``usefixtures``, it comes before the board: the mode is read when a process attaches."""
    monkeypatch.setenv("HBRT_CACHE", "strict")


@pytest.mark.usefixtures("strict")
def test_the_bpu_reads_ddr_and_not_the_cpus_cache(load: Load) -> None:
    net = load(described(identity(1, 1, 2, 16), "{input_type_rt: gray}"))
    mem = net.inputs[0].sysMem[0]
    good(hb.hbSysFreeMem(mem))
    good(hb.hbSysAllocCachedMem(mem, 32))
    write(mem, np.full((2, 16), 7, np.uint8))
    assert net.run() == 0
    assert (net.read() == 0).all()
    good(hb.hbSysFlushMem(mem, hb.HB_SYS_MEM_CACHE_CLEAN))
    assert net.run() == 0
    assert (net.read() == 7).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: setattr(p, "tensorType", T.HB_DNN_IMG_TYPE_RGB), "the model takes NV12 and NV12_SEPARATE"),
        (lambda p: p.validShape.dimensionSize.__setitem__(3, 18), "leave it as hbDNNGetInputTensorProperties"),
        (lambda p: p.alignedShape.dimensionSize.__setitem__(3, 24), "multiple of 16"),
        (lambda p: p.alignedShape.dimensionSize.__setitem__(3, 16), "smaller than its validShape"),
    ],
)
def test_rules_of_pictures(load: Load, change: Callable[[Any], None], says: str) -> None:
    net = load(described(identity(1, 3, 6, 20), NV12))
    change(net.inputs[0].properties)
    assert hb.hbDNNInfer(hb.hbDNNTaskHandle_t(), net.outputs, net.inputs, net.handle, ctrl()) == -6000001
    assert says in hb.last_error()


def test_a_picture_for_a_quantized_graph(load: Load) -> None:
    constants = [
        numpy_helper.from_array(np.array(0.5, np.float32), "s"),
        numpy_helper.from_array(np.array(10, np.uint8), "z"),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Neg", ["d"], ["y"]),
    ]
    data = model_bytes(nodes, [("x", F32, (1, 1, 2, 16))], [("y", F32, (1, 1, 2, 16))], constants, opset=13)
    net = load(described(data, "{input_type_rt: gray, mean_value: 7}"))
    assert net.inputs[0].properties.quantiType == 0
    pixels = np.arange(32, dtype=np.uint8).reshape(2, 16) * 5
    write(net.inputs[0].sysMem[0], pixels)
    assert net.run() == 0, hb.last_error()
    steps = np.clip(np.rint((pixels - np.float32(7)) / 0.5) + 10, 0, 255)
    np.testing.assert_array_equal(net.read()[0, 0], -(steps - 10) * 0.5)


def test_the_file_beside_the_model(dsp_board: object, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(identity(1, 3, 6, 20))
    (tmp_path / "net.yaml").write_text(f"output_model_file_prefix: camera\ninput_parameters: {NV12}")
    packed, handle = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
    good(hb.hbDNNInitializeFromFiles(packed, [str(tmp_path / "net.onnx")], 1))
    good(hb.hbDNNGetModelHandle(handle, packed, "camera"))
    properties = hb.hbDNNTensorProperties()
    good(hb.hbDNNGetInputTensorProperties(properties, handle, 0))
    assert properties.tensorType == T.HB_DNN_IMG_TYPE_NV12
    good(hb.hbDNNRelease(packed))
    (tmp_path / "net.yaml").write_text("input_type_rt: nv13")
    assert hb.hbDNNInitializeFromFiles(packed, [str(tmp_path / "net.onnx")], 1) == hb.HB_DNN_INCOMPATIBLE_MODEL
    assert "input_type_rt is 'nv13'" in hb.last_error()


def test_a_featuremap_in_another_layout(load: Load) -> None:
    text = "{input_layout_rt: NHWC, input_layout_train: NCHW}"
    net = load(described(identity(1, 3, 2, 5), text))
    assert net.inputs[0].properties.validShape.dimensionSize[:4] == [1, 2, 5, 3]
    assert net.inputs[0].properties.tensorLayout == NHWC
    values = np.arange(30, dtype=np.float32).reshape(1, 2, 5, 3)
    net.fill(values)
    assert net.run() == 0
    np.testing.assert_array_equal(net.read(), values.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(("rt", "train", "axis"), [("NHWC", "NCHW", 3), ("NCHW", "NHWC", 2)])
def test_a_channels_scale_moves_with_its_dimension(load: Load, rt: str, train: str, axis: int) -> None:
    constants = [
        numpy_helper.from_array(np.array([1, 2, 4], np.float32), "s"),
        numpy_helper.from_array(np.zeros(3, np.int8), "z"),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    data = model_bytes(nodes, [("x", F32, (1, 3, 2, 5))], [("y", F32, (1, 3, 2, 5))], constants, opset=13)
    net = load(described(data, f"{{input_layout_rt: {rt}, input_layout_train: {train}}}"))
    properties = net.inputs[0].properties
    assert properties.quantizeAxis == axis
    assert properties.validShape.dimensionSize[axis] == 3
    stored = np.ones(properties.validShape.dimensionSize[:4], np.int8)
    net.inputs[0].properties.alignedShape = properties.validShape
    net.fill(stored)
    assert net.run() == 0, hb.last_error()
    assert [sorted(set(plane.flat)) for plane in net.read()[0]] == [[1.0], [2.0], [4.0]]


def test_shapes_that_the_graph_leaves_open() -> None:
    found = specified(identity("n", 3, "h", "w"), "{input_shape: 1x3x6x20, input_type_rt: rgb}")
    assert found.inputs[0].valid_shape == (1, 3, 6, 20)
    assert specified(identity("n", 4), "").inputs[0].is_dynamic


def test_the_layout_that_only_the_last_size_allows() -> None:
    found = specified(identity(1, 6, 20, 3), "input_type_rt: rgb")
    assert (found.inputs[0].layout, found.inputs[0].valid_shape) == (NHWC, (1, 6, 20, 3))


def test_layouts_are_told_for_four_dimensions_only() -> None:
    assert specified(identity(1, 6), "input_layout_rt: NHWC").inputs[0].layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NONE
    assert specified(identity(1, 6, 2, 3), "input_layout_train: NHWC").inputs[0].layout == NHWC


def reshape_to(*sizes: int) -> bytes:
    shape = numpy_helper.from_array(np.array(sizes, np.int64), "shape")
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    return model_bytes([node], [("x", F32, (1, 6))], [("y", F32, (1, 2, 3))], [shape])


def test_a_batch_that_the_graph_can_compute() -> None:
    found = specified(reshape_to(-1, 2, 3), "input_batch: 4")
    assert (found.inputs[0].valid_shape, found.outputs[0].valid_shape) == ((4, 6), (4, 2, 3))


def test_what_the_file_says_of_values_inside_does_not_hold_for_a_batch() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Abs", ["n"], ["y"])]
    model = ModelProto.FromString(model_bytes(nodes, [("x", F32, (1, 6))], [("y", F32, (1, 6))]))
    model.graph.value_info.append(helper.make_tensor_value_info("n", F32, (1, 6)))
    found = specified(model.SerializeToString(), "input_batch: 4")
    assert found.outputs[0].valid_shape == (4, 6)
    assert [info.name for info in found.proto.graph.value_info] == []


@each(
    "data, text, says",
    [
        (reshape_to(1, 2, -1), "input_batch: 4", "fixes its own batch"),
        (identity(2, 3), "input_batch: 4", "has the shape [2, 3]"),
        (identity(), "input_batch: 4", "has the shape []"),
        (identity(1, 3, 6, 20), "input_shape: 1x3x6x21", "the graph has [1, 3, 6, 20]"),
        (identity(1, 3, 6, 20), "input_shape: 3x6x20", "the graph has [1, 3, 6, 20]"),
        (identity(1, 3, 5, 20), NV12, "both must be even"),
        (identity(1, 4, 6, 20), NV12, "4 channels"),
        (identity(1, 3, 6, 20), "input_type_rt: gray", "3 channels"),
        (identity(1, 3, "h", 20), NV12, "input_shape"),
        (identity(1, 3, 6, 20, element=3), NV12, "its type is int8 in the graph"),
        (identity(1, 3, 6, 20, element=2), NV12, "remove mean_value"),
    ],
)
def test_descriptions_that_do_not_fit_the_graph(data: bytes, text: str, says: str) -> None:
    with pytest.raises(ModelError) as error:
        specified(data, text)
    assert says in str(error.value)
    assert error.value.status == Status.HB_DNN_INCOMPATIBLE_MODEL


def test_outputs_without_a_shape_get_the_one_that_onnx_infers() -> None:
    data = model_bytes([helper.make_node("Neg", ["x"], ["y"])], [("x", F32, (2, 3))], [("y", F32, None)])
    assert specified(data, "").outputs[0].valid_shape == (2, 3)


def test_a_default_of_an_input_is_no_input() -> None:
    default = numpy_helper.from_array(np.ones((1, 4), np.float32), "k")
    inputs: Sequence[Any] = [("x", F32, (1, 4)), ("k", F32, (1, 4))]
    data = model_bytes([helper.make_node("Add", ["x", "k"], ["y"])], inputs, [("y", F32, (1, 4))], [default])
    assert [spec.name for spec in specified(data, "").inputs] == ["x"]
