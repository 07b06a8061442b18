"""HB_DNN_ENABLE_PERFETTO: the trace of a program with models, as the board's text has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arm_client.dnn import environment
from arm_client.dnn.errors import ModelError
from hbrt.trace.timeline import MODELED
from tests.hbrt.trace.reader import read
from tests.shared import Shell

PROGRAM = """
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper
from arm_client import dnn

def value(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64])

nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
graph = helper.make_graph(nodes, "net", [value("x")], [value("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.save(model, "net.onnx")
[net] = dnn.load("net.onnx")
for _ in range(3):
    net.forward(np.zeros((1, 64), np.float32))
"""


def test_a_program_with_models_is_traced_into_the_configured_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "config.json").write_text(
        json.dumps({"perfetto_config": "all.cfg", "trace_record_file": "dnn.pftrace"})
    )
    shell.environment |= {
        "HB_DNN_ENABLE_PERFETTO": "true",
        "HB_DNN_PERFETTO_CONFIG_PATH": "config.json",
        "HB_DNN_ENABLE_DSP": "1",
    }
    ran = shell.python("program.py")
    assert ran.returncode == 0, ran
    trace = read(tmp_path / "dnn.pftrace")
    models = [one for core in "01" for one in trace.of(f"BPU core {core}", "net")]
    steps = [one for core in "01" for one in trace.of(f"BPU core {core}") if one.depth == 1]
    assert len(models) == 3
    assert len(steps) >= 6  # a segment, and the softmax on the DSP
    assert all(any(model.has(step) for model in models) for step in steps)
    on_dsp = [one for one in steps if one.name.endswith("(DSP)")]
    ops = [one for core in "01" for one in trace.of(f"core {core}", "softmax") if MODELED not in one.track]
    assert len(on_dsp) == len(ops) == 3
    assert all(any(step.has(op) for step in on_dsp) for op in ops)
    before = (tmp_path / "dnn.pftrace").read_bytes()
    again = shell.python("program.py")
    assert again.returncode != 0
    assert "already exists" in again.stderr
    assert (tmp_path / "dnn.pftrace").read_bytes() == before


@pytest.mark.parametrize(
    ("enabled", "config", "file"),
    [
        ("", None, None),
        ("false", '{"trace_record_file": "a.pftrace"}', None),
        ("true", None, "dnn.pftrace"),
        ("TRUE", "{}", "dnn.pftrace"),
        ("1", '{"trace_record_file": "a.pftrace", "more": [1]}', "a.pftrace"),
    ],
)
def test_the_configuration_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, enabled: str, config: str | None, file: str | None
) -> None:
    monkeypatch.setenv("HB_DNN_ENABLE_PERFETTO", enabled)
    if config is not None:
        (tmp_path / "config.json").write_text(config)
        monkeypatch.setenv("HB_DNN_PERFETTO_CONFIG_PATH", str(tmp_path / "config.json"))
    found = environment.trace_file()
    assert (None if found is None else str(found)) == file


@pytest.mark.parametrize("config", ["", "[]", "{", '{"trace_record_file": 3}', '{"trace_record_file": ""}', None])
def test_a_wrong_configuration_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: str | None) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    monkeypatch.setenv("HB_DNN_ENABLE_PERFETTO", "true")
    monkeypatch.setenv("HB_DNN_PERFETTO_CONFIG_PATH", str(tmp_path / "config.json"))
    with pytest.raises(ModelError, match=r"config\.json"):
        environment.check()
    monkeypatch.delenv("HB_DNN_PERFETTO_CONFIG_PATH")
    monkeypatch.setenv("HB_DNN_ENABLE_PERFETTO", "maybe")
    with pytest.raises(ModelError, match="must be true or false"):
        environment.check()
