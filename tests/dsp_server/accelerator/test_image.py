"""The image of the cores that run models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsp_server.accelerator import image
from tests.each import each

if TYPE_CHECKING:
    import pytest


@each("limit_ms, model_us", [("150", 1_500_000), ("0", 0xFFFF_FFFF), ("1000000000", 0xFFFF_FFFF)])
def test_a_model_may_take_ten_times_as_long_as_an_op(
    monkeypatch: pytest.MonkeyPatch, limit_ms: str, model_us: int
) -> None:
    registered: list[int] = []
    monkeypatch.setenv("HBRT_WATCHDOG_MS", limit_ms)
    for name in ("hb_dsp_env_init", "hb_dsp_start"):
        monkeypatch.setattr(image, name, lambda: 0)
    monkeypatch.setattr(image, "hb_dsp_register_fn", lambda _cmd, _op, latency_us: registered.append(latency_us))
    image.main()
    assert registered == [model_us]
