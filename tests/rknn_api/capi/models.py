"""Model files for the C names, made by the toolkit once a session."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

from rknn_api.toolkit.rknn import RKNN
from tests.rknn_api import nets


def model(kind: str, platform: str = "rk3588") -> bytes:
    """A model file: "int8" and "float16" of one convolution with 20 channels, "shapes" and "batch" of the same."""
    return _made(kind, platform)


@cache
def _made(kind: str, platform: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="rknn-models-") as name:
        return _build(kind, platform, Path(name))


def _build(kind: str, platform: str, folder: Path) -> bytes:
    rng = np.random.default_rng(5)
    weights = {"w": rng.standard_normal((20, 3, 3, 3)).astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("GlobalAveragePool", ["y"], ["p"]),
        helper.make_node("Flatten", ["p"], ["z"]),
    ]
    side: Any = [1, 3, "h", "w"] if kind == "shapes" else [1, 3, 6, 10]
    path = nets.saved(folder, nodes, {"x": side}, ["y", "z"], weights)
    rknn = RKNN()
    how: dict[str, Any] = {"mean_values": [[10.0, 20.0, 30.0]], "std_values": [[2.0, 4.0, 8.0]]}
    if kind == "shapes":
        how["dynamic_input"] = [[[1, 3, 6, 10]], [[1, 3, 4, 8]]]
    rknn.config(target_platform=platform, custom_string="of a test", **how)
    assert rknn.load_onnx(str(path)) == 0, rknn.last_error
    dataset = None
    if kind != "float16":
        images = [rng.integers(0, 256, (1, 6, 10, 3)).astype(np.float32) for _ in range(3)]
        dataset = str(nets.arrays(folder, *images))
    built = rknn.build(
        do_quantization=dataset is not None, dataset=dataset, rknn_batch_size=3 if kind == "batch" else None
    )
    assert built == 0, rknn.last_error
    file = folder / "model.rknn"
    assert rknn.export_rknn(str(file)) == 0, rknn.last_error
    rknn.release()
    return file.read_bytes()
