"""The lines of a program that led to a call: a wrapper's line alone says little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arm_client.client import Board
from hbrt.findings.record import finding_of, lines_of, site_bytes
from tests.each import each
from tests.limits import PATIENCE_S

WRAPPERS = """
import arm_client as hb

def alloc(size):
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, size) == 0
    return mem

def call(source):
    task = hb.hbDSPTask_t()
    assert hb.hbDSPRpc(task, source, None, hb.hbDSPRpcCtrlParam(rpcCmd=hb.HB_DSP_RPC_CMD_PING)) == 0
    assert hb.hbDSPWaitTaskDone(task, 100) == 0
"""
PROGRAM = """
from calls import alloc, call

def first():
    return alloc(10)

def second():
    return [alloc(20) for _ in range(2)]

def leave():
    first(), second()
    call(None)

leave()
"""


@pytest.mark.parametrize("check", ["race", "tell"])
def test_a_finding_has_the_lines_that_led_to_a_wrapper(tmp_path: Path, dsp_board: Board, check: str) -> None:
    for name, text in (("calls", WRAPPERS), ("app", PROGRAM)):
        (tmp_path / f"{name}.py").write_text(text)
    environment = {**os.environ, "HBRT_CHECK": check, "HBRT_BOARD": str(dsp_board.path)}
    environment["HBRT_SARIF"] = str(tmp_path / "log.sarif")
    command = [sys.executable, str(tmp_path / "app.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    tasks, blocks = (finding_of(one) for one in dsp_board.status()["findings"])
    if check == "tell":
        assert {place.site for place in blocks.places} == {f"{tmp_path}/calls.py:6"}
        assert [place.site for place in tasks.places] == [None]
    else:
        assert [place.site for place in blocks.places] == [
            f"{tmp_path}/calls.py:6 (called from app.py:{line}, app.py:11, app.py:14)" for line in (5, 8, 8)
        ]
        assert str(tasks.places[0].site).startswith(f"{tmp_path}/calls.py:11 (called from app.py:12")
        results = json.loads((tmp_path / "log.sarif").read_text())["runs"][0]["results"]
        related = [one["physicalLocation"]["region"]["startLine"] for one in results[1]["relatedLocations"]]
        assert related[:3] == [5, 11, 14]


@each(
    "most, kept",
    [
        (99, "/a/b.py:3 (called from c.py:4, d.py:5)"),
        (37, "/a/b.py:3 (called from c.py:4)"),
        (29, "/a/b.py:3"),
        (6, ".py:3"),
    ],
)
def test_a_site_where_there_is_little_room(most: int, kept: str) -> None:
    assert site_bytes("/a/b.py:3 (called from c.py:4, d.py:5)", most).decode().endswith(kept)
    assert len(site_bytes("/a/b.py:3 (called from c.py:4, d.py:5)", most)) <= most


def test_lines_of_a_site() -> None:
    assert lines_of("/a/b.py:3") == ["/a/b.py:3"]
    assert lines_of("/a/b.py:3 (called from c.py:4, /d/e.py:5, <stdin>:6)") == [
        "/a/b.py:3",
        "/a/c.py:4",
        "/d/e.py:5",
        "<stdin>:6",
    ]
