"""The check layout: parameter structures that the DSP may read differently are named where they are submitted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import arm_client as hb
from hbrt.findings.record import Finding
from tests.arm_client.conftest import Chip

Findings: TypeAlias = Callable[[], list[Finding]]


@pytest.fixture
def check() -> str:
    return "layout"


def line_of(text: str) -> int:
    return Path(__file__).read_text(encoding="utf-8").splitlines().index(text) + 1


class RowParam(ctypes.Structure):
    """The fields of the vendor's published softmax, in its order."""

    _fields_ = (("row_bytes", ctypes.c_int32), ("input", ctypes.c_uint64))


class ClosedParam(ctypes.Structure):
    _fields_ = (("input", ctypes.c_uint64), ("row_bytes", ctypes.c_int32))


class BigParam(ctypes.BigEndianStructure):
    _fields_ = (("count", ctypes.c_uint32),)


class SoftmaxParam(hb.hbDSPSoftmaxParam):
    """The runtime declares its fields, and documents its hole."""


class WrongParam(ctypes.Structure):
    _fields_ = (("input", ctypes.c_void_p), ("tag", ctypes.c_uint8), ("image", hb.hbVPImage * 2))


def submit(chip: Chip, kind: Any) -> None:
    """By the C names, as the sample does: the structure lies in the input block."""
    mem, out = chip.mem(size := ctypes.sizeof(kind), bytes(size)), chip.mem(256)
    param = kind.from_buffer(mem.view())
    for _ in range(2):
        assert chip.outcome(chip.ECHO, mem, out)[0] == 0
    del param


def test_the_hole_of_a_structure_in_the_input_block(watched: Chip, findings: Findings) -> None:
    submit(watched, ClosedParam)
    assert findings() == []
    submit(watched, RowParam)
    submit(watched, RowParam)
    (found,) = findings()
    declared = f"{__file__}:{line_of('class RowParam(ctypes.Structure):')}"
    assert (found.kind, str(found.severity), found.times) == ("hole", "warning", 1)
    assert f"The parameter structure RowParam ({declared}) has 4 bytes of padding between `row_bytes`" in found.text
    assert [place.what for place in found.places] == ["submitted", "declared"]
    assert found.places[1].site == declared


def test_the_hole_of_a_structure_that_is_given_to_a_call(watched: Chip, findings: Findings) -> None:
    board, out = watched.board, watched.board.empty(64)
    for kind in (ClosedParam, RowParam, RowParam):
        board.call(watched.ECHO, kind(), out)
    (found,) = findings()
    line = line_of("        board.call(watched.ECHO, kind(), out)")
    assert (found.kind, found.places[0].site) == ("hole", f"{__file__}:{line}")


def test_a_pointer_is_an_error_and_what_the_runtime_declares_is_not_looked_into(
    watched: Chip, findings: Findings
) -> None:
    submit(watched, WrongParam)
    found = {one.kind: one for one in findings()}
    assert "`input` (void *) is a pointer: it has 8 bytes on the ARM and 4 on the DSP" in found["dsp-layout"].text
    assert "7 bytes of padding between `tag` (offset 8) and `image` (offset 16)" in found["hole"].text
    assert "such holes" not in found["hole"].text
    for kind in (hb.hbDSPSoftmaxParam, SoftmaxParam, hb.hbDSPCvFlipParam):
        submit(watched, kind)
    assert len(findings()) == 2


def test_a_big_endian_structure(watched: Chip, findings: Findings) -> None:
    submit(watched, BigParam)
    (found,) = findings()
    assert found.kind == "dsp-layout"
    assert "BigParam is big-endian: the ARM and the DSP are little-endian." in found.text


@pytest.mark.parametrize("check", ["memory,dma"])
def test_nothing_is_said_without_the_check(watched: Chip, findings: Findings) -> None:
    submit(watched, RowParam)
    watched.board.call(watched.ECHO, RowParam(), watched.board.empty(64))
    assert findings() == []
