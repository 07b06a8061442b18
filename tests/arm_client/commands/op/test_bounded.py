"""A parser in its own process, which may hang, crash or eat memory."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from arm_client.commands.op import bounded as module
from arm_client.commands.op.bounded import bounded
from hbrt.layout.structure import LayoutError


def spin() -> None:
    while True:
        pass


def test_its_result_and_its_refusal_come_back() -> None:
    def refuse() -> None:
        raise LayoutError("no such struct")

    assert bounded(lambda: {"a": [1] * 100_000}, "f.h") == {"a": [1] * 100_000}
    with pytest.raises(LayoutError, match="no such struct"):
        bounded(refuse, "f.h")


@pytest.mark.parametrize("call", [spin, os.abort, lambda: os._exit(0)])
def test_what_does_not_come_to_its_end_is_a_refusal(call: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 1)
    with pytest.raises(LayoutError, match=r"f\.h cannot be read: its parser crashed or exceeded"):
        bounded(call, "f.h")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError):
        bounded(lambda: bytearray(2 * module.MAX_BYTES), "f.h")
