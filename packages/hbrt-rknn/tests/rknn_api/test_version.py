"""Versions, as programs take them out of what the calls return."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rknn.api import RKNN
from rknn_api.version import API, DRIVER
from rknnlite.api import RKNNLite
from tests.rknn_api import nets

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_programs_find_the_versions_by_line_and_by_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_BPU", "inline")
    rknn, lite, file = RKNN(), RKNNLite(), tmp_path / "net.rknn"
    assert lite.get_sdk_version() is None
    rknn.config(target_platform="rk3588")
    assert (rknn.load_onnx(nets.DIGITS), rknn.build(do_quantization=False), rknn.export_rknn(file)) == (0, 0, 0)
    assert (lite.load_rknn(file), lite.init_runtime()) == (0, 0)
    text = lite.get_sdk_version() or ""
    assert [re.findall(rf"{name}: (\d+\.\d+\.\d+)", text) for name in ("API", "DRV")] == [[API], [DRIVER]]
    lines = text.split("\n")
    assert (lines[2].split(": ")[1].split(" ")[0], lines[3].split(": ")[1]) == (API, DRIVER)
    assert re.findall(r"DRV: (\w+): (\d\S+)", rknn.get_sdk_version()) == [("rknn_server", API), ("rknnrt", API)]
    lite.release()
    rknn.release()
