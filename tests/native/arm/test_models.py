"""Models from C, and layers in C++ that a plugin brings."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.native.arm.conftest import SAMPLES, Compile, Run

DIGITS = SAMPLES.parent / "dnn" / "digits_float.onnx"


def net(path: Path, columns: int, *nodes: Any) -> Path:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, columns]) for name in ("x", "y")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    graph = helper.make_graph(list(nodes), "net", tensors[:1], tensors[1:])
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    return path


def shift(output: str = "y", **attributes: Any) -> Any:
    return helper.make_node("Shift", ["x"], [output], domain="mine", **attributes)


@pytest.fixture
def plugin(compiled: Compile) -> dict[str, str]:
    """The environment of a program that uses plugin.cc."""
    return {"HB_DNN_ENABLE_DSP": "1", "HB_DNN_PLUGIN_PATH": str(compiled("plugin.cc", "-shared", "-fPIC"))}


def test_a_model_runs_from_c_with_callbacks_and_its_names_stay(compiled: Compile, run: Run) -> None:
    answer = run(compiled("digits.c"), DIGITS, HBRT_CACHE="strict")
    assert (answer.returncode, answer.stderr) == (0, ""), answer
    told, *rest = answer.stdout.splitlines()
    assert told == "1 model digits_float: 1 inputs (image: type 13, 256 bytes), 1 outputs (logits)"
    assert rest[0].startswith("image logits ")
    assert len(rest[0].split()) == 2 + 10


def test_the_guides_layer_is_a_plugin(compiled: Compile, run: Run, plugin: dict[str, str], tmp_path: Path) -> None:
    softmax = helper.make_node("Softmax", ["s"], ["y"], axis=-1)
    answer = run(compiled("digits.c"), net(tmp_path / "net.onnx", 4, shift("s", by=1.5), softmax), **plugin)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[1] == "x y" + 8 * " 0.2500"
    assert answer.stderr.count("DSPSoftmax 2x4 device") == 3
    assert "creator of 'Shift' is NULL" in answer.stderr


def test_a_mistake_of_a_layer_in_cplusplus_names_its_line(
    compiled: Compile, run: Run, plugin: dict[str, str], tmp_path: Path
) -> None:
    softmax = helper.make_node("Softmax", ["s"], ["y"], axis=-1)
    given = {**plugin, "HBRT_CHECK": "advice"}
    answer = run(compiled("digits.c"), net(tmp_path / "net.onnx", 4, shift("s", by=1.5), softmax), **given)
    (told,) = (line for line in answer.stderr.splitlines() if "endless-wait" in line)
    assert "plugin.cc:" in told, answer.stderr
    assert "threading.py" not in told


def test_an_attribute_reaches_a_layer(compiled: Compile, run: Run, plugin: dict[str, str], tmp_path: Path) -> None:
    answer = run(compiled("digits.c"), net(tmp_path / "net.onnx", 4, shift(by=1.5, mode="plain")), **plugin)
    assert answer.stdout.splitlines()[1] == "x y" + 8 * " 1.5000", answer.stderr


@pytest.mark.parametrize(
    ("columns", "attributes", "sentence"),
    [
        (16, {}, "a row is too long"),
        (4, {"mode": "odd"}, "the only mode is plain"),
        (4, {"by": "much"}, "attribute by must be numbers"),
    ],
)
def test_what_a_layer_throws_is_the_models_sentence(
    compiled: Compile,
    run: Run,
    plugin: dict[str, str],
    tmp_path: Path,
    columns: int,
    attributes: dict[str, Any],
    sentence: str,
) -> None:
    answer = run(compiled("digits.c"), net(tmp_path / "net.onnx", columns, shift(**attributes)), **plugin)
    assert answer.returncode == 1
    assert sentence in answer.stderr


def test_a_python_program_uses_the_same_plugin(
    run: Run, plugin: dict[str, str], tmp_path: Path, compiled: Compile
) -> None:
    del compiled
    model = net(tmp_path / "net.onnx", 4, shift(by=2))
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nimport numpy as np\nfrom arm_client import dnn\n(net,) = dnn.load(sys.argv[1])\n"
        "print(net(np.ones((2, 4), np.float32))[0].tolist())\n"
    )
    answer = run(Path(sys.executable), program, model, **plugin)
    assert answer.stdout == f"{np.full((2, 4), 3.0).tolist()}\n", answer.stderr


def test_a_library_that_does_not_load_is_refused_by_name(compiled: Compile, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "lacking.c"
    source.write_text("int nowhere(void);\nint here(void);\nint here(void) { return nowhere(); }\n")
    broken = compiled(str(source), "-shared", "-fPIC", "-Wl,-z,now")
    answer = run(compiled("digits.c"), DIGITS, HB_DNN_ENABLE_DSP="1", HB_DNN_PLUGIN_PATH=str(broken))
    assert answer.returncode == 1
    assert "Cannot load the plugin " in answer.stderr
    assert "undefined symbol: nowhere" in answer.stderr
