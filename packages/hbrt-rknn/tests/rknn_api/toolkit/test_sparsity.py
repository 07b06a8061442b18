"""Masks: how many weights stay, and which; what config makes of them, and what the analysis says that they cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from rknn_api.toolkit.rknn import RKNN
from rknn_api.toolkit.sparsity import MODES, is_sparse, kept, with_masks
from tests.rknn_api import nets


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", MODES)
def test_a_mask_leaves_half_or_a_quarter(mode: str) -> None:
    found = kept(weights(32, 64, 3, 3), mode)
    assert found.mean() == (0.5 if mode in {"IC", "OC"} else 0.25)
    tiles = found.reshape(8, 4, 16, 4, 3, 3)
    along = {"IC": (3,), "OC": (1,)}.get(mode, (1, 3))
    assert (tiles.sum(along) == (2 if len(along) == 1 else 4)).all()
    if len(along) == 2:
        assert tiles.sum(1).max() == tiles.sum(3).max() == 2
        first = kept(weights(32, 64, 3, 3), mode[:2])
        assert not (found & ~first).any()


def test_the_least_go_of_equal_ones_the_first_and_an_edge_is_filled_up() -> None:
    row = np.array([3, -1, 2, -4, 5, 5, 5, 5, 1, 2], np.float32).reshape(1, 10, 1, 1)
    assert kept(row, "IC").ravel().tolist() == [True, False, False, True, False, False, True, True, True, True]
    assert kept(row.transpose(1, 0, 2, 3), "OC").ravel().tolist() == kept(row, "IC").ravel().tolist()
    one = kept(np.ones((2, 3, 1, 1), np.float32), "IC+OC")
    assert one.shape == (2, 3, 1, 1)
    assert one.sum() == 4
    full = weights(32, 32, 1, 1)
    assert not is_sparse(full)
    for mode in MODES:
        assert is_sparse(np.where(kept(full, mode), full, 0))


def model(folder: Path) -> str:
    tensors = {"w": weights(32, 3, 3, 3), "v": weights(32, 32, 3, 3) / 10, "u": weights(64, 32, 1, 1) / 5}
    tensors["u"] = np.where(kept(tensors["u"], "OC"), tensors["u"], 0).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="thin"),
        helper.make_node("Conv", ["a", "v"], ["b"], name="wide"),
        helper.make_node("Conv", ["b", "u"], ["y"], name="trained"),
    ]
    return str(nets.saved(folder, nodes, {"x": [1, 3, 8, 8]}, ["y"], tensors))


def test_config_masks_and_the_analysis_shows_the_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rng = model(tmp_path), np.random.default_rng(1)
    dataset = str(nets.arrays(tmp_path, *[rng.standard_normal((1, 8, 8, 3)).astype(np.float32) for _ in range(3)]))
    cosines = {}
    for given in (False, True, "IC", "IC+OC"):
        rknn = RKNN()
        rknn.config(target_platform="rk3576", sparse_infer=given)
        assert rknn.load_onnx(path) == 0
        assert rknn.build(do_quantization=True, dataset=dataset) == 0, rknn.last_error
        assert rknn.accuracy_analysis([str(next(tmp_path.glob("*.npy")))], tmp_path / "snapshot") == 0
        lines = (tmp_path / "snapshot" / "error_analysis.txt").read_text().splitlines()
        cosines[given] = next(float(line.split()[2]) for line in lines if line.startswith("[Conv] b "))
        rknn.release()
    said = capsys.readouterr().out
    assert "I sparse_infer: of 3 convolutions 1 sparse already, 0 masked, 2 dense: thin, wide" in said
    assert "I sparse_infer: of 3 convolutions 1 sparse already, 1 masked IC+OC, 1 dense: thin" in said
    assert cosines[False] == cosines[True] > 0.99 > cosines["IC"] > cosines["IC+OC"]


def test_what_cannot_be_sparse_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rknn = RKNN()
    assert rknn.config(target_platform="rk3588", sparse_infer=True) == -1
    assert "rk3588 has no sparse inference; only rk3576 and rv1126b do" in rknn.last_error
    assert rknn.config(target_platform="rk3576", sparse_infer="4:2") == -1
    assert "it must be True, False, or a mask: 'IC', 'OC', 'IC+OC', 'OC+IC'" in rknn.last_error
    rknn.config(target_platform="rk3576", sparse_infer="OC")
    assert rknn.load_onnx(model(tmp_path)) == 0
    assert rknn.build(do_quantization=False) == 0
    assert "in real numbers, all layers stay dense" in capsys.readouterr().err


def test_masks_do_not_change_the_model_that_is_given(tmp_path: Path) -> None:
    given = onnx.load(model(tmp_path))
    before = given.SerializeToString()
    made = with_masks(given, "OC+IC")
    assert given.SerializeToString() == before
    tensor = next(one for one in made.model.graph.initializer if one.name == "v")
    assert (numpy_helper.to_array(tensor) != 0).mean() == 0.25
