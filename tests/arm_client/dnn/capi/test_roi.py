"""hbDNNRoiInfer on a board: the manual's worked example, single and batched models, chains, misuse."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

import arm_client as hb
from arm_client.dnn.capi.roi import regions_behind
from arm_client.dnn.tensors.images import graph_input
from arm_client.dnn.tensors.resizer import Region, resize
from hbrt.dnn_types import hbDNNDataType
from tests.arm_client.dnn.nets import F32, Net, ctrl, good, model_bytes

Load = Callable[[bytes], Net]
Bytes = NDArray[np.uint8]
NV12, SEPARATE = hbDNNDataType.HB_DNN_IMG_TYPE_NV12, hbDNNDataType.HB_DNN_IMG_TYPE_NV12_SEPARATE
SIDES = {"a": (16, 32), "b": (8, 16)}


def described(data: bytes, text: str) -> bytes:
    model = ModelProto.FromString(data)
    helper.set_model_props(model, {"hbrt.description": text})
    return bytes(model.SerializeToString())


def two_resizers(batch: int = 1, graph_batch: int = 1) -> bytes:
    """y: per element the mean of each channel of a, that of b, and c."""
    axes = numpy_helper.from_array(np.array([2, 3], np.int64), "axes")
    nodes = [
        helper.make_node("ReduceMean", ["a", "axes"], ["ma"], keepdims=0),
        helper.make_node("ReduceMean", ["b", "axes"], ["mb"], keepdims=0),
        helper.make_node("Concat", ["ma", "c", "mb"], ["y"], axis=1),
    ]
    inputs = [
        ("a", F32, (graph_batch, 3, *SIDES["a"])),
        ("c", F32, (graph_batch, 4)),
        ("b", F32, (graph_batch, 3, *SIDES["b"])),
    ]
    data = model_bytes(nodes, inputs, [("y", F32, (graph_batch, 10))], [axes], name="rois")
    return described(
        data,
        f"""
        input_name: a;c;b
        input_type_rt: nv12;featuremap;nv12
        input_type_train: rgb;featuremap;bgr
        mean_value: 1 2 3;None;None
        scale_value: None;None;0.5
        input_source: {{a: resizer, b: resizer, c: ddr}}
        input_batch: {batch}
        """,
    )


class Case:
    """Pictures, regions and memory for one hbDNNRoiInfer of `two_resizers`."""

    def __init__(self, net: Net, batch: int, model_batch: int, seed: int = 0) -> None:
        self.net, self.batch = net, batch
        self.rng = np.random.default_rng(seed)
        self.rois: list[hb.hbDNNRoi] = []
        self.expected: list[NDArray[np.float32]] = []
        self.inputs = (hb.hbDNNTensor * (3 * batch))()
        self.mems: list[hb.hbSysMem] = []
        from arm_client.dnn.capi.runtime import runtime
        from arm_client.dnn.tensors.binding import one_of_batch

        specs = [one_of_batch(spec) for spec in runtime.models.get(net.handle.value).model.inputs]
        for element in range(batch):
            row = []
            for at, spec in enumerate(specs):
                tensor = self.inputs[element * 3 + at]
                good(hb.hbDNNGetInputTensorProperties(tensor.properties, net.handle, at))
                if spec.image is None:
                    values = self.rng.normal(size=(1, 4)).astype(np.float32)
                    tensor.properties.validShape.dimensionSize[0] = 1
                    tensor.properties.alignedShape.dimensionSize[0] = 1
                    self.place(tensor, 0, values)
                    row.append(values)
                    continue
                planes, region = self.picture(tensor, is_separate=element % 2 == 1)
                pixels = graph_input(spec, [resize(planes, region, SIDES[spec.name])], NV12)
                row.append(pixels.mean((2, 3)))
            self.expected.append(np.concatenate(row, 1))
        self.output = hb.hbDNNTensor()
        good(hb.hbDNNGetOutputTensorProperties(self.output.properties, net.handle, 0))
        self.rows = -(-batch // model_batch) * model_batch
        self.place(self.output, 0, np.full((self.rows, 10), np.nan, np.float32))

    def place(self, tensor: hb.hbDNNTensor, at: int, values: NDArray[Any]) -> None:
        good(hb.hbSysAllocMem(tensor.sysMem[at], values.nbytes))
        tensor.sysMem[at].array(values.dtype, values.shape)[...] = values
        self.mems.append(tensor.sysMem[at])

    def picture(self, tensor: hb.hbDNNTensor, *, is_separate: bool) -> tuple[tuple[Bytes, Bytes], Region]:
        height, width = (int(side) for side in self.rng.integers(20, 40, 2) * 2)
        stride = -(-width // 16) * 16 + 16
        luma, pairs = (self.rng.integers(0, 256, (rows, stride), np.uint8) for rows in (height, height // 2))
        properties = tensor.properties
        for shape, columns in ((properties.validShape, width), (properties.alignedShape, stride)):
            shape.dimensionSize[:4] = (1, 3, height, columns)
        if is_separate:
            properties.tensorType = SEPARATE
            self.place(tensor, 0, luma)
            self.place(tensor, 1, pairs)
        else:
            self.place(tensor, 0, np.vstack([luma, pairs]))
        left, top = (int(self.rng.integers(0, side - 20)) for side in (width, height))
        region = Region(left, top, left + int(self.rng.integers(10, 20)), top + int(self.rng.integers(10, 20)))
        self.rois.append(hb.hbDNNRoi(*region))
        return (luma[:, :width], pairs[:, :width]), region

    def infer(self, task: hb.hbDNNTaskHandle_t, more: int = 0, rois: Sequence[hb.hbDNNRoi] | None = None) -> int:
        regions = list(self.rois if rois is None else rois)
        array = (hb.hbDNNRoi * len(regions))(*regions)
        status = hb.hbDNNRoiInfer(task, self.output, self.inputs, array, len(regions), self.net.handle, ctrl(more=more))
        return int(status)

    def run(self) -> NDArray[np.float32]:
        task = hb.hbDNNTaskHandle_t()
        good(self.infer(task))
        good(hb.hbDNNWaitTaskDone(task, 0))
        good(hb.hbDNNReleaseTask(task))
        return self.result()

    def result(self) -> NDArray[np.float32]:
        copy: NDArray[np.float32] = self.output.sysMem[0].array(np.float32, (self.rows, 10)).copy()
        return copy

    def free(self) -> None:
        for mem in self.mems:
            good(hb.hbSysFreeMem(mem))


def test_the_source_of_each_input_is_told(load: Load) -> None:
    net = load(two_resizers())
    source = ctypes.c_int32(-1)
    told = [(hb.hbDNNGetInputSource(source, net.handle, at), source.value) for at in range(3)]
    resizer = (0, hb.HB_DNN_INPUT_FROM_RESIZER)
    assert told == [resizer, (0, hb.HB_DNN_INPUT_FROM_DDR), resizer]
    assert hb.hbDNNGetInputSource(source, net.handle, 3) == hb.HB_DNN_INVALID_ARGUMENT


@pytest.fixture
def case(load: Load) -> Any:
    cases: list[Case] = []

    def make(batch: int, model_batch: int = 1, seed: int = 0) -> Case:
        cases.append(Case(load(two_resizers(model_batch)), batch, model_batch, seed))
        return cases[-1]

    yield make
    for one in cases:
        one.free()


Make = Callable[..., Case]


def test_the_manuals_worked_example(case: Make) -> None:
    # 3 inputs, 2 of the resizer and 1 of DDR; a model of batch 2; 6 regions: batch 3, 9 tensors, outputs of batch 4.
    one = case(3, 2)
    assert (len(one.rois), len(one.inputs), one.rows) == (6, 9, 4)
    found = one.run()
    np.testing.assert_allclose(found[:3], np.concatenate(one.expected), rtol=1e-5)
    assert np.isfinite(found[3]).all()  # a row that is written, and says nothing


@pytest.mark.parametrize(("batch", "model_batch"), [(1, 1), (5, 1), (2, 2), (1, 4), (4, 3)])
def test_other_batches(case: Make, batch: int, model_batch: int) -> None:
    one = case(batch, model_batch, seed=batch)
    np.testing.assert_allclose(one.run()[:batch], np.concatenate(one.expected), rtol=1e-5)


def test_an_output_that_says_its_own_batch(case: Make) -> None:
    one = case(3, 2)
    one.output.properties.validShape.dimensionSize[0] = one.output.properties.alignedShape.dimensionSize[0] = 4
    np.testing.assert_allclose(one.run()[:3], np.concatenate(one.expected), rtol=1e-5)


def test_an_output_without_room_for_the_whole_batch(case: Make) -> None:
    one = case(3, 2)
    one.output.sysMem[0].memSize = 3 * 40
    assert one.infer(hb.hbDNNTaskHandle_t()) == hb.HB_DNN_INVALID_ARGUMENT
    assert "needs 160 bytes" in hb.last_error()


def test_regions_are_read_from_the_element_whose_address_is_given() -> None:
    regions = (hb.hbDNNRoi * 3)(*(hb.hbDNNRoi(at, at, at + 9, at + 9) for at in range(3)))
    ways: list[Any] = [regions, ctypes.pointer(regions[0]), ctypes.cast(regions, ctypes.POINTER(hb.hbDNNRoi))]
    for way in (*ways, ctypes.byref(regions)):
        assert [region.left for region in regions_behind(way, 2)] == [0, 1]
    assert [region.left for region in regions_behind(ctypes.byref(regions, 16), 2)] == [1, 2]


def test_regions_in_chains(case: Make) -> None:
    first, second = case(2), case(3, 2, seed=1)
    task = hb.hbDNNTaskHandle_t()
    good(first.infer(task, more=1))
    good(second.infer(task))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    np.testing.assert_allclose(first.result(), np.concatenate(first.expected), rtol=1e-5)
    np.testing.assert_allclose(second.result()[:3], np.concatenate(second.expected), rtol=1e-5)


def test_a_chain_ends_at_255_elements(case: Make) -> None:
    one = case(1)
    rows = 128
    good(hb.hbSysFreeMem(one.mems.pop()))  # the output's
    one.place(one.output, 0, np.zeros((rows, 10), np.float32))
    inputs, rois = list(one.inputs) * rows, (hb.hbDNNRoi * (2 * rows))(*one.rois * rows)

    def infer(more: int) -> int:
        status = hb.hbDNNRoiInfer(task, one.output, inputs, rois, len(rois), one.net.handle, ctrl(more=more))
        return int(status)

    task = hb.hbDNNTaskHandle_t()
    good(infer(more=1))
    assert infer(more=0) == hb.HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT
    assert "256 inferences" in hb.last_error()
    good(hb.hbDNNReleaseTask(task))
    task = hb.hbDNNTaskHandle_t()
    good(infer(more=0))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    found = one.output.sysMem[0].array(np.float32, (rows, 10))
    np.testing.assert_allclose(found, one.expected[0].repeat(rows, 0), rtol=1e-5)


def refused(one: Case, says: str, rois: Sequence[hb.hbDNNRoi] | None = None) -> None:
    task = hb.hbDNNTaskHandle_t()
    assert one.infer(task, rois=rois) == hb.HB_DNN_INVALID_ARGUMENT
    assert says in hb.last_error()
    assert task.value is None


def test_misuse(case: Make) -> None:
    one = case(2)
    refused(one, "roiCount is 3", one.rois[:3])
    refused(one, "no hbDNNTensor at index 6", one.rois * 2)
    refused(one, "exceeds its picture", [hb.hbDNNRoi(0, 0, 4000, 9), *one.rois[1:]])
    refused(one, "pixels wide", [hb.hbDNNRoi(5, 0, 5, 9), *one.rois[1:]])
    properties = one.inputs[0].properties
    properties.alignedShape.dimensionSize[3] += 8
    refused(one, "multiple of 16")
    properties.alignedShape.dimensionSize[3] -= 8
    properties.validShape.dimensionSize[2] -= 1
    refused(one, "make them even")
    properties.validShape.dimensionSize[2] += 2
    refused(one, "smaller than its validShape")
    properties.validShape.dimensionSize[2] -= 1
    properties.validShape.dimensionSize[0] = properties.alignedShape.dimensionSize[0] = 2
    refused(one, "holds one picture")
    properties.validShape.dimensionSize[0] = properties.alignedShape.dimensionSize[0] = 1
    properties.tensorType = hbDNNDataType.HB_DNN_IMG_TYPE_Y
    refused(one, "the model takes NV12 and NV12_SEPARATE")
    properties.tensorType = NV12
    one.inputs[0].sysMem[0].memSize -= 64
    refused(one, "memSize")
    one.inputs[0].sysMem[0].memSize += 64
    phy_addr = one.inputs[0].sysMem[0].phyAddr
    one.inputs[0].sysMem[0].phyAddr = 0x7000_0000
    refused(one, "0x70000000")
    one.inputs[0].sysMem[0].phyAddr = phy_addr
    np.testing.assert_allclose(one.run(), np.concatenate(one.expected), rtol=1e-5)


@pytest.mark.parametrize("model_batch", [1, 2])
def test_pictures_whose_aligned_shape_alone_is_set(case: Make, model_batch: int) -> None:
    one = case(2, model_batch)
    for at, tensor in enumerate(one.inputs):
        if name := "a b"[at % 3].strip():
            tensor.properties.validShape.dimensionSize[:4] = (model_batch, 3, *SIDES[name])
    np.testing.assert_allclose(one.run(), np.concatenate(one.expected), rtol=1e-5)
    properties = one.inputs[0].properties
    width, height = properties.alignedShape.dimensionSize[3], properties.alignedShape.dimensionSize[2]
    refused(one, f"whose pixels are 0..{width - 1} by 0..{height - 1}", [hb.hbDNNRoi(0, 0, width, 9), *one.rois[1:]])


def test_a_tensor_of_the_whole_batch_beside_regions(case: Make) -> None:
    one = case(2, 2)
    properties = one.inputs[1].properties
    properties.validShape.dimensionSize[0] = properties.alignedShape.dimensionSize[0] = 2
    refused(
        one, "'c' has the validShape [2, 4], the model's whole batch; each tensor of hbDNNRoiInfer holds one element"
    )
    properties.validShape.dimensionSize[0] = properties.alignedShape.dimensionSize[0] = 1
    np.testing.assert_allclose(one.run(), np.concatenate(one.expected), rtol=1e-5)


@pytest.mark.parametrize("rois", [None, 0, [], [1, 2], "rois"])
def test_regions_that_are_none(case: Make, rois: Any) -> None:
    one = case(1)
    task = hb.hbDNNTaskHandle_t()
    status = hb.hbDNNRoiInfer(task, one.output, one.inputs, rois, 2, one.net.handle, ctrl())
    assert status == hb.HB_DNN_INVALID_ARGUMENT
    assert "no hbDNNRoi at index 0" in hb.last_error()


def test_each_call_for_its_own_models(case: Make, load: Load) -> None:
    one = case(1)
    task = hb.hbDNNTaskHandle_t()
    assert hb.hbDNNInfer(task, one.output, one.inputs, one.net.handle, ctrl()) == hb.HB_DNN_API_USE_ERROR
    assert "hbDNNRoiInfer" in hb.last_error()
    plain = load(model_bytes([helper.make_node("Neg", ["x"], ["y"])], [("x", F32, (1, 4))], [("y", F32, (1, 4))]))
    roi = hb.hbDNNRoi(0, 0, 9, 9)
    status = hb.hbDNNRoiInfer(task, plain.outputs, plain.inputs, roi, 1, plain.handle, ctrl())
    assert status == hb.HB_DNN_INVALID_ARGUMENT
    assert "has no resizer input" in hb.last_error()


def test_an_output_that_is_no_batch_holds_one_run(load: Load) -> None:
    data = model_bytes(
        [helper.make_node("ReduceMean", ["a"], ["y"], keepdims=0)], [("a", F32, (1, 3, 16, 32))], [("y", F32, ())]
    )
    text = "{input_name: a, input_type_rt: nv12, input_type_train: yuv444, input_source: {a: resizer}}"
    net = load(described(data, text))
    net.fill(np.full(net.inputs[0].properties.alignedByteSize, 128, np.uint8))
    rois = (hb.hbDNNRoi * 2)(hb.hbDNNRoi(0, 0, 9, 9), hb.hbDNNRoi(0, 0, 9, 9))
    task = hb.hbDNNTaskHandle_t()
    inputs = [net.inputs[0]] * 2
    status = hb.hbDNNRoiInfer(task, net.outputs, inputs, rois, 2, net.handle, ctrl())
    assert status == hb.HB_DNN_API_USE_ERROR
    assert "do not fit in one tensor" in hb.last_error()
    good(hb.hbDNNRoiInfer(task, net.outputs, inputs, rois, 1, net.handle, ctrl()))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    assert net.read() == 128


def test_single_resizers_with_one_batched_input(load: Load) -> None:
    # The manual: not supported; the model is to be compiled with a batch.
    axes = numpy_helper.from_array(np.array([2, 3], np.int64), "axes")
    nodes = [
        helper.make_node("ReduceMean", ["a", "axes"], ["m"], keepdims=0),
        helper.make_node("Add", ["m", "c"], ["y"]),
    ]
    data = model_bytes(nodes, [("a", F32, (1, 3, 16, 32)), ("c", F32, (4, 3))], [("y", F32, (4, 3))], [axes])
    net = load(
        described(data, "{input_name: a, input_type_rt: nv12, input_type_train: rgb, input_source: {a: resizer}}")
    )
    task, roi = hb.hbDNNTaskHandle_t(), hb.hbDNNRoi(0, 0, 9, 9)
    status = hb.hbDNNRoiInfer(task, net.outputs, net.inputs, roi, 1, net.handle, ctrl())
    assert status == hb.HB_DNN_INVALID_ARGUMENT
    assert "needs equal batches" in hb.last_error()


def test_no_argument_makes_it_raise(case: Make) -> None:
    one = case(1)
    rois = (hb.hbDNNRoi * 2)(*one.rois)
    fine: list[Any] = [hb.hbDNNTaskHandle_t(), one.output, one.inputs, rois, 2, one.net.handle, ctrl()]
    for at in range(len(fine)):
        for wrong in (
            None,
            0,
            -1,
            "x",
            1.5,
            object(),
            [],
            [None] * 9,
            hb.hbDNNTensor,
            ctypes.c_void_p(),
            hb.hbDNNRoi(),
        ):
            arguments = [*fine]
            arguments[at] = wrong
            status = hb.hbDNNRoiInfer(*arguments)
            assert status in {hb.HB_DNN_INVALID_ARGUMENT, hb.HB_DNN_INVALID_DNN_HANDLE}, (at, wrong)
            assert hb.last_error()
    task = fine[0]
    good(hb.hbDNNRoiInfer(*fine))
    assert hb.hbDNNRoiInfer(*fine) == hb.HB_DNN_API_USE_ERROR
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))


@pytest.fixture
def kept() -> list[Case]:
    """One case for all examples of a property."""
    return []


_INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
_CORNER = st.integers(-2, 90) | _INT32


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(corners=st.tuples(_CORNER, _CORNER, _CORNER, _CORNER))
def test_any_region_is_run_or_refused(case: Make, kept: list[Case], corners: tuple[int, int, int, int]) -> None:
    one = kept[0] if kept else case(1)
    kept[:] = [one]
    task = hb.hbDNNTaskHandle_t()
    status = one.infer(task, rois=[hb.hbDNNRoi(*corners), one.rois[1]])
    if status:
        assert status == hb.HB_DNN_INVALID_ARGUMENT
        assert str(corners) in hb.last_error()
        return
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    assert np.isfinite(one.result()).all()
