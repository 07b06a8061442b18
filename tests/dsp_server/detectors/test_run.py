"""Which detectors an op runs under, what they may change, and how a mistake ends it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from dsp_server import runtime
from dsp_server.detectors import call as detectors
from dsp_server.detectors.call import Call, MistakeError, run_checked
from hbrt.findings.checks import Check
from hbrt.findings.record import Finding

ENGINES: Any = ("tcm", "counter", "idma")


def op(input: memoryview, output: memoryview, tm: object) -> int:
    output[:] = input
    return 3


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    found: list[Finding] = []
    monkeypatch.setattr(runtime.context, "report", found.append)
    return found


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Detectors for MEMORY and DMA: the second gives the op another input, and finds a mistake in a handler."""
    entered: list[str] = []

    @contextmanager
    def memory(call: Call) -> Iterator[None]:
        entered.append("memory")
        yield

    @contextmanager
    def dma(call: Call) -> Iterator[None]:
        entered.append("dma")
        call.input = memoryview(b"other")
        call.use("other tcm", "other idma")  # type: ignore[arg-type]
        call.find("dma-left", "A mistake.", call.place("copy", "op.py:3"), is_in_handler=True)
        yield

    modules: dict[str, Any] = {"found_memory": SimpleNamespace(watch=memory), "found_dma": SimpleNamespace(watch=dma)}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(detectors, "DETECTORS", {Check.MEMORY: "found_memory", Check.DMA: "found_dma"})
    return entered


def make_call(checks: Check, used: list[object]) -> tuple[Call, bytearray]:
    output = bytearray(5)
    views = (memoryview(b"input"), memoryview(output))
    return Call(0x1100, "op", views, ENGINES, lambda *engines: used.append(engines), checks), output


@pytest.mark.parametrize(
    ("checks", "who", "written"),
    [
        (Check.LAYOUT, [], b"input"),
        (Check.DMA, ["dma"], b"other"),
        (Check.DMA | Check.MEMORY, ["memory", "dma"], b"other"),
    ],
)
def test_the_detectors_of_the_checks_watch(
    entered: list[str], found: list[Finding], checks: Check, who: list[str], written: bytes
) -> None:
    used: list[object] = []
    call, output = make_call(checks, used)
    assert run_checked(op, call) == 3
    assert (entered, bytes(output)) == (who, written)
    assert used == ([("other tcm", "counter", "other idma")] if Check.DMA in checks else [])
    assert [(one.kind, one.places[0].op) for one in found] == ([("dma-left", "op")] if Check.DMA in checks else [])


def test_fail_fast_ends_the_op_with_the_mistake(entered: list[str], found: list[Finding]) -> None:
    call, _ = make_call(Check.DMA | Check.FAIL_FAST, [])
    before, tracer = sys.gettrace(), lambda *_: None
    sys.settrace(tracer)  # a debugger's
    try:
        with pytest.raises(MistakeError, match=r"A mistake\."):
            run_checked(op, call)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert len(found) == 1
