"""The sample of FastRPC: one call per layer, and one call in total."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arm_client.client import Board
from arm_client.commands.run.board import image_of
from arm_client.commands.run.references import verdict_of

SAMPLES = Path(__file__).resolve().parents[4] / "samples"


@pytest.mark.dsp_board("../../../../samples/dsp/fastrpc_image.py")
def test_the_sample(dsp_board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del dsp_board
    names: dict[str, Any] = runpy.run_path(str(SAMPLES / "arm/fastrpc/forward.py"))
    result = names["main"](str(tmp_path))
    verdict = verdict_of("fastrpc", "forward", result, SimpleNamespace(**names), {})
    assert verdict is not None
    assert verdict.passed
    said = capsys.readouterr().out
    assert "outputs are the same" in said
    assert "9 calls: 27 buffers (264448 bytes) shared, 9 (144 bytes" in said


def test_its_image_is_that_of_the_private_board(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    with image_of("fastrpc"):
        assert os.environ["HBRT_IMAGE"] == str(SAMPLES / "dsp/fastrpc_image.py")
    assert "HBRT_IMAGE" not in os.environ
    monkeypatch.setenv("HBRT_IMAGE", "mine.py")
    with image_of("fastrpc"):
        assert os.environ["HBRT_IMAGE"] == "mine.py"
