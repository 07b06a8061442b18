"""HB_DNN_PLUGIN_PATH, HB_DNN_ENABLE_DSP and the other variables of the board's environment."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import arm_client as hb
from arm_client.dnn import environment
from arm_client.dnn.environment import TABLE, Level
from arm_client.dnn.errors import ModelError
from arm_client.dnn.layers import layer
from arm_client.dnn.layers.plugins import Plugins
from arm_client.dnn.python import easy
from arm_client.errors import HbrtError
from hbrt.status import Status
from tests.arm_client.dnn.nets import model_bytes
from tests.limits import PATIENCE_S

PLUGIN = """
import arm_client as hb
from arm_client.dnn import Layer

class Mine(Layer):
    def Forward(self, bottom, top, ctrl):
        top[0].numpy()[...] = {factor}
        return 0

assert hb.hbDNNRegisterLayerCreator({name!r}, Mine) == 0
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the table is set, no warning was given."""
    for variable in TABLE:
        monkeypatch.delenv(variable.name, raising=False)
    environment._warned.clear()


def registered() -> list[str]:
    return sorted(layer.registry._creators)


def enable(monkeypatch: pytest.MonkeyPatch, path: str | None = None) -> None:
    monkeypatch.setenv("HB_DNN_ENABLE_DSP", "1")
    if path is not None:
        monkeypatch.setenv("HB_DNN_PLUGIN_PATH", path)


def test_nothing_is_loaded_unless_it_is_enabled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plugin.py").write_text("raise SystemExit")
    monkeypatch.setenv("HB_DNN_PLUGIN_PATH", str(tmp_path))
    Plugins().load()
    Plugins().load()
    assert registered() == []
    assert capfd.readouterr().err == (
        "[DNN] WARNING: HB_DNN_PLUGIN_PATH has no effect because HB_DNN_ENABLE_DSP is not 1.\n"
    )


def test_the_shipped_plugin_needs_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    enable(monkeypatch)
    Plugins().load()
    assert registered() == ["DequantizeLinear", "QuantizeLinear", "Softmax"]


def test_files_and_directories_are_run_once_and_after_the_shipped_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "b.py").write_text(PLUGIN.format(factor=1, name="Softmax"))
    (directory / "_not_this.py").write_text("raise SystemExit")
    (directory / "libhb_dsp_nn_plugin.so").touch()
    single = tmp_path / "single.py"
    single.write_text(PLUGIN.format(factor=2, name="Swirl"))
    enable(monkeypatch, os.pathsep.join([str(directory), str(single)]))
    plugins = Plugins()
    plugins.load()
    assert registered() == ["DequantizeLinear", "QuantizeLinear", "Softmax", "Swirl"]
    mine = layer.registry.creator_of("", "Softmax")
    assert getattr(mine, "__name__", "") == "Mine"
    layer.registry.unregister("Swirl")
    plugins.load()
    assert "Swirl" not in registered()
    assert "libhb_dsp_nn_plugin.so is a library for the board and is skipped. The shipped plugin replaces it." in (
        capfd.readouterr().err
    )


def test_a_plugin_that_raises_is_an_error_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import arm_client\n1 / 0\n")
    enable(monkeypatch, str(file))
    plugins = Plugins()
    for _ in range(2):
        with pytest.raises(ModelError, match=r"broken\.py raised ZeroDivisionError: Traceback[\s\S]*line 2") as refusal:
            plugins.load()
        assert refusal.value.status == Status.HB_DNN_API_USE_ERROR
    file.write_text("import arm_client\n")
    plugins.load()


def test_a_plugin_that_gives_up_by_sys_exit_ends_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "leaver.py"
    file.write_text("import sys\nsys.exit('no license')\n")
    enable(monkeypatch, str(file))
    data = model_bytes(
        [helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, (1,))], [("y", TensorProto.FLOAT, (1,))]
    )
    assert hb.hbDNNInitializeFromDDR(hb.hbPackedDNNHandle_t(), [data], [len(data)], 1) == Status.HB_DNN_API_USE_ERROR
    assert "leaver.py raised SystemExit: Traceback" in hb.last_error()
    assert "no license" in hb.last_error()


@pytest.mark.parametrize("name", ["missing.py", "missing"])
def test_a_path_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    enable(monkeypatch, str(tmp_path / name))
    with pytest.raises(ModelError, match="no such file or directory") as refusal:
        Plugins().load()
    assert refusal.value.status == Status.HB_DNN_CAN_NOT_OPEN_FILE


def test_what_is_no_python_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "plugin.txt").touch()
    enable(monkeypatch, str(tmp_path / "plugin.txt"))
    with pytest.raises(ModelError, match=r"plugin\.txt is neither a Python file"):
        Plugins().load()


@pytest.mark.parametrize("variable", [one for one in TABLE if not one.is_honored], ids=lambda one: one.name)
def test_a_variable_without_effect_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], variable: environment.Variable
) -> None:
    monkeypatch.setenv(variable.name, "1")
    environment.check()
    environment.check()
    assert capfd.readouterr().err == (
        f"[DNN] WARNING: {variable.name} is set but has no effect here: {variable.here}.\n"
    )


@pytest.mark.parametrize("value", ["BAYES", "bayes"])
def test_the_chip_that_this_is_may_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.setenv("HB_DNN_SIM_PLATFORM", value)
    environment.check()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("variable", [one for one in TABLE if one.is_honored], ids=lambda one: one.name)
def test_a_variable_that_is_honored_is_read_somewhere(variable: environment.Variable) -> None:
    package = Path(environment.__file__).parent
    readers = [file for file in package.rglob("*.py") if f'"{variable.name}"' in file.read_text(encoding="utf-8")]
    uses = sum(file.read_text(encoding="utf-8").count(f'"{variable.name}"') for file in readers)
    assert uses > 1  # the table has one


@pytest.mark.parametrize(
    ("name", "value"),
    [("HB_DNN_LOG_LEVEL", "6"), ("HB_DNN_LOG_LEVEL", "loud"), ("HB_MAX_THREAD_NUM", "0"), ("HB_DNN_ENABLE_DSP", "yes")],
)
def test_a_value_that_cannot_be(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelError, match=f"{name} is '{value}'; must be "):
        environment.check()


@pytest.mark.parametrize(
    ("level", "shown"),
    [("", "WEF"), ("0", ""), ("1", "DIWEF"), ("3", "WEF"), ("4", "EF"), ("5", "F"), ("nonsense", "WEF")],
)
def test_levels(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], level: str, shown: str) -> None:
    monkeypatch.setenv("HB_DNN_LOG_LEVEL", level)
    for one in Level:
        environment.log(one, "a record")
    lines = capfd.readouterr().err.splitlines()
    assert "".join(line.split()[1][0] for line in lines) == shown


NOT_THERE = "[DNN] ERROR: Cannot read the model file none.onnx: "


@pytest.mark.parametrize(("level", "shown"), [("", NOT_THERE), ("4", NOT_THERE), ("5", ""), ("0", "")])
def test_a_call_that_is_refused_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], level: str, shown: str
) -> None:
    monkeypatch.setenv("HB_DNN_LOG_LEVEL", level)
    assert hb.hbDNNInitializeFromFiles(hb.hbPackedDNNHandle_t(), ["none.onnx"], 1) == hb.HB_DNN_CAN_NOT_OPEN_FILE
    said = capfd.readouterr().err
    line = f"[DNN] ERROR: {hb.last_error()} [HB_DNN_CAN_NOT_OPEN_FILE] at {__file__}:"
    assert said.startswith(line) if shown else said == ""
    assert said.startswith(shown)


def test_what_is_raised_is_not_logged_too(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HbrtError, match=r"Cannot read the model file none.onnx"):
        easy.load("none.onnx")
    assert capfd.readouterr().err == ""


def test_a_refusal_without_a_standard_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "closed").open("w") as closed:
        monkeypatch.setattr("sys.stderr", closed)
    assert hb.hbDNNRelease(hb.hbPackedDNNHandle_t()) == hb.HB_DNN_INVALID_PACKED_DNN_HANDLE
    monkeypatch.undo()
    assert "packed model handle is null" in hb.last_error()


def test_a_refusal_of_a_call_that_no_program_makes() -> None:
    program = "import atexit, arm_client as hb; atexit.register(hb.hbDNNRelease, hb.hbPackedDNNHandle_t())"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert ended.stderr.splitlines()[0].startswith("[DNN] ERROR: The packed model handle is null")
    assert len(ended.stderr.splitlines()) == 1


PROGRAM = """
import sys
import numpy as np
import arm_client.dnn as dnn

(model,) = dnn.load(sys.argv[1])
for _ in range(3):
    (result,) = model(np.zeros((1, 4), np.float32))
print(result.buffer.ravel().tolist() if hasattr(result, "buffer") else np.asarray(result).ravel().tolist())
"""


def test_a_program_runs_its_model_with_plugins_and_writes_its_times(tmp_path: Path, board_home: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    values = [("x", TensorProto.FLOAT, [1, 4])]
    (tmp_path / "net.onnx").write_bytes(model_bytes(nodes, values, [("y", TensorProto.FLOAT, [1, 4])]))
    (tmp_path / "plugin.py").write_text(PLUGIN.format(factor=5, name="Softmax"))
    (tmp_path / "program.py").write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, "program.py", "net.onnx"],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "HBRT_BOARD"},
            "HBRT_HOME": str(board_home),
            "HB_DNN_ENABLE_DSP": "1",
            "HB_DNN_PLUGIN_PATH": "plugin.py",
            "HB_DNN_PROFILER_LOG_PATH": "times",
        },
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (result.stdout, result.stderr) == ("[5.0, 5.0, 5.0, 5.0]\n", "")
    first, second = (tmp_path / "times" / "net" / "profiler.log").read_text().split("\n***\n")
    assert json.loads(first)["running_condition"]["frame_count"] == 3
    assert list(json.loads(second)["model_latency"]) == ["segment_0", "y"]
    rows = list(csv.DictReader((tmp_path / "times" / "net" / "profiler.csv").read_text().splitlines()))
    assert [(row["name"], row["processor"], row["count"]) for row in rows] == [
        ("segment_0", "BPU", "3"),
        ("y", "CPU", "3"),
    ]
