"""Model files for the C names, made by the toolkit once per session."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

from rknn_api.run.custom_ops import get_node_attr
from rknn_api.toolkit.rknn import RKNN
from tests.rknn_api import nets


def model(kind: str, platform: str = "rk3588") -> bytes:
    """A model file: "int8" and "float16" of one convolution with 20 channels, "shapes" and "batch" of the same; "op".

    That one has two nodes of cstScale. "channels" has 20 channels at its input, too.
    """
    return _made(kind, platform)


@cache
def _made(kind: str, platform: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="rknn-models-") as name:
        return _build(kind, platform, Path(name))


class CstScale:
    """x * gain + the sum of the offsets."""

    op_type = "cstScale"

    def shape_infer(self, node: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        return in_shapes.copy(), in_dtypes.copy()

    def compute(self, node: Any, inputs: Any) -> Any:
        gain, offsets = get_node_attr(node, "gain"), get_node_attr(node, "offsets")
        return [inputs[0] * np.float32(gain) + np.float32(sum(offsets))]


def _with_ops(folder: Path) -> bytes:
    """Two nodes of cstScale behind a convolution, in real numbers."""
    weights = {"w": np.ones((4, 3, 1, 1), np.float32)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"])]
    for at, (read, made) in enumerate([("c", "d"), ("d", "y")]):
        attributes: dict[str, Any] = {"gain": 2.5, "offsets": [1, 2, at], "mode": "plain", "axis": -1}
        nodes.append(helper.make_node("cstScale", [read], [made], domain="own", name=f"scale_{at}", **attributes))
    path = nets.saved(folder, nodes, {"x": [1, 3, 2, 3]}, ["y"], weights)
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.reg_custom_op(CstScale()) == 0
    assert rknn.load_onnx(str(path)) == 0, rknn.last_error
    assert rknn.build(do_quantization=False) == 0, rknn.last_error
    assert rknn.export_rknn(str(folder / "op.rknn")) == 0, rknn.last_error
    return (folder / "op.rknn").read_bytes()


def _build(kind: str, platform: str, folder: Path) -> bytes:
    if kind == "op":
        return _with_ops(folder)
    rng = np.random.default_rng(5)
    channels = 20 if kind == "channels" else 3
    weights = {"w": rng.standard_normal((20, channels, 3, 3)).astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("GlobalAveragePool", ["y"], ["p"]),
        helper.make_node("Flatten", ["p"], ["z"]),
    ]
    side: Any = [1, 3, "h", "w"] if kind == "shapes" else [1, channels, 6, 10]
    path = nets.saved(folder, nodes, {"x": side}, ["y", "z"], weights)
    rknn = RKNN()
    how: dict[str, Any] = {"mean_values": [[10.0, 20.0, 30.0]], "std_values": [[2.0, 4.0, 8.0]]}
    if kind == "channels":
        how = {"mean_values": [[7.0]], "std_values": [[3.0]]}
    if kind == "shapes":
        how["dynamic_input"] = [[[1, 3, 6, 10]], [[1, 3, 4, 8]]]
    rknn.config(target_platform=platform, custom_string="of a test", **how)
    assert rknn.load_onnx(str(path)) == 0, rknn.last_error
    dataset = None
    if kind != "float16":
        images = [rng.integers(0, 256, (1, 6, 10, channels)).astype(np.float32) for _ in range(3)]
        dataset = str(nets.arrays(folder, *images))
    built = rknn.build(
        do_quantization=dataset is not None, dataset=dataset, rknn_batch_size=3 if kind == "batch" else None
    )
    assert built == 0, rknn.last_error
    file = folder / "model.rknn"
    assert rknn.export_rknn(str(file)) == 0, rknn.last_error
    rknn.release()
    return file.read_bytes()


def exported(path: Path, folder: Path, **how: Any) -> bytes:
    """A model file of real numbers for an rk3588, of an ONNX file; ``how`` is of ``build``."""
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(path)) == 0, rknn.last_error
    assert rknn.build(do_quantization=False, **how) == 0, rknn.last_error
    file = folder / f"{path.stem}.rknn"
    assert rknn.export_rknn(str(file)) == 0, rknn.last_error
    rknn.release()
    return file.read_bytes()
