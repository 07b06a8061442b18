"""horizon_tc_ui: a model on the host."""

import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from horizon_tc_ui import HB_ONNXRuntime, HBRuntime
from horizon_tc_ui.utils import tool_utils


def model(kind: int, domain: str = "") -> onnx.ModelProto:
    """One operator on four numbers."""
    shape = [1, 1, 2, 2]
    values = [helper.make_tensor_value_info(name, kind, shape) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "net", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_bytes_are_shifted_for_an_input_of_int8(tmp_path: Path) -> None:
    onnx.save(model(TensorProto.INT8), tmp_path / "net.onnx")
    session = HB_ONNXRuntime(model_file=str(tmp_path / "net.onnx"))
    assert (session.input_names, session.output_names, session.layout) == (["x"], ["y"], ["NCHW"])
    picture = np.array([0, 1, 128, 255], np.uint8).reshape(1, 1, 2, 2)
    assert session.run(["y"], {"x": picture}, input_offset=128)[0].ravel().tolist() == [-128, -127, 0, 127]
    stored = picture.view(np.int8)
    assert session.run_feature(None, {"x": stored})[0].tolist() == stored.tolist()


def test_operators_of_the_vendor_are_refused() -> None:
    with pytest.raises(ValueError, match="operators of the vendor"):
        HB_ONNXRuntime(onnx_model=model(TensorProto.FLOAT, "horizon"))


def test_a_model_under_the_name_of_a_compiled_one(tmp_path: Path) -> None:
    onnx.save(model(TensorProto.FLOAT), tmp_path / "net.hbm")
    session = HBRuntime(model=str(tmp_path / "net.hbm"))
    assert (session.input_shapes, session.output_shapes) == ([[1, 1, 2, 2]], [[1, 1, 2, 2]])
    given = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    assert session.run(session.output_names, {session.input_names[0]: given})[0].tolist() == given.tolist()
    (tmp_path / "board.hbm").write_bytes(b"HBM\0" + bytes(400))
    with pytest.raises(
        ValueError, match=r"board\.hbm is not an ONNX model .* use the ONNX file that it was compiled from"
    ):
        HBRuntime(tmp_path / "board.hbm")


def test_a_program_logs_to_a_file_and_ends_with_an_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        tool_utils.init_root_logger("inference", console_level=logging.ERROR, file_level=logging.DEBUG)
        root.debug("begins")

        @tool_utils.on_exception_exit
        def fails(why: str) -> None:
            raise ValueError(why)

        with pytest.raises(SystemExit) as ended:
            fails("no model")
    finally:
        for handler in set(root.handlers) - set(handlers):
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    assert ended.value.code == -1
    text = (tmp_path / "inference.log").read_text()
    assert "DEBUG begins" in text
    assert "ValueError: no model" in text
