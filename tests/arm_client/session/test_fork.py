"""A fork in a client, by Python or by C code: the child hears what it may not use, and leaves the parent unharmed."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import arm_client as hb
from arm_client import BoardLostError, connect
from hbrt.ddr.layout import CLIENT_ASLEEP
from tests.limits import PATIENCE_S, WHOLE_RUN_S
from tests.nursery import run_program

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip

pytestmark = pytest.mark.dsp_board(image="../images/ops.py")
IMAGE = Path(__file__).parent.parent / "images" / "ops.py"
FORKS: dict[str, Callable[[], int]] = {"os.fork": os.fork, "C": ctypes.PyDLL(None).fork}
by_each_fork = pytest.mark.parametrize("fork", FORKS.values(), ids=FORKS.keys())


def in_child(report: Callable[[], Any], fork: Callable[[], int] = os.fork) -> Any:
    """What ``report`` returns in a forked child; the child ends without a word of the test run's."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads around is the point here
        pid = fork()
    if not pid:
        try:
            answer = report()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent shall see it
            answer = repr(error)
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return answer


@by_each_fork
def test_inherited_handles_and_blocks_say_what_happened(chip: Chip, fork: Callable[[], int]) -> None:
    ended, held, mem = chip.rpc(hb.HB_DSP_RPC_CMD_PING), chip.hold(), chip.mem(64, b"parent's")
    assert hb.hbDSPWaitTaskDone(ended, 0) == 0

    def use() -> list[int]:
        again = hb.hbDSPTask_t()
        return [
            hb.hbDSPWaitTaskDone(ended, 0),
            hb.hbDSPWaitTaskDone(held.task, 0),
            hb.hbDSPWaitTaskDone(held.task, 5),
            hb.hbDSPReleaseTask(ended),
            hb.hbDSPReleaseTask(held.task),
            hb.hbDSPSetTaskDoneCb(held.task, print),
            hb.hbSysFreeMem(mem) - hb.HB_SYS_FORKED + hb.HB_DSP_FORKED,
            hb.hbSysUnregisterMem(mem) - hb.HB_SYS_FORKED + hb.HB_DSP_FORKED,
            again.value or hb.HB_DSP_FORKED,
        ]

    assert in_child(use, fork) == [hb.HB_DSP_FORKED] * 9
    assert in_child(lambda: [hb.hbDSPWaitTaskDone(held.task, 0), hb.last_error()][1], fork) == (
        f"This process was forked from process {os.getpid()}, which attached to board {chip.board.path.name}. "
        "The lease belongs to the parent; allocate and submit anew in the child (in Python after connect()), or fork "
        "before attaching."
    )
    assert bytes(mem.view()[:8]) == b"parent's"
    assert hb.hbDSPReleaseTask(ended) == 0
    assert held.finish() == 0


@by_each_fork
@pytest.mark.parametrize("first", range(7))
def test_each_call_alone_says_what_happened(chip: Chip, fork: Callable[[], int], first: int) -> None:
    """A child that has made no other call before."""
    held, mem, task = chip.hold(), chip.mem(64, b"parent's"), hb.hbDSPTask_t()
    calls: list[Callable[[], int]] = [
        lambda: hb.hbDSPRpc(task, mem, mem, chip.ctrl(chip.ECHO)),
        lambda: hb.hbDSPRpc(task, None, None, chip.ctrl(chip.ECHO)),
        lambda: hb.hbDSPWaitTaskDone(held.task, 5),
        lambda: hb.hbDSPReleaseTask(held.task),
        lambda: hb.hbDSPSetTaskDoneCb(held.task, print),
        lambda: hb.hbSysFreeMem(mem) - hb.HB_SYS_FORKED + hb.HB_DSP_FORKED,
        lambda: hb.hbSysWriteMem(mem, b"child's!", 8) + hb.HB_DSP_FORKED,  # into its own copy
    ]
    assert in_child(calls[first], fork) == hb.HB_DSP_FORKED
    assert bytes(mem.view()[:8]) == b"parent's"
    assert held.finish() == 0


@by_each_fork
def test_python_habits_raise(chip: Chip, fork: Callable[[], int]) -> None:
    board, queued_behind = chip.board, chip.hold_all()
    queued, ended = board.submit(chip.ECHO), board.submit(hb.HB_DSP_RPC_CMD_PING)

    def use() -> list[str]:
        found = []
        calls: list[Callable[[], Any]] = [
            lambda: board.call(hb.HB_DSP_RPC_CMD_PING),
            lambda: board.alloc(64),
            board.status,
            queued.result,
            lambda: ended.result(1),
        ]
        for call in calls:
            try:
                found.append(f"no error: {call()}")
            except BoardLostError as error:
                found.append(error.status_name)
        found.append(str(queued.cancel()))
        return found

    names = in_child(use, fork)
    assert set(names[:5]) <= {"HB_DSP_FORKED", "HB_SYS_FORKED"}, names
    assert names[5] == "False"
    for held in queued_behind:
        assert held.finish() == 0
    assert queued.result() is None  # the child has not cancelled it
    assert ended.result() is None


@by_each_fork
def test_refused_call_of_the_child_writes_into_no_block_of_the_parent(chip: Chip, fork: Callable[[], int]) -> None:
    output = chip.board.empty(8, "u1")
    chip.board.call(chip.ECHO, b"parent's", output)

    def call() -> str:
        try:
            chip.board.call(chip.ECHO, b"child's!", output)
        except BoardLostError as error:
            return error.status_name
        return "no error"

    assert in_child(call, fork) == "HB_DSP_FORKED"
    (spare,) = chip.board.spare_buffers()
    assert bytes(spare.view()[:8]) == b"parent's"


@by_each_fork
def test_child_that_finishes_a_call_of_the_parent_leaves_it_asleep(chip: Chip, fork: Callable[[], int]) -> None:
    held = chip.hold_all()
    posted = chip.board.post(chip.ECHO)
    asleep = chip.board.session.link.ddr.layout.client(chip.board.session.link.client_id) + CLIENT_ASLEEP
    mm = chip.board.session.link.ddr.map
    mm[asleep] = 1  # as by a thread of the parent that sleeps

    def finish() -> list[Any]:
        try:
            posted.finish()
        except BoardLostError as error:
            return [error.status_name, mm[asleep]]
        return []

    assert in_child(finish, fork) == ["HB_DSP_FORKED", 1]
    for one in held:
        assert one.finish() == 0
    posted.finish()


@by_each_fork
def test_the_child_may_attach_anew(chip: Chip, monkeypatch: pytest.MonkeyPatch, fork: Callable[[], int]) -> None:
    monkeypatch.setenv("HBRT_BOARD", str(chip.board.path))
    mem = chip.mem(8, b"abcdefgh")

    def use() -> list[Any]:
        with connect() as board:
            output = board.empty(8, "u1")
            board.call(chip.ADD_ONE, b"abcdefgh", output)
            theirs = hb.hbSysMem(phyAddr=mem.phyAddr, memSize=8)
            status = hb.hbSysRegisterMem(theirs)
            theirs.view()[:5] = b"child"
            programs = [one for one in board.status()["clients"] if one["name"] != "dsp_relay_server"]
            return [bytes(output).decode(), status, hb.hbSysUnregisterMem(theirs), len(programs)]

    assert in_child(use, fork) == ["bcdefghi", 0, 0, 2]
    assert bytes(mem.view()) == b"childfgh"
    chip.until(lambda: len(chip.programs()) == 1, "the end of the child's attachment")
    assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")


@by_each_fork
def test_the_c_names_attach_anew_by_themselves(
    chip: Chip, monkeypatch: pytest.MonkeyPatch, fork: Callable[[], int]
) -> None:
    monkeypatch.setenv("HBRT_BOARD", str(chip.board.path))

    def use() -> list[int]:
        mem, task = hb.hbSysMem(), hb.hbDSPTask_t()
        statuses = [hb.hbSysAllocMem(mem, 64), hb.hbDSPRpc(task, mem, mem, chip.ctrl(chip.ECHO))]
        return [*statuses, hb.hbDSPWaitTaskDone(task, 0), hb.hbDSPReleaseTask(task), hb.hbSysFreeMem(mem)]

    assert in_child(use, fork) == [0] * 5


def test_while_other_threads_call(chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_BOARD", str(chip.board.path))
    stop, failures = threading.Event(), []

    def call() -> None:
        while not stop.is_set():
            try:
                chip.board.call(hb.HB_DSP_RPC_CMD_PING)
                chip.board.alloc(64).free()
            except Exception as error:  # noqa: BLE001 - reported below
                failures.append(error)
                return

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()

    def use() -> str:
        with connect() as board:
            board.call(hb.HB_DSP_RPC_CMD_PING)
            return board.ops()[chip.ECHO]

    assert [in_child(use) for _ in range(10)] == ["echo"] * 10
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


PARENT = """
import os, sys, time
from arm_client import connect, private_board
outer = private_board()
a = outer.__enter__()
with private_board() as b:
    pids = [board.session.link.daemon_pid for board in (a, b)]
    if not os.fork():
        time.sleep(60)
    print(*pids, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_child_keeps_no_board_of_a_dead_parent_alive(board_home: Path, chip: Chip) -> None:
    environment = {**os.environ, "HBRT_HOME": str(board_home)}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PARENT], env=environment, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.wait()
        children = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and str(board_home).encode() in _environ(entry) and int(entry.name) not in pids
        ]
        try:
            for pid in pids:
                chip.until(lambda pid=pid: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), "a daemon's end")  # type: ignore[misc]
        finally:
            sleepers = [pid for pid in children if b"time.sleep(60)" in _read(pid, "cmdline")]
            for pid in sleepers:
                os.kill(pid, 9)
    assert len(sleepers) == 1
    chip.until(lambda: not list(board_home.iterdir()), "the end of the boards' directories")


def _read(pid: int, name: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _environ(entry: Path) -> bytes:
    return _read(int(entry.name), "environ")


def _is_zombie(pid: int) -> bool:
    return b") Z " in _read(pid, "stat")


def work(board: str, numbers: list[int], results: Any) -> None:
    """In a process of multiprocessing: attach, add one to each number on the board."""
    with connect(board) as mine:
        output = mine.empty(len(numbers), "u1")
        mine.call(0x100A, bytes(numbers), output)
        results.put(output.tolist())


@pytest.fixture
def helpers_of_multiprocessing() -> Iterator[None]:
    """Its fork server and its resource tracker would live as long as the test run."""
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("helpers_of_multiprocessing")
@pytest.mark.parametrize("method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.long)])
def test_multiprocessing(chip: Chip, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        processes: list[BaseProcess] = [
            context.Process(target=work, args=(str(chip.board.path), [n, n + 10], results)) for n in range(3)
        ]
        for process in processes:
            process.start()
    assert sorted(results.get() for _ in processes) == [[n + 1, n + 11] for n in range(3)]
    for process in processes:
        process.join(PATIENCE_S)
        assert process.exitcode == 0
    chip.until(lambda: len(chip.programs()) == 1, "the end of the workers' attachments")
    assert chip.board.call(hb.HB_DSP_RPC_CMD_PING) is None


FIRST_CALLS = """
import os, select, sys, threading
import arm_client as hb

def call():
    task = hb.hbDSPTask_t()
    return hb.hbDSPRpc(task, None, None, hb.hbDSPRpcCtrlParam()) or hb.hbDSPWaitTaskDone(task, 0)

def await_end(pid):
    fd = os.pidfd_open(pid)
    if not select.select([fd], [], [], float(sys.argv[1]))[0]:
        os.kill(pid, 9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def fork_beside_first_calls(seconds):
    for _ in range(3):
        threading.Thread(target=call, daemon=True).start()
    threading.Event().wait(seconds)
    child = os.fork()
    os._exit(await_end(child) & 0xFF if child else call() not in {0, hb.HB_DSP_FORKED})

for trial in range(6):
    program = os.fork()  # in which nothing is loaded yet that the first call loads
    if not program:
        fork_beside_first_calls(trial / 50)
    status = await_end(program)
    if status:
        sys.exit(f"trial {trial}: {status}")
"""


def test_a_child_answers_that_was_forked_beside_the_first_calls_of_other_threads(chip: Chip) -> None:
    environment = {**os.environ, "HBRT_BOARD": str(chip.board.path), "HBRT_AUTOSTART": "0"}
    done = run_program(["-W", "ignore", "-c", FIRST_CALLS, PATIENCE_S], WHOLE_RUN_S, env=environment)
    assert done.returncode == 0, done.stderr


HEIR = """
import ctypes, os, signal, sys
import arm_client as hb
from arm_client import connect
board, mem = connect(), hb.hbSysMem()
tasks = [board.submit(hb.HB_DSP_RPC_CMD_PING) for _ in range(40)]
assert hb.hbSysAllocMem(mem, 1 << 20) == 0
if ctypes.PyDLL(None).fork():
    print("forked", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
os.read(int(sys.argv[1]), 1)
print(hb.hbSysFreeMem(mem) == hb.HB_SYS_FORKED, flush=True)
os._exit(0)
"""


def test_a_child_of_c_code_keeps_nothing_of_its_dead_parent(chip: Chip) -> None:
    environment = {**os.environ, "HBRT_BOARD": str(chip.board.path), "HBRT_AUTOSTART": "0"}
    held, go = os.pipe()

    def left() -> list[Any]:
        status = chip.board.status()
        return [status["memory"], status["slots"], len(chip.programs())]

    before = left()
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", HEIR, str(held)],
        env=environment,
        pass_fds=[held],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        os.close(held)
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        assert len(chip.programs()) == 2
        parent.stdin.close()
        assert parent.wait() == -signal.SIGKILL
        chip.until(lambda: left() == before, "what the dead parent had")
        os.close(go)
        assert parent.stdout.readline() == "True\n"
