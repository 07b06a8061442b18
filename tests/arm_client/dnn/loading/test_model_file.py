"""Files and bytes that are not sound model: each is refused with its status and a reason, and nothing worse happens."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper, numpy_helper

import arm_client as hb
from tests.arm_client.dnn.nets import F32, double, endless, model_bytes
from tests.each import each

X, Y = ("x", F32, [2]), ("y", F32, [2])


def refusal(data: bytes) -> tuple[int, str]:
    """Status and sentence of a model that must be refused."""
    packed = hb.hbPackedDNNHandle_t()
    status = hb.hbDNNInitializeFromDDR(packed, [data], [len(data)], 1)
    assert status != 0
    assert not packed.value
    return status, hb.last_error()


def with_graph(edit: Callable[[onnx.ModelProto], object]) -> bytes:
    """The doubling model, edited."""
    model = onnx.ModelProto.FromString(double())
    edit(model)
    return bytes(model.SerializeToString())


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    return helper.make_node(op_type, list(inputs), list(outputs))


INVALID = {
    "is truncated": double()[:-3],
    "not an ONNX model": b"This is a text and no model at all.",
    "has no graph": onnx.ModelProto(ir_version=8).SerializeToString(),
    "has a cycle": model_bytes([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [X], [("b", F32, [2])]),
    "is not sorted": model_bytes([node("Relu", ["a"], ["y"]), node("Relu", ["x"], ["a"])], [X], [Y]),
    "by itself": model_bytes([node("Add", ["x", "y"], ["y"])], [X], [Y]),
    "which nothing produces": model_bytes([node("Add", ["x", "nothing"], ["y"])], [X], [Y]),
    "nothing produces the output 'z'": model_bytes([node("Relu", ["x"], ["y"])], [X], [("z", F32, [2])]),
    "which already exists": model_bytes([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], [X], [Y]),
    "has no output": with_graph(lambda model: model.graph.ClearField("output")),
    "two outputs with the same name": with_graph(lambda model: model.graph.output.append(model.graph.output[0])),
    "an input without a name": with_graph(lambda model: setattr(model.graph.input[0], "name", "")),
    "specifies no opset": with_graph(lambda model: model.ClearField("opset_import")),
    "has no type": with_graph(lambda model: model.graph.node[0].ClearField("op_type")),
    "no IR version": with_graph(lambda model: model.ClearField("ir_version")),
    "not UTF-8 text": double(name="a name").replace(b"a name", b"a\xe7name"),
    "Type Error": with_graph(
        lambda model: setattr(model.graph.output[0].type.tensor_type, "elem_type", TensorProto.INT8)
    ),
}
INCOMPATIBLE = {
    "opset 999": with_graph(lambda model: setattr(model.opset_import[0], "version", 999)),
    "IR version 4000": with_graph(lambda model: setattr(model, "ir_version", 4000)),
    "model IR version: 14": with_graph(lambda model: setattr(model, "ir_version", 14)),  # newer than onnxruntime's
    "STRING": model_bytes([node("Identity", ["x"], ["y"])], [("x", TensorProto.STRING, [2])], [("y", 8, [2])]),
    "COMPLEX64": model_bytes([node("Identity", ["x"], ["y"])], [("x", 14, [2])], [("y", 14, [2])]),
    "BFLOAT16": model_bytes([node("Identity", ["x"], ["y"])], [("x", 16, [2])], [("y", 16, [2])]),
    "9 dimensions": double([1] * 9),
    "'x' is a sequence": with_graph(
        lambda model: model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", F32, [2]))
    ),
    "NoSuchOp": model_bytes([node("NoSuchOp", ["x"], ["y"])], [X], [Y]),
}


@each("sign", INVALID)
def test_a_bad_model_is_refused_with_the_reason(sign: str) -> None:
    status, sentence = refusal(INVALID[sign])
    assert status == hb.HB_DNN_INVALID_MODEL, sentence
    assert sign in sentence


@each("sign", INCOMPATIBLE)
def test_a_model_that_this_runtime_cannot_carry_is_refused_with_the_reason(sign: str) -> None:
    status, sentence = refusal(INCOMPATIBLE[sign])
    assert status == hb.HB_DNN_INCOMPATIBLE_MODEL, sentence
    assert sign in sentence


def external(directory: Path) -> Path:
    """A model file that keeps its weights in a file next to it."""
    weights = np.arange(1024, dtype=np.float32)
    data = model_bytes(
        [node("Add", ["x", "w"], ["y"])],
        [("x", F32, [1024])],
        [("y", F32, [1024])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = directory / "model.onnx"
    onnx.save(
        onnx.ModelProto.FromString(data), path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    return path


def from_file(path: Any, count: int = 1) -> int:
    packed = hb.hbPackedDNNHandle_t()
    status = hb.hbDNNInitializeFromFiles(packed, [path], count)
    assert bool(packed.value) == (status == 0)
    if not status:
        assert hb.hbDNNRelease(packed) == 0
    return status


def test_external_data_is_read_beside_the_file_and_missed_when_it_is_not_there(tmp_path: Path) -> None:
    path = external(tmp_path)
    assert from_file(path) == 0, hb.last_error()
    assert refusal(path.read_bytes())[0] == hb.HB_DNN_INVALID_MODEL
    assert "from its file" in hb.last_error()
    (tmp_path / "weights.bin").write_bytes(b"short")
    assert from_file(path) == hb.HB_DNN_INVALID_MODEL, hb.last_error()
    (tmp_path / "weights.bin").unlink()
    assert from_file(path) == hb.HB_DNN_INVALID_MODEL
    assert "weights.bin" in hb.last_error()


def test_external_data_outside_the_directory_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    path = external(tmp_path / "below")
    model = onnx.load(path, load_external_data=False)
    (tmp_path / "below" / "weights.bin").rename(tmp_path / "weights.bin")
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = "../weights.bin"
    path.write_bytes(model.SerializeToString())
    assert from_file(path) == hb.HB_DNN_INVALID_MODEL


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    assert from_file(tmp_path / "none.onnx") == hb.HB_DNN_CAN_NOT_OPEN_FILE
    assert "none.onnx" in hb.last_error()
    assert from_file(tmp_path) == hb.HB_DNN_CAN_NOT_OPEN_FILE
    assert "directory" in hb.last_error()
    assert from_file("a\0b") in {hb.HB_DNN_CAN_NOT_OPEN_FILE, hb.HB_DNN_INVALID_ARGUMENT}
    (tmp_path / "empty.onnx").touch()
    assert from_file(tmp_path / "empty.onnx") == hb.HB_DNN_INVALID_MODEL
    for none in (None, "", b""):
        assert from_file(none) == hb.HB_DNN_INVALID_ARGUMENT
    good = tmp_path / "good.onnx"
    good.write_bytes(double())
    for way in (good, str(good), bytes(good), ctypes.c_char_p(bytes(good))):
        assert from_file(way) == 0
    for count in (0, -1, 2, None, "one"):
        assert from_file(good, count) == hb.HB_DNN_INVALID_ARGUMENT  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["size", "type"])
def test_a_scale_whose_parts_do_not_fit_each_other(damage: str) -> None:
    scale = helper.make_tensor("s", F32, [], [0.5])
    zero = helper.make_tensor("z", TensorProto.INT8, [], [0])
    if damage == "size":
        scale.float_data.append(1.0)
    else:
        zero.data_type = 65
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    status, sentence = refusal(model_bytes(nodes, [X], [Y], [scale, zero], opset=13))
    assert status == hb.HB_DNN_INVALID_MODEL, sentence


def test_names_that_c_cannot_hold(tmp_path: Path) -> None:
    status, sentence = refusal(model_bytes([node("Relu", ["a\0b"], ["y"])], [("a\0b", F32, [2])], [Y]))
    assert (status, "the name of its input 'a\\x00b' has a zero byte" in sentence) == (hb.HB_DNN_INVALID_MODEL, True)
    strange = os.fsencode(tmp_path) + b"/\xff.onnx"
    Path(os.fsdecode(strange)).write_bytes(double())
    nameless = double(name="\0")
    cut = double(name="one\0two")
    for files, data in (([strange], []), ([], [nameless]), ([], [cut])):
        packed, count = hb.hbPackedDNNHandle_t(), ctypes.c_int32()
        if files:
            assert hb.hbDNNInitializeFromFiles(packed, files, 1) == 0, hb.last_error()
        else:
            assert hb.hbDNNInitializeFromDDR(packed, data, [len(data[0])], 1) == 0, hb.last_error()
        names = ctypes.POINTER(ctypes.c_char_p)()
        assert hb.hbDNNGetModelNameList(names, count, packed) == 0
        assert names[0] in {"\ufffd".encode(), b"model", b"one"}
        assert hb.hbDNNGetModelHandle(hb.hbDNNHandle_t(), packed, names[0]) == 0
        assert hb.hbDNNRelease(packed) == 0


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    for path in (tmp_path / "pipe.onnx", Path("/dev/zero")):
        packed = hb.hbPackedDNNHandle_t()
        assert hb.hbDNNInitializeFromFiles(packed, [path], 1) == hb.HB_DNN_CAN_NOT_OPEN_FILE
        assert "It is not a regular file" in hb.last_error()


def test_a_boards_compiled_model_is_told_what_to_load(tmp_path: Path) -> None:
    for name in ("net.hbm", "net.bin"):
        (tmp_path / name).write_bytes(b"\x7fELF" + bytes(100))
        assert hb.hbDNNInitializeFromFiles(hb.hbPackedDNNHandle_t(), [tmp_path / name], 1) == hb.HB_DNN_INVALID_MODEL
        assert "ONNX file that it was compiled from" in hb.last_error()


def test_of_several_models_one_that_is_bad_leaves_none_loaded(tmp_path: Path) -> None:
    packed = hb.hbPackedDNNHandle_t()
    datas = [double(), double()[:-3]]
    assert hb.hbDNNInitializeFromDDR(packed, datas, [len(data) for data in datas], 2) == hb.HB_DNN_INVALID_MODEL
    assert "index 1" in hb.last_error()
    assert not packed.value
    from arm_client.dnn.capi.runtime import runtime

    assert len(runtime.models) == 0


SOUND = [double(), endless(), model_bytes([node("Relu", ["x"], ["y"])], [("x", F32, ["n", 3])], [("y", F32, None)])]


@settings(max_examples=150)
@given(st.data())
def test_damaged_bytes_are_loaded_or_refused_and_nothing_else(data: st.DataObject) -> None:
    """Whatever the damage, there is no exception, no crash; a refusal has a sentence."""
    raw = bytearray(data.draw(st.sampled_from(SOUND)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "drop", "repeat"]))
        if change == "set":
            raw[at] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del raw[max(at, 1) :]
        elif change == "drop":
            del raw[at : at + data.draw(st.integers(1, 9))]
            raw = raw or bytearray(b"\n")
        else:
            raw[at:at] = raw[at : at + data.draw(st.integers(1, 40))]
    packed = hb.hbPackedDNNHandle_t()
    status = hb.hbDNNInitializeFromDDR(packed, [bytes(raw)], [len(raw)], 1)
    if status == 0:
        assert hb.hbDNNRelease(packed) == 0
        return
    assert status in {hb.HB_DNN_INVALID_MODEL, hb.HB_DNN_INCOMPATIBLE_MODEL}, hb.last_error()
    assert hb.last_error().endswith((".", "...")) or len(hb.last_error()) > 20
