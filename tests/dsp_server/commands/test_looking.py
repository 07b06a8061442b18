"""``hbrt status``, ``ops``, ``mem`` and ``version``: what a board shows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hbrt import __version__
from hbrt.control.ask import Daemon
from hbrt.errors import RefusedError
from hbrt.status import Status
from tests.limits import PATIENCE_S
from tests.nursery import Client
from tests.waiting import await_end, until

if TYPE_CHECKING:
    from tests.shared import Shell

CLIENT = """
import arm_client as hb
from arm_client import connect
board = connect()
plain, cached = hb.hbSysMem(), hb.hbSysMem()
assert hb.hbSysAllocMem(plain, 10_000) == 0
assert hb.hbSysAllocCachedMem(cached, 3 << 20) == 0
board.ping()
print(hex(plain.phyAddr), hex(cached.phyAddr), flush=True)
input()
"""


@contextmanager
def holding_memory(shell: Shell) -> Iterator[tuple[int, list[str]]]:
    """A program that holds two blocks: its process id, and their addresses."""
    client = Client(
        [sys.executable, "-c", CLIENT],
        env=shell.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert client.stdout is not None
        yield client.pid, client.stdout.readline().split()
    finally:
        client.communicate("\n", timeout=PATIENCE_S)


def test_ops_are_listed_by_command(running: Shell) -> None:
    rows = {row["command"]: row for row in running.json("ops")}
    assert {row["name"] for row in rows.values()} >= {"softmax", "quantize", "dequantize"}
    assert rows["0x400"]["cmd"] == 0x400
    assert rows["0x400"]["range"] == "nn"
    heading, *lines = running.good("ops").splitlines()
    assert heading.split() == ["COMMAND", "NAME", "RANGE", "LATENCY", "SOURCE"]
    assert ["0x400", "softmax", "nn", "-", rows["0x400"]["source"]] in [line.split() for line in lines]


def test_memory_is_listed_with_its_owner(running: Shell) -> None:
    with holding_memory(running) as (pid, (plain, cached)):
        memory = running.json("mem")
        blocks = {hex(block["phy_addr"]): block for block in memory["blocks"]}
        assert memory["summary"]["blocks"] == 2
        assert blocks[plain]["size_bytes"] == 10_000
        assert (blocks[plain]["cached"], blocks[cached]["cached"]) == (False, True)
        assert {block["pid"] for block in blocks.values()} == {pid}

        summary, heading, *lines = running.good("mem").splitlines()
        assert summary.startswith("DDR of 2.0 GiB at 0x")
        assert "in use by 2 blocks" in summary
        assert heading.startswith("ADDRESS ")
        assert [line.split()[0] for line in lines] == [plain, cached]
        assert all(line.rstrip().endswith(f"process {pid} (-c)") for line in lines)

        _, _, first, more = running.good("mem", "-n", 1).splitlines()
        assert first.split()[0] == plain
        assert more == "... and 1 more; use -n to list more."


def test_status_shows_what_hangs(shell: Shell) -> None:
    shell.good("op", "new", "slow", "--cmd", "0x1000")
    image = shell.cwd / "slow_image.py"
    image.write_text(image.read_text().replace("    param =", "    __import__('time').sleep(1000)\n    param ="))
    shell.good("start", "--image", image, "--cores", 1)
    shell.start("call_slow.py")
    running = "Tasks: 0 ready, 1 running; "  # a busy core may look stuck
    shown = until(lambda: shown if running in (shown := shell.hbrt("status").stdout) else "", "the op does not run")
    assert "\nRunning longest: slow (0x1000) on core 0, of client 1, for " in shown


def test_status_lists_a_mistake_once_however_often_its_program_was_run(running: Shell) -> None:
    running.good("status")
    source = "import arm_client as hb\nhb.hbSysAllocMem(hb.hbSysMem(), 77)\n"
    before = len(running.status()["findings"])
    for _ in range(3):
        assert running.python("-c", source).returncode == 0
    listed = [line for line in running.good("status").splitlines() if "(77 bytes) not freed" in line]
    assert len(listed) == 1
    assert listed[0].endswith("(found 3 times; this is the last)")
    assert len(running.status()["findings"]) == before + 3  # each program's own


def test_status_shows_cores_clients_and_findings(running: Shell) -> None:
    with holding_memory(running) as (pid, addresses):
        status = running.status()
        assert status["state"] == "running"
        assert [core["state"] for core in status["cores"]] == ["running", "running"]
        (client,) = status["clients"]
        assert (client["pid"], client["blocks"], client["bytes"]) == (pid, 2, 10_000 + (3 << 20))
        shown = running.good("status")
        assert f"Board default is running: daemon process {running.pid()}, up " in shown
        assert "Tasks: 0 ready, 0 running; " in shown
        assert f"{pid}  -c" in shown
    shown = running.good("status")
    assert "No clients are attached." in shown
    assert "leak: " in shown
    (leak,) = [
        one
        for one in running.status()["findings"]
        if one["kind"] == "leak" and one["text"].startswith(f"Process {pid} ")
    ]
    assert {place["phy_addr"] for place in leak["places"]} == set(addresses)  # as the sentence has them


def test_a_core_that_died_is_shown_with_its_end(shell: Shell) -> None:
    shell.good("start")
    first = shell.status()["cores"][0]
    before_s = time.time()
    os.kill(first["pid"], signal.SIGKILL)
    while (core := shell.status()["cores"][0])["pid"] in {first["pid"], None} or core["health"] != "ok":
        pass
    assert core["state"] == "running"
    assert core["crashes"] == 1
    assert "SIGKILL" in core["last_crash"]
    row = next(line for line in shell.hbrt("status").stdout.splitlines() if line.lstrip().startswith("0 "))
    assert row.split()[:4] == ["0", "running", "ok", str(core["pid"])]
    assert len(row) <= 80
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(core["last_crash_s"]))
    assert before_s <= core["last_crash_s"] <= time.time()
    assert f"Last crash of core 0, {at}: {core['last_crash']}" in shell.hbrt("status").stdout.splitlines()


def test_the_status_of_an_offline_board_is_offline(shell: Shell) -> None:
    assert shell.hbrt("status").stdout.startswith("No board default in ")
    shell.good("start")
    shell.good("stop")
    status = shell.status()
    assert (status["state"], status["pid"], status["cores"]) == ("offline", None, [])
    assert shell.hbrt("status").stdout == ("Board default is offline. Start it with 'hbrt start'.\n")


def test_versions(shell: Shell) -> None:
    facts = shell.json("version")
    assert facts["hbrt"] == __version__
    assert facts["dsp_runtime_api"] == "0.3.3"
    assert shell.good("version").startswith(f"hbrt {__version__}, an emulator of the DSP runtime API 0.3.3 (J5)\n")


def test_a_daemon_that_dies_before_it_answers_is_told_apart_from_an_offline_board(shell: Shell) -> None:
    shell.good("start")
    with Daemon(shell.paths()) as daemon:
        assert daemon.request("status")["pid"] == daemon.pid
        os.kill(daemon.pid, signal.SIGSTOP)
        with pytest.raises(RefusedError, match=r"did not answer 'ops' in 0\.1 s") as late:
            daemon.request("ops", 0.1)
        assert late.value.status == Status.HB_DSP_TIMEOUT
        os.kill(daemon.pid, signal.SIGKILL)
        await_end(daemon.pid)
        with pytest.raises(RefusedError, match="ended before it answered") as gone:
            daemon.request("ops")
        assert gone.value.status == Status.HB_SYS_BOARD_LOST
