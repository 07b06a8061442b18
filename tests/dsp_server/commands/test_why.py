"""``hbrt why`` on boards where something waits, or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dsp_server.images import halts
from tests.limits import PATIENCE_S, with_limits
from tests.nursery import Program
from tests.remote_relay import RemoteRelay
from tests.shared import Shell

IMAGE = Path(halts.__file__)
HALT = """
import sys
from arm_client import connect
board = connect()
block = board.alloc(8)
way, core = map(int, sys.argv[1:])
for _ in range(6):
    board.call(0x1000, block, core=core)
block.view()[0] = way
task = board.submit(0x1000, block, core=core)
print(task._handle, flush=True)
task.result()
"""
PING = """
from arm_client import connect
board = connect()
task = board.submit(0x0, core=1)
print(task._handle, flush=True)
task.result()
"""
IN_THREADS = """
import asyncio
from arm_client import connect

async def main():
    print(1, flush=True)
    await asyncio.wrap_future(board.submit(0x0, core=1))

board = connect()
asyncio.run(main())
"""
IN_LINE = """
import threading
from arm_client import connect

jobs = threading.Lock()

def work():
    with jobs:
        task.result()

board = connect()
block = board.alloc(8)
block.view()[0] = 2
task = board.submit(0x1000, block)
print(hex(block.phy_addr + 1), flush=True)
threading.Thread(target=work, name="the worker").start()
while not jobs.locked():
    pass
jobs.acquire()
"""
CLIENT = """
from arm_client import connect
board = connect()
print(1, flush=True)
board.call(0x1001, core=1)
"""
RELAYED = """
import os, signal
from arm_client import connect
board = connect()
board.ping()
relay = board.session.tasks.carrier.relay_pid
os.kill(relay, signal.SIGSTOP)
task = board.submit(0x0)
print(relay, flush=True)
task.result()
"""
HOLDER = """
import os, signal
from arm_client import connect
board = connect()
lock = board.session.link.mailbox.claim_lock
with lock:
    print(1, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


class Scene:
    """Programs on a board, each its own file."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.pids: dict[str, int] = {}

    def begin(self, name: str, program: str, *arguments: object) -> int:
        """Start a program; returns the number that it prints."""
        path = self.shell.cwd / name
        path.write_text(program)
        process: subprocess.Popen[str] = self.shell.start(path, *arguments, kind=Program)
        assert process.stdout is not None
        self.pids[name] = process.pid
        return int(process.stdout.readline(), 0)

    def line(self, name: str, code: str) -> str:
        """``file:line`` of the line of a program that has this text."""
        path = self.shell.cwd / name if name != IMAGE.name else IMAGE
        number = next(at for at, line in enumerate(path.read_text().splitlines(), 1) if code in line)
        return f"{path}:{number}"

    def chain(self, name: str, condition: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """The chain of a program, once it is one that is waited for."""
        while True:
            data = self.shell.json("why")
            for chain in data["chains"]:
                if f"(process {self.pids[name]}" in chain["text"].partition(" task ")[0] and condition(chain):
                    found: dict[str, Any] = chain
                    return found


def hangs(chain: dict[str, Any]) -> bool:
    return bool(chain["verdict"] == "hangs")


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A board whose first core hangs with a queue behind it, and whose second one polls an iDMA handle."""
    home = Path(tempfile.mkdtemp(prefix="hbrt-h-", dir="/tmp"))
    shell = Shell(home, tmp_path_factory.mktemp("hung"))
    shell.good("start", "--image", IMAGE, "--watchdog", "0")
    scene = Scene(shell)
    scene.begin("first.py", HALT, halts.WAIT, 1)
    scene.begin("second.py", PING)
    scene.begin("third.py", IN_THREADS)
    scene.begin("polls.py", HALT, halts.POLL, 2)
    yield scene
    shell.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def scene(shell: Shell) -> Iterator[Scene]:
    shell.good("start", "--image", IMAGE, "--cores", "1", "--watchdog", "0")
    made = Scene(shell)
    yield made
    for pid in made.pids.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_hung_op_and_the_queue_behind_it_are_one_chain(hung: Scene) -> None:
    first = hung.chain("first.py", hangs)
    waits = hung.line(IMAGE.name, "Event().wait()")
    assert f"first.py, at {hung.line('first.py', 'task.result()')}) waits for task" in first["text"]
    assert f"at {waits} in halt, in wait (threading.py:" in first["text"]
    assert "is stuck: halt (command 0x1000) has waited in one place for" in first["text"]
    second = hung.chain("second.py", hangs)
    assert f"second.py, at {hung.line('second.py', 'task.result()')}) waits for task" in second["text"]
    assert f"it is queued behind task {first['task']} (halt, command 0x1000) on core 0" in second["text"]
    assert [step["kind"] for step in second["steps"]] == ["program", "task", "core"]


def test_a_program_of_callbacks_tells_the_line_of_its_main_thread(hung: Scene) -> None:
    chain = hung.chain("third.py", hangs)
    assert f"third.py, at {hung.line('third.py', 'asyncio.run')}) waits for" in chain["text"]
    assert "with 1 more ahead of it" in chain["text"]


def test_an_op_that_polls_an_idma_handle(hung: Scene) -> None:
    chain = hung.chain("polls.py", lambda chain: ", in idma_desc_done (idma.py:" in chain["text"])
    polls = hung.line(IMAGE.name, "while idma_desc_done")
    assert f"at {polls} in halt, in idma_desc_done (idma.py:" in chain["text"]
    assert ", for iDMA handle 1, which is done" in chain["text"]


def test_one_task_is_asked_for_by_its_number_or_handle(hung: Scene) -> None:
    task = hung.chain("second.py", hangs)["task"]
    shown = hung.shell.good("why", task)
    assert shown.count(" waits for task ") == 1
    assert "Stack of core 0, innermost call first:\n  File " in shown
    assert f'  File "{IMAGE}", line ' in shown
    assert "1 of 1 hang." in shown
    handle = (1 << 52) + task
    assert hung.shell.good("why", hex(handle)).count(" waits for task ") == 1
    unknown = hung.shell.hbrt("why", 4095)
    assert (unknown.returncode, unknown.stdout.partition(":")[0]) == (1, "Unknown task 4095")
    assert hung.shell.refused("why", "x")[0] == 2


def test_the_records_have_it_all(hung: Scene) -> None:
    records = hung.shell.json("why")["records"]
    first = next(one for one in records["programs"] if one["pid"] == hung.pids["first.py"])
    assert [frame["file"] for frame in first["waits"][0]["stack"]] == [str(hung.shell.cwd / "first.py")]
    assert records["cores"][0]["stack"][-1]["function"] == "halt"


def test_status_and_doctor_say_so_and_name_this_verb(hung: Scene) -> None:
    hung.chain("first.py", hangs)
    answer = hung.shell.hbrt("status")
    assert answer.returncode == 3
    assert "'hbrt why' shows where that op is" in answer.stdout
    checks = json.loads(hung.shell.hbrt("doctor", "--json").stdout)
    (core,) = [check for check in checks if check["name"] == "board default core 0"]
    assert (core["level"], "'hbrt why' shows where it is stuck" in core["advice"]) == ("fail", True)


def test_a_core_that_dies_after_a_look_tells_where_it_was_then(scene: Scene) -> None:
    scene.begin("in_c.py", HALT.replace("task.result()", "print(task.exception(), flush=True)"), halts.IN_C, 1)
    chain = scene.chain("in_c.py", lambda chain: ", in match (" in chain["text"] and "no heartbeat" in chain["text"])
    assert f"at {scene.line(IMAGE.name, 're.match')} in halt, in match (" in chain["text"]
    os.kill(scene.shell.status()["cores"][0]["pid"], signal.SIGKILL)
    (process,) = scene.shell._started
    assert process.stdout is not None
    text = process.stdout.read()
    assert "was ended by signal 9" in text
    assert "File" not in text  # it was killed without a stack: the one of the look is not of its death


def test_a_cycle_is_named_in_order(scene: Scene) -> None:
    scene.begin("client.py", CLIENT)
    chain = scene.chain("client.py", hangs)
    assert "its op waits for task" in chain["text"]
    shown = scene.shell.good("why")
    outer, inner = chain["steps"][1], chain["steps"][2]
    assert (outer["kind"], inner["kind"]) == ("core", "task")
    assert (
        f"A cycle: core 0 waits for task {inner['number']}, task {inner['number']} waits for task {chain['task']}, "
        f"task {chain['task']} waits for core 0." in shown
    )


def test_the_claim_lock_of_a_stopped_process(scene: Scene) -> None:
    scene.begin("holder.py", HOLDER)
    os.waitid(os.P_PID, scene.pids["holder.py"], os.WSTOPPED | os.WNOWAIT)
    scene.begin("ping.py", PING)
    chain = scene.chain("ping.py", hangs)
    assert "no core can claim it, because the claim lock is held by client 1, holder.py: process" in chain["text"]
    assert f"'kill -CONT {scene.pids['holder.py']}' resumes it" in chain["text"]
    assert f"ping.py, at {scene.line('ping.py', 'task.result()')})" in chain["text"]


def test_a_stopped_program_and_a_stopped_core_keep_nobody_waiting(scene: Scene) -> None:
    scene.begin("moves.py", HALT, halts.MOVE, 1)
    core = scene.shell.status()["cores"][0]["pid"]
    scene.pids["core"] = core
    scene.chain("moves.py", lambda chain: chain["verdict"] == "waits")  # not another one at the first look
    for pid in (scene.pids["moves.py"], core):
        os.kill(pid, signal.SIGSTOP)
    chain = scene.chain("moves.py", hangs)
    assert "moves.py), which is stopped, by a signal (SIGSTOP) or a debugger, waits for" in chain["text"]
    assert "and cannot tell its line" in chain["text"]
    assert "its process is stopped" in chain["text"]


def test_a_flag_that_an_op_polls_and_a_lock_that_a_program_waits_for(scene: Scene) -> None:
    flag = scene.begin("in_line.py", IN_LINE)
    nodes = ["program", "lock", "core", "flag"]
    chain = scene.chain("in_line.py", lambda chain: [step["kind"] for step in chain["steps"]] == nodes)
    text, number = chain["text"], chain["program"]
    assert f"in_line.py, at {scene.line('in_line.py', 'task.result()')}) waits for task {chain['task']}" in text
    assert (
        f"; its thread at {scene.line('in_line.py', 'jobs.acquire()')} waits for lock 'jobs', which thread the worker "
        f"holds (with: {scene.line('in_line.py', 'with jobs:')})" in text
    )
    assert (
        f"; its loop keeps reading 1 byte at {flag:#x}, which holds 0x0: it may be waiting for somebody to write "
        f"there; its block "
        f"{flag - 1:#x}+0x8 belongs to client {number} (process {scene.pids['in_line.py']}, in_line.py)." in text
    )
    assert f"at {scene.line(IMAGE.name, 'while way == SPIN')} in halt" in text
    (core,) = scene.shell.json("why")["records"]["cores"]
    assert core["flag"] == {
        "phy_addr": flag, "size_bytes": 1, "value": "00", "block": flag - 1, "block_bytes": 8, "users": [number]
    }  # fmt: skip


def test_a_task_that_a_stopped_relay_has_not_queued(scene: Scene) -> None:
    scene.shell.environment["HB_DSP_RPC_MODE"] = "relay"
    relay = scene.begin("relayed.py", with_limits({"arm_client.transport.relay.LOST_SECONDS": PATIENCE_S}, RELAYED))
    scene.pids["relay"] = relay
    chain = scene.chain("relayed.py", hangs)
    assert f"relayed.py, at {scene.line('relayed.py', 'task.result()')}) waits for task" in chain["text"]
    assert f"it is on its way to the relay (process {relay}), which is stopped" in chain["text"]


def test_a_program_of_another_machine_comes_by_its_relay(scene: Scene) -> None:
    with RemoteRelay(scene.shell.paths().path) as relay:
        scene.shell.environment["HBRT_BOARD"] = relay.address
        scene.begin("far.py", HALT, halts.MOVE, 1)
        del scene.shell.environment["HBRT_BOARD"]
        (chain,) = [chain for chain in scene.shell.json("why")["chains"] if chain["program"]]
        assert "far.py" in chain["text"]
        assert (
            f", which comes by the relay of process {relay.process.pid} and cannot tell its line, waits for"
            in chain["text"]
        )


def test_a_board_where_nobody_waits(running: Shell) -> None:
    assert running.good("why") == "No tasks are queued or running.\n"
    assert running.json("why")["chains"] == []
    assert "Unknown task 7" in running.hbrt("why", "7").stdout
