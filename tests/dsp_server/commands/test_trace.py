"""``hbrt trace`` and ``hbrt run --trace`` on boards: what real processes note, also those that are killed."""

from __future__ import annotations

import json
import os
import re
import signal
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths
from hbrt.trace.timeline import MODELED
from tests.hbrt.trace.reader import Trace, read
from tests.limits import PATIENCE_S, full_disk
from tests.nursery import Program, run_program
from tests.remote_relay import RemoteRelay
from tests.shared import Shell
from tests.waiting import until

CALLS = """
import sys, time
import numpy as np
import arm_client as hb
from arm_client import connect, nn

with connect() as board:
    mem = hb.hbSysMem()
    for _ in range(int(sys.argv[1])):
        nn.softmax(board, np.zeros((1, 60000), np.float32))
    hb.hbSysAllocCachedMem(mem, 4096)
    hb.hbSysFlushMem(mem, hb.HB_SYS_MEM_CACHE_CLEAN)
    hb.hbSysFreeMem(mem)
    board.submit(0x999).exception()
"""


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    program = tmp_path / "calls.py"
    program.write_text(CALLS)
    return program


def check(trace: Trace, count: int) -> None:
    """Hold the trace of the program above to what it does."""
    ops = trace.of("core 0", "softmax") + trace.of("core 1", "softmax")
    submits = trace.of("calls.py / MainThread", "submit softmax")
    waits = trace.of("calls.py / MainThread", "wait for softmax")
    assert len(ops) == len(submits) == len(waits) == count
    assert sorted(one.flows for one in ops) == sorted(one.flows for one in submits)
    ends = [one for one in trace.instants if one.name == "end of softmax"]
    assert sorted(one.flows for one in ends) == sorted(one.flows for one in ops)
    by_flow = {one.flows: one for one in ops}
    assert all(one.start_ns < by_flow[one.flows].start_ns for one in submits)
    assert {one.name for one in trace.of("MainThread") if one.name.startswith(("alloc", "free", "flush"))} == {
        "alloc",
        "free",
        "flush (clean)",
    }
    assert any("0x999 failed" in one.name for one in trace.instants)
    for core in {one.track for one in ops}:
        of_core = [one for one in ops if one.track == core]
        dma_waits = trace.of(core, "DMA wait")
        assert all(any(op.has(wait) for op in of_core) for wait in dma_waits)
        assert dma_waits
        copies = [one for one in trace.slices if one.track.startswith(f"{core} DMA")]
        assert all(any(op.has(copy) for op in of_core) for copy in copies)
        name = core.rpartition(" / ")[2]
        modeled = [one for one in trace.of(f"{name} ops") if MODELED in one.track]
        computes = [one for one in modeled if one.name == "compute"]
        moved = [one for one in trace.of(f"{name} DMA") if MODELED in one.track]
        assert len(moved) == len(copies)
        assert any(copy.meets(compute) for copy in moved for compute in computes)  # what ping-pong is for
        used = [value for _, value in trace.values[f"{core} TCM bank 0, bytes"]]
        assert (max(used) > 0, used[-1]) == (True, 0)
    waiting = trace.values[next(name for name in trace.values if name.endswith("waiting tasks, priority 0"))]
    assert [value for _, value in waiting[-1:]] == [0]


def run(shell: Shell, calls: Path, count: int) -> None:
    answer = run_program([calls, count], PATIENCE_S, Program, cwd=shell.cwd, env=shell.environment)
    assert answer.returncode == 0, answer


def test_a_board_is_traced_from_on_to_off(shell: Shell, calls: Path, tmp_path: Path) -> None:
    shell.good("start")
    assert shell.good("trace", "off") == "Board default was not being traced.\n"
    run(shell, calls, 1)
    assert "2 tasks" in shell.good("trace", "save", tmp_path / "history.pftrace")  # what the board keeps anyway
    assert "Tracing board" in shell.good("trace", "on", "--events", 4096)  # with room for fewer they are read sooner
    assert "already being traced" in shell.good("trace", "on")
    assert shell.json("trace", "on")["was_on"]
    run(shell, calls, 2)
    assert "3 tasks" in shell.good("trace", "save", tmp_path / "on.pftrace")
    check(read(tmp_path / "on.pftrace"), 2)
    off = shell.good("trace", "off")
    assert re.search(r"Its files take [1-9][\d.]* MiB until the next trace starts or the board stops\.\n$", off), off
    run(shell, calls, 1)
    shell.good("trace", "save", tmp_path / "off.perfetto-trace")
    check(read(tmp_path / "off.perfetto-trace"), 2)
    shell.good("trace", "save", tmp_path / "off.json")
    assert len(json.loads((tmp_path / "off.json").read_text())["traceEvents"]) > 100
    code, said = shell.refused("trace", "save", tmp_path / "off.txt")
    assert (code, "does not name a format" in said) == (2, True)
    stopped = shell.good("stop")
    assert ".ring" not in stopped
    assert " files of its trace.\n" in stopped
    assert not list(shell.home.rglob("*.ring"))


def test_a_disk_that_is_full_traces_nothing_and_keeps_what_is_kept_anyway(
    shell: Shell, calls: Path, tmp_path: Path
) -> None:
    shell.good("start")
    run(shell, calls, 1)
    with full_disk(shell.pid()):
        code, said = shell.refused("trace", "on")
    assert (code, "File too large. Nothing is traced." in said) == (2, True), said
    assert "2 tasks" in shell.good("trace", "save", tmp_path / "history.pftrace")


def test_a_trace_survives_killed_processes(shell: Shell, calls: Path, tmp_path: Path) -> None:
    shell.good("start")
    shell.good("trace", "on", "--events", "4096")
    run(shell, calls, 2)
    status = shell.status()
    os.kill(status["cores"][0]["pid"], signal.SIGKILL)
    until(lambda: shell.status()["cores"][0]["crashes"] and shell.status()["cores"][0]["state"] == "running")
    run(shell, calls, 2)
    os.kill(status["pid"], signal.SIGKILL)
    until(lambda: daemon_pid(BoardPaths(shell.home / "default")) is None)
    shell.good("trace", "save", tmp_path / "killed.pftrace")
    trace = read(tmp_path / "killed.pftrace")
    assert len(trace.of("core 0", "softmax") + trace.of("core 1", "softmax")) == 4
    assert any("Core 0" in one.name for one in trace.instants)
    assert shell.hbrt("start").returncode == 0
    shell.good("stop")
    assert not list(shell.home.rglob("*.ring"))


@pytest.mark.parametrize("inline", ["0", "1"])
def test_a_run_is_traced_on_a_private_board(shell: Shell, calls: Path, tmp_path: Path, inline: str) -> None:
    shell.environment["HBRT_INLINE"] = inline
    ran = shell.hbrt("run", "--trace", tmp_path / "run.pftrace", calls, 2)
    assert ran.returncode == 0, ran
    assert "run.pftrace: 3 tasks" in ran.stderr
    check(read(tmp_path / "run.pftrace"), 2)


def test_hops_over_a_relay_and_over_tcp_are_in_the_trace(shell: Shell, calls: Path, tmp_path: Path) -> None:
    shell.good("start")
    with RemoteRelay(shell.home / "default") as gateway:
        shell.good("trace", "on", "--events", 4096)  # a relay sends what a trace could hold, 200 MB by default
        shell.environment["HB_DSP_RPC_MODE"] = "relay"
        run(shell, calls, 1)
        shell.environment |= {"HBRT_BOARD": gateway.address}
        ran = shell.hbrt("run", "--trace", tmp_path / "program.pftrace", calls, 1)
        assert ran.returncode == 0, ran
        assert "are on this machine's clock, within " in ran.stderr
        said = shell.good("trace", "save", tmp_path / "fetched.pftrace")
        assert "4 tasks" in said
        del shell.environment["HBRT_BOARD"]
        shell.good("trace", "save", tmp_path / "board.pftrace")
    trace, program = read(tmp_path / "board.pftrace"), read(tmp_path / "program.pftrace")
    flows = {one.flows for core in "01" for one in trace.of(f"core {core}", "softmax")}
    relayed = [one for one in trace.slices if one.name == "relay" and one.track.startswith("relay / ")]
    submitted = [one for one in trace.slices if one.name == "submit" and one.track.startswith("gateway ")]
    assert [len(flows & {one.flows for one in hops}) for hops in (relayed, submitted)] == [1, 1]
    moved = [one.facts["bytes"] for one in trace.slices if one.name in {"from the program", "to the program"}]
    assert sum(moved) > 240_000  # a row of results; pages of zeros are not sent
    submits = program.of("calls.py / MainThread", "submit softmax")
    ops = sorted((op for core in "01" for op in program.of(f"core {core}", "softmax")), key=lambda op: op.start_ns)
    assert len(submits) == len(ops) == 1  # those of this run, each behind its submission
    assert all(submit.start_ns < op.start_ns for submit, op in zip(submits, ops, strict=True))
    names = {core: f"board default / core {core} DMA, copy 0" for core in "01"}
    assert any(program.of(name, "copy") for name in names.values())
    assert program.of("calls.py / MainThread", "to the gateway")
    shell.good("stop")


def test_a_directory_that_cannot_be_written_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shell.environment["HBRT_TRACE"] = str(tmp_path / "file" / "traces")
    code, said = shell.refused("start")
    assert code != 0
    assert "The trace cannot be kept in" in said
    del shell.environment["HBRT_TRACE"]
    shell.good("start")
    (shell.home / "default" / "trace").touch()
    code, said = shell.refused("trace", "on")
    assert (code, "The trace cannot be kept in" in said) == (2, True)
    assert shell.good("trace", "off") == "Board default was not being traced.\n"
    (shell.home / "default" / "trace").unlink()
    shell.good("trace", "on")
    shell.good("stop")


def test_the_viewer_serves_a_file_with_the_token_only(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    (shell.cwd / "run.json").write_text('{"traceEvents": []}')
    viewer = shell.start("-m", "hbrt", "trace", "open", "run.json", "--no-browser")
    assert viewer.stdout is not None
    address = re.search(r"127.0.0.1:(\d+)(/viewer.html)(\?token=\S+)", viewer.stdout.readline())
    assert address is not None
    got = {}
    for path in (address[2] + address[3], "/trace.json" + address[3], address[2]):
        connection = HTTPConnection("127.0.0.1", int(address[1]), timeout=PATIENCE_S)
        connection.request("GET", path)
        answer = connection.getresponse()
        got[answer.status, path.partition("?")[0]] = answer.read()
        connection.close()
    assert b"viewer.js" in got[200, "/viewer.html"]
    assert got[200, "/trace.json"] == b'{"traceEvents": []}'
    assert b"traceEvents" not in got[403, "/viewer.html"]
    viewer.send_signal(signal.SIGINT)
    assert viewer.wait() == 130
    (shell.cwd / "run.pftrace").write_bytes(b"")
    assert shell.hbrt("trace", "open", "run.pftrace").returncode == 2
