"""Models of other frameworks: read by their converters where those are installed, refused with a message elsewhere."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rknn.api import RKNN


@pytest.fixture
def rknn() -> RKNN:
    """A toolkit that was configured."""
    made = RKNN()
    assert made.config(target_platform="rk3588") == 0
    return made


def test_a_missing_converter_and_a_missing_file_are_told(
    rknn: RKNN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    assert rknn.load_tflite("a.tflite") == -1
    assert "pip install 'hbrt-rknn[tensorflow]'" in rknn.last_error
    assert rknn.load_pytorch("a.pt", [[1, 3]]) == -1
    assert "pip install 'hbrt-rknn[pytorch]'" in rknn.last_error
    monkeypatch.setattr(importlib, "import_module", lambda name: name)
    assert rknn.load_pytorch(str(tmp_path / "a.pt"), [[1, 3]]) == -1
    assert "No such file" in rknn.last_error
    assert rknn.load_tensorflow("a.pb", ["x"], [[1, 3], [1]], ["y"]) == -1
    assert "has 2 shapes, but inputs has 1 names" in rknn.last_error


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_torchscript_is_read_and_run(rknn: RKNN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("HBRT_BPU", "inline")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten()).eval()
    picture = torch.rand(1, 3, 8, 8)
    torch.jit.trace(net, picture).save(tmp_path / "net.pt")
    assert rknn.load_pytorch(tmp_path / "net.pt", [[1, 3, 8, 8]]) == rknn.build(do_quantization=False) == 0
    assert rknn.init_runtime() == 0
    outputs = rknn.inference([picture.numpy().transpose(0, 2, 3, 1)])
    assert outputs is not None
    np.testing.assert_allclose(outputs[0], net(picture).detach().numpy(), atol=1e-5)
