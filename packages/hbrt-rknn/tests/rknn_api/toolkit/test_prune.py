"""Channels of zeros leave a model, and its results stay."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, helper, numpy_helper

from rknn.api import RKNN
from rknn_api.toolkit.prune import pruned

RNG = np.random.default_rng(6)


def convolution(name: str, read: str, group: int = 1) -> Any:
    return helper.make_node("Conv", [read, f"{name}_w", f"{name}_b"], [name], name, pads=[1] * 4, group=group)


def model(*, between: str = "Relu", bias: float = 0, outputs: tuple[str, ...] = ("z",)) -> ModelProto:
    """Three convolutions; channels 1 and 4 of the first are zero, and the second has a group a channel."""
    weights = {
        "a_w": RNG.standard_normal((6, 3, 3, 3)),
        "a_b": RNG.standard_normal(6),
        "d_w": RNG.standard_normal((6, 1, 3, 3)),
        "d_b": RNG.standard_normal(6),
        "z_w": RNG.standard_normal((2, 6, 3, 3)),
        "z_b": RNG.standard_normal(2),
    }
    for at in (1, 4):
        weights["a_w"][at] = weights["a_b"][at] = 0
        weights["d_b"][at] = bias
    nodes = [
        convolution("a", "x"),
        helper.make_node(between, ["a"], ["r"]),
        convolution("d", "r", 6),
        convolution("z", "d"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_zero_channels_leave_and_the_result_stays() -> None:
    whole = model()
    found = pruned(whole)
    assert found.saved == 2 * (27 + 1) + 2 * (9 + 1) + 2 * 2 * 9
    assert found.before - found.saved == sum(int(np.prod(one.dims)) for one in found.model.graph.initializer)
    x = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
    one, other = (
        ort.InferenceSession(each.SerializeToString()).run(None, {"x": x})[0] for each in (whole, found.model)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "how", [{"between": "Sigmoid"}, {"bias": 0.5}, {"outputs": ("z", "r")}, {"outputs": ("z", "d")}]
)
def test_what_is_not_zero_behind_or_is_read_elsewhere_stays(how: Any) -> None:
    whole = model(**how)
    assert pruned(whole).model is whole


def test_the_toolkit_says_what_the_weights_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model(), tmp_path / "net.onnx")
    for is_pruned, said in ((True, "I Weight: -0.00045 MB (-"), (False, "")):
        rknn = RKNN()
        rknn.config(target_platform="rk3588", model_pruning=is_pruned)
        assert rknn.load_onnx(tmp_path / "net.onnx") == 0
        assert said in capsys.readouterr().out
        assert rknn.build(do_quantization=False) == 0
        rknn.release()
