"""Progress of a verb whose standard error is not a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hbrt.cli.progress import progress

if TYPE_CHECKING:
    import pytest


def test_a_pipe_gets_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("hbrt.cli.progress.time.monotonic", lambda: now_s)
    with progress(70, "orders") as show:
        for done in range(1, 71):
            now_s += 1
            show(done)
    assert capsys.readouterr() == ("", "orders: 30 of 70\norders: 60 of 70\n")
