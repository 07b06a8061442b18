"""Tensors in device memory: batches at several addresses, open sizes, types, caches, and bad tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from onnx import TensorProto, helper

import arm_client as hb
from arm_client.client import Board
from arm_client.dnn.tensors.binding import Bindings
from hbrt.dnn_types import hbDNNDataType
from tests.arm_client.dnn.nets import Net, ctrl, double, f32, good, model_bytes

Load = Callable[[bytes], Net]


def refused(net: Net, status: int = hb.HB_DNN_INVALID_ARGUMENT, *, inputs: Any = None, outputs: Any = None) -> str:
    """The sentence of an inference that must be refused with this status."""
    task = hb.hbDNNTaskHandle_t()
    given = (net.outputs if outputs is None else outputs, net.inputs if inputs is None else inputs)
    assert hb.hbDNNInfer(task, *given, net.handle, ctrl()) == status, hb.last_error()
    assert not task.value
    return hb.last_error()


def test_inputs_and_outputs_lie_at_addresses_inside_one_block(load: Load) -> None:
    net = load(double())
    block = hb.hbSysMem()
    good(hb.hbSysAllocMem(block, 64))
    block.array(np.float32)[4:8] = [1, 2, 3, 4]
    outside = [net.inputs[0].sysMem[0], net.outputs[0].sysMem[0]]
    kept = [hb.hbSysMem(mem.phyAddr, mem.virAddr, mem.memSize) for mem in outside]
    for mem, offset in zip(outside, (16, 32), strict=True):
        mem.phyAddr, mem.virAddr, mem.memSize = block.phyAddr + offset, (block.virAddr or 0) + offset, 16
    assert net.run() == 0
    assert block.array(np.float32).tolist() == [0] * 4 + [1, 2, 3, 4, 2, 4, 6, 8] + [0] * 4
    for mem, before in zip(outside, kept, strict=True):
        mem.phyAddr, mem.virAddr, mem.memSize = before.phyAddr, before.virAddr, before.memSize
    good(hb.hbSysFreeMem(block))


def batched() -> bytes:
    """Sum of two inputs of batch 3, and of one that has no batch."""
    nodes = [helper.make_node("Add", ["a", "b"], ["ab"]), helper.make_node("Add", ["ab", "c"], ["y"])]
    shape = [3, 2]
    return model_bytes(
        nodes,
        [("a", TensorProto.FLOAT, shape), ("b", TensorProto.FLOAT, shape), ("c", TensorProto.FLOAT, [1, 2])],
        [("y", TensorProto.FLOAT, shape)],
    )


@pytest.mark.parametrize("split", [(True, True), (True, False), (False, False)])
def test_a_batch_may_lie_at_an_address_of_its_own_for_each_element(load: Load, split: tuple[bool, bool]) -> None:
    net = load(batched())
    values = [f32([[1, 2], [3, 4], [5, 6]]), f32([[10, 20], [30, 40], [50, 60]]), f32([[100, 200]])]
    tensors, blocks = [], []
    for at, array in enumerate(values):
        parts = [array[i : i + 1] for i in range(3)] if at < 2 and split[at] else [array]
        for part in parts:
            tensor = hb.hbDNNTensor()
            good(hb.hbDNNGetInputTensorProperties(tensor.properties, net.handle, at))
            tensor.properties.validShape.dimensionSize[0] = part.shape[0]
            tensor.properties.alignedShape.dimensionSize[0] = part.shape[0]
            good(hb.hbSysAllocMem(tensor.sysMem[0], part.nbytes))
            tensor.sysMem[0].array(np.float32, part.shape)[...] = part
            tensors.append(tensor)
            blocks.append(tensor.sysMem[0])
    task = hb.hbDNNTaskHandle_t()
    given = (hb.hbDNNTensor * len(tensors))(*tensors)
    good(hb.hbDNNInfer(task, net.outputs, given, net.handle, ctrl()))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    assert net.read().tolist() == (values[0] + values[1] + values[2]).tolist()
    if split[0]:
        assert "at index" in refused(net, inputs=tensors[:2])
    for mem in blocks:
        good(hb.hbSysFreeMem(mem))


def dynamic(tensor: Any, shape: tuple[int, ...]) -> None:
    """Say the sizes of an input that the data decides."""
    for kind in (tensor.properties.validShape, tensor.properties.alignedShape):
        kind.dimensionSize[: len(shape)] = shape
        kind.numDimensions = len(shape)


def test_sizes_that_the_data_decides_are_told_afterwards(load: Load) -> None:
    net = load(double(["n", 3]))
    for properties in (net.inputs[0].properties, net.outputs[0].properties):
        assert list(properties.validShape.dimensionSize[:2]) == [-1, 3]
        assert properties.alignedByteSize == -1
    good(hb.hbSysAllocMem(net.inputs[0].sysMem[0], 1024))
    good(hb.hbSysAllocMem(net.outputs[0].sysMem[0], 36))
    for count in (1, 3, 2, 0):
        dynamic(net.inputs[0], (count, 3))
        values = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
        net.fill(values)
        assert net.run() == 0, hb.last_error()
        told = net.outputs[0].properties
        assert list(told.validShape.dimensionSize[:2]) == list(told.alignedShape.dimensionSize[:2]) == [count, 3]
        assert (told.alignedByteSize, list(told.stride[:3])) == (count * 12, [12, 4, 0])
        assert net.read().tolist() == (values * 2).tolist()
    dynamic(net.inputs[0], (4, 3))
    assert net.run() == hb.HB_DNN_RUN_TASK_FAILED
    assert "has 48 bytes" in hb.last_error()
    assert net.outputs[0].properties.alignedByteSize == 48  # what to allocate
    dynamic(net.inputs[0], (4, 2))
    assert "fill in the sizes that are -1" in refused(net)
    dynamic(net.inputs[0], (-1, 3))
    assert "fill in the sizes that are -1" in refused(net)


@pytest.mark.parametrize(
    ("onnx_type", "tensor_type", "dtype"),
    [
        (TensorProto.INT8, "S8", np.int8),
        (TensorProto.UINT8, "U8", np.uint8),
        (TensorProto.FLOAT16, "F16", np.float16),
        (TensorProto.INT32, "S32", np.int32),
        (TensorProto.UINT64, "U64", np.uint64),
        (TensorProto.DOUBLE, "F64", np.float64),
    ],
)
def test_types_are_carried_as_they_are(load: Load, onnx_type: int, tensor_type: str, dtype: Any) -> None:
    node = helper.make_node("Transpose", ["x"], ["y"])
    net = load(model_bytes([node], [("x", onnx_type, [2, 3])], [("y", onnx_type, [3, 2])]))
    said = net.inputs[0].properties
    assert hbDNNDataType(said.tensorType) == hbDNNDataType[f"HB_DNN_TENSOR_TYPE_{tensor_type}"]
    assert said.alignedByteSize == 6 * np.dtype(dtype).itemsize
    net.fill(np.arange(6, dtype=dtype).reshape(2, 3))
    assert net.run() == 0
    assert net.read(dtype).tolist() == np.arange(6).reshape(2, 3).T.tolist()


@pytest.mark.parametrize("shape", [[5], [3, 4], ["n", 5], []])
def test_four_bits_are_two_values_a_byte_the_first_one_low(load: Load, shape: list[int | str]) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)]
    nodes += [helper.make_node("Neg", ["f"], ["n"]), helper.make_node("Cast", ["n"], ["y"], to=TensorProto.INT4)]
    values = [("x", TensorProto.INT4, shape), ("f", TensorProto.FLOAT, shape), ("y", TensorProto.INT4, shape)]
    net = load(model_bytes(nodes, values[:1], values[1:], opset=21))
    sizes = tuple(size if isinstance(size, int) else 3 for size in shape)
    count = int(np.prod(sizes))
    packed_bytes = (count + 1) // 2
    if "n" in shape:
        dynamic(net.inputs[0], sizes)
        for tensor, size_bytes in ((net.inputs[0], packed_bytes), (net.outputs[0], 4 * count)):
            good(hb.hbSysAllocMem(tensor.sysMem[0], size_bytes))
        good(hb.hbSysAllocMem(net.outputs[1].sysMem[0], packed_bytes))
    assert net.inputs[0].sysMem[0].memSize == packed_bytes
    numbers = (np.arange(count) - 6) % 15 - 7  # -7 to 7
    halves = np.zeros(2 * packed_bytes, np.uint8)
    halves[:count] = numbers & 0xF
    net.inputs[0].sysMem[0].array(np.uint8)[:] = halves[0::2] | halves[1::2] << 4
    assert net.run() == 0, hb.last_error()
    assert net.read().tolist() == numbers.reshape(sizes).tolist()
    halves[:count] = -numbers & 0xF
    out = net.outputs[1].sysMem[0].array(np.uint8, packed_bytes)
    assert out.tolist() == (halves[0::2] | halves[1::2] << 4).tolist()


@pytest.mark.parametrize("shape", [[], [5]])
def test_booleans_are_bytes_and_each_that_is_not_0_is_true(load: Load, shape: list[int]) -> None:
    node = helper.make_node("Not", ["x"], ["y"])
    net = load(model_bytes([node], [("x", TensorProto.BOOL, shape)], [("y", TensorProto.BOOL, shape)]))
    assert net.inputs[0].properties.tensorType == hbDNNDataType.HB_DNN_TENSOR_TYPE_U8
    values = np.resize(np.array([0, 1, 2, 255, 0], np.uint8), shape)
    net.fill(values)
    assert net.run() == 0
    assert net.read(np.uint8).tolist() == (values == 0).astype(int).tolist()


def test_scalars_have_no_dimensions(load: Load) -> None:
    net = load(double([]))
    assert net.inputs[0].properties.validShape.numDimensions == 0
    net.fill(np.array(21, np.float32))
    assert net.run() == 0
    assert net.read() == 42


def test_the_device_sees_what_was_cleaned_and_the_cpu_what_it_invalidated(
    dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In strict cache mode a program that forgets a flush gets old data, as on a board."""
    monkeypatch.setenv("HBRT_CACHE", "strict")
    with dsp_board_factory() as board:
        net = Net(double())
        for mem in (net.inputs[0].sysMem[0], net.outputs[0].sysMem[0]):
            good(hb.hbSysFreeMem(mem))
            good(hb.hbSysAllocCachedMem(mem, 16))
        net.fill(f32([[1, 2, 3, 4]]))
        assert net.run() == 0
        good(hb.hbSysFlushMem(net.outputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_INVALIDATE))
        assert net.read().tolist() == [[0, 0, 0, 0]]  # the input was not cleaned
        good(hb.hbSysFlushMem(net.inputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_CLEAN))
        assert net.run() == 0
        assert net.read().tolist() == [[0, 0, 0, 0]]  # the output was not invalidated
        good(hb.hbSysFlushMem(net.outputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_INVALIDATE))
        assert net.read().tolist() == [[2, 4, 6, 8]]
        (found,) = board.status()["findings"]
        assert found["kind"] == "missing-clean"
        assert f"The input tensor at {net.inputs[0].sysMem[0].phyAddr:#x}+0x10 holds" in found["text"]
        net.close()


def test_a_value_inside_the_graph_that_the_host_has_no_memory_for(load: Load) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["x"], ["large"])]
    nodes += [helper.make_node("ReduceSum", ["large"], ["y"], keepdims=0)]
    net = load(model_bytes(nodes, [("x", TensorProto.INT64, [1])], [("y", TensorProto.FLOAT, [])]))
    net.fill(np.array([1 << 60]))
    assert net.run() == hb.HB_DNN_OUT_OF_MEMORY, hb.last_error()
    net.fill(np.array([3]))
    assert net.run() == 0


def test_a_block_that_is_too_small_is_refused(load: Load) -> None:
    net = load(double())
    net.outputs[0].sysMem[0].memSize = 15
    said = refused(net)
    assert "'y' needs 16 bytes" in said
    assert "memSize is 15" in said
    net.outputs[0].sysMem[0].memSize = 16


def test_a_size_that_the_block_does_not_have_is_refused(load: Load) -> None:
    net = load(double((1, 2048)))
    net.inputs[0].sysMem[0].phyAddr += 4096
    assert "past the end of its block" in refused(net)
    net.inputs[0].sysMem[0].phyAddr -= 4096


def test_a_virtual_address_is_refused_with_a_hint(load: Load) -> None:
    net = load(double())
    mem = net.inputs[0].sysMem[0]
    phy_addr, mem.phyAddr = mem.phyAddr, mem.virAddr
    assert "mem.phyAddr, not mem.virAddr" in refused(net)
    mem.phyAddr = phy_addr


def test_memory_that_was_freed_is_refused_also_when_it_was_good_before(load: Load) -> None:
    net = load(double())
    assert net.run() == 0
    mem = net.inputs[0].sysMem[0]
    phy_addr, vir_addr = mem.phyAddr, mem.virAddr
    good(hb.hbSysFreeMem(mem))
    mem.phyAddr, mem.virAddr = phy_addr, vir_addr
    assert "is in freed memory" in refused(net)
    good(hb.hbSysAllocMem(mem, 16))
    assert net.run() == 0


def test_an_address_that_is_no_multiple_of_the_element_is_refused(load: Load) -> None:
    net = load(double((1, 2)))
    mem = net.inputs[0].sysMem[0]
    good(hb.hbSysFreeMem(mem))
    good(hb.hbSysAllocMem(mem, 64))
    mem.phyAddr += 2
    assert "not a multiple of its element's 4 bytes" in refused(net)
    mem.phyAddr -= 2


def test_only_what_may_be_edited_is_edited(load: Load) -> None:
    net = load(double())
    properties = net.inputs[0].properties
    properties.tensorType = hbDNNDataType.HB_DNN_TENSOR_TYPE_S8
    assert "HB_DNN_TENSOR_TYPE_S8; the model has HB_DNN_TENSOR_TYPE_F32" in refused(net)
    properties.tensorType = 77
    assert "the tensorType 77" in refused(net)
    properties.tensorType = hbDNNDataType.HB_DNN_TENSOR_TYPE_F32
    for field, value in (("validShape", 5), ("alignedShape", 8)):
        shape = getattr(properties, field)
        shape.dimensionSize[1], before = value, shape.dimensionSize[1]
        assert f"has the {field} [1, {value}]" in refused(net)
        shape.dimensionSize[1] = before
        shape.numDimensions = 9
        assert f"{field}.numDimensions is 9" in refused(net)
        shape.numDimensions = 1
        refused(net)
        shape.numDimensions = 2
    assert net.run() == 0


def test_arrays_of_tensors_may_be_given_in_each_way_that_c_knows(load: Load) -> None:
    net = load(double())
    pointer = ctypes.cast(net.inputs, ctypes.POINTER(hb.hbDNNTensor))
    ways: list[Any] = [net.inputs, pointer, ctypes.pointer(pointer), ctypes.byref(pointer), ctypes.byref(net.inputs[0])]
    ways += [[net.inputs[0]], (net.inputs[0],), net.inputs[0], ctypes.byref(net.inputs)]
    for at, way in enumerate(ways):
        net.fill(np.full((1, 4), at, np.float32))
        task = hb.hbDNNTaskHandle_t()
        good(hb.hbDNNInfer(task, net.outputs, way, net.handle, ctrl()))
        good(hb.hbDNNWaitTaskDone(task, 0))
        good(hb.hbDNNReleaseTask(task))
        assert net.read().tolist() == [[2 * at] * 4]
    two = (hb.hbDNNTensor * 2)(hb.hbDNNTensor(), net.inputs[0])
    second: Any = ctypes.byref(two, ctypes.sizeof(hb.hbDNNTensor))  # C's &two[1]
    task = hb.hbDNNTaskHandle_t()
    good(hb.hbDNNInfer(task, net.outputs, second, net.handle, ctrl()))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    for none in (None, [], (), [None], 0, "tensors", (hb.hbDNNTensor * 0)(), ctypes.POINTER(hb.hbDNNTensor)()):
        task = hb.hbDNNTaskHandle_t()
        assert hb.hbDNNInfer(task, none, net.inputs, net.handle, ctrl()) == hb.HB_DNN_INVALID_ARGUMENT
        assert hb.hbDNNInfer(task, net.outputs, none, net.handle, ctrl()) == hb.HB_DNN_INVALID_ARGUMENT


def test_tensors_of_another_board_are_refused(load: Load, dsp_board_factory: Any, dsp_board: Board) -> None:
    net = load(double())
    assert net.run() == 0
    with dsp_board_factory():
        assert "not in a live block" in refused(net)
    assert net.run() == 0


@given(st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_structures_are_refused_or_harmless(kept_nets: list[Net], data: st.DataObject) -> None:
    net = data.draw(st.sampled_from(kept_nets))
    tensors = data.draw(st.sampled_from([net.inputs, net.outputs]))
    before = bytes(tensors)
    damaged = bytearray(before)
    for _ in range(data.draw(st.integers(1, 3))):
        at = 4 * data.draw(st.integers(0, len(damaged) // 4 - 1))
        damaged[at : at + 4] = data.draw(
            st.sampled_from([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\1\0\0\0", b"\0\0\0\x80", b"\xff\xff\xff\x7f"])
            | st.binary(min_size=4, max_size=4)
        )
    ctypes.memmove(tensors, bytes(damaged), len(damaged))
    task = hb.hbDNNTaskHandle_t()
    status = hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl())
    if status:
        assert status == hb.HB_DNN_INVALID_ARGUMENT
        assert hb.last_error()
    else:
        assert hb.hbDNNWaitTaskDone(task, 0) in {0, hb.HB_DNN_RUN_TASK_FAILED}
        good(hb.hbDNNReleaseTask(task))
    ctypes.memmove(tensors, before, len(before))


@pytest.fixture
def kept_nets(load: Load) -> list[Net]:
    """One net with sizes that are known, and one without, with memory for both."""
    nets = [load(double()), load(double(["n", 3]))]
    for tensor in (*nets[1].inputs, *nets[1].outputs):
        good(hb.hbSysAllocMem(tensor.sysMem[0], 4096))
    dynamic(nets[1].inputs[0], (2, 3))
    return nets


def test_tensors_are_bound_once_and_anew_after_an_allocation(load: Load) -> None:
    net = load(batched())
    for tensor in net.inputs:
        tensor.sysMem[0].array(np.float32)[:] = 1
    assert net.run() == 0  # which allocates what a core is asked with
    with mock.patch.object(Bindings, "_bound", autospec=True, side_effect=Bindings._bound) as bound:
        assert [net.run(), net.run()] == [0, 0]
        assert bound.call_count == 1
        block = hb.hbSysMem()
        good(hb.hbSysAllocMem(block, 64))
        assert [net.run(), net.run()] == [0, 0]
        assert bound.call_count == 2
        mine = hb.hbSysMem.from_buffer_copy(net.outputs[0].sysMem[0])
        net.outputs[0].sysMem[0] = block
        assert net.run() == 0
        assert block.array(np.float32)[:6].tolist() == [3] * 6
        net.outputs[0].sysMem[0] = mine
        good(hb.hbSysFreeMem(block))
        behind = ctypes.cast(net.inputs, ctypes.POINTER(hb.hbDNNTensor))  # as C passes them: of unknown number
        for _ in range(2):
            bound.reset_mock()
            task = hb.hbDNNTaskHandle_t()
            good(hb.hbDNNInfer(task, net.outputs, behind, net.handle, ctrl()))
            good(hb.hbDNNWaitTaskDone(task, 0))
            good(hb.hbDNNReleaseTask(task))
            assert bound.call_count == 1, "a batch may be split into tensors behind those that the model names"
