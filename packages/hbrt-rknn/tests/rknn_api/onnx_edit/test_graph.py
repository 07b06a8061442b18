from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, checker, helper

from rknn_api.errors import RknnError
from rknn_api.onnx_edit.command import onnx_edit
from rknn_api.onnx_edit.formula import Formula
from rknn_api.onnx_edit.graph import edited
from rknn_api.toolkit.dataset import Wanted, samples

F = TensorProto.FLOAT


def model(shape: list[int | str]) -> ModelProto:
    """An output that is read inside as well, and an input that goes into an If."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Add", ["y", "x"], ["z"]),
    ]
    values = [helper.make_tensor_value_info(name, F, shape) for name in "xyz"]
    graph = helper.make_graph(nodes, "edges", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def run(proto: ModelProto, x: Any) -> Any:
    checker.check_model(proto, full_check=True)
    return ort.InferenceSession(proto.SerializeToString()).run(None, {"x": x})


@pytest.mark.parametrize(
    ("shape", "text", "ops"),
    [
        ([4, 48, 1, 8], "a,b,c,d->1,ad,b,c", ["Reshape", "Transpose"]),
        ([4, 8, 48, 1], "a,b,c,d->1,ab,c,d", ["Reshape"]),
        ([1, 3, 4, 5], "a,b,c,d->a,d,b,c", ["Transpose"]),
        ([3, 24, 20, 7], "a,bc,de,f[b=2,d=4]->ab,fe,dc,1", ["Reshape", "Transpose", "Reshape"]),
    ],
)
def test_an_edited_model_computes_the_same(shape: list[int], text: str, ops: list[str]) -> None:
    plain = model([*shape])
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    new, _ = edited(plain, {"x": text}, {"y": text})
    edit = Formula.parse(text).of(shape)
    wanted, unchanged = run(plain, x)
    found, same = run(new, edit.apply(x))
    np.testing.assert_array_equal(found, edit.apply(wanted))
    np.testing.assert_array_equal(same, unchanged)
    assert [node.op_type for node in new.graph.node][: len(ops)] == ops
    assert plain == model([*shape])


def test_one_open_size_goes_along() -> None:
    new, _ = edited(model(["n", 6]), {"x": "n,ab[a=2]->b,n,a"}, {})
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    assert run(new, x)[1].shape == (4, 6)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(RknnError, match="no input 'k'; it has 'x'"):
        edited(model([2, 3]), {"k": "a,b->b,a"}, {})
    with pytest.raises(RknnError, match="More than one size of 'x' is open"):
        edited(model(["n", "m"]), {"x": "ab,c[a=2]->a,c,b"}, {})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"inputs_transform": "a->a"}, "inputs_transform is 'a->a'; pass a formula for each name"),
        ({"outputs_transform": {"y": None}}, "outputs_transform is {'y': None}; pass a formula"),
        ({"export_path": None}, "export_path is NoneType; give the path"),
        ({"model": "none.onnx"}, "Cannot read the model file none.onnx"),
    ],
)
def test_arguments_that_are_wrong_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: Any, why: str
) -> None:
    onnx.save(model([2, 3]), tmp_path / "net.onnx")
    assert onnx_edit(**{"model": tmp_path / "net.onnx", "export_path": tmp_path / "new.onnx", **given}) == -1
    assert why in capsys.readouterr().err


def test_a_dataset_for_a_model_with_a_space_in_its_name_can_be_read(tmp_path: Path) -> None:
    onnx.save(model([2, 3]), tmp_path / "old.onnx")
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    (tmp_path / "dataset.txt").write_text("x.npy\n")
    new = tmp_path / "new model.onnx"
    assert onnx_edit(tmp_path / "old.onnx", new, {"x": "a,b->b,a"}, dataset=tmp_path / "dataset.txt") == 0
    wanted = Wanted((3, 2), np.dtype(np.float32))
    ((array,),) = samples(tmp_path / "dataset_for_new model.txt", [wanted])
    np.testing.assert_array_equal(array, [[0, 3], [1, 4], [2, 5]])
