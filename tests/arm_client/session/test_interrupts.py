"""A signal at every place of a call where Python can handle one: by Ctrl-C, and by a call of the handler's own.

After Ctrl-C, what it was in is over, and the next calls go well; after a handler's own call, what it was in continues.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

import arm_client as hb
from arm_client.arrays import Buffer
from arm_client.client import Board
from arm_client.memory.block import block_users
from arm_client.session.session import set_default
from hbrt.attach import slots
from hbrt.mailbox import spin
from hbrt.mailbox.table import State
from tests.arm_client.conftest import Chip
from tests.arm_client.interrupts import is_interrupted
from tests.limits import PATIENCE_S
from tests.nursery import run_program

IMAGE = Path(__file__).parent.parent / "images" / "ops.py"
MICROSECONDS = (400).to_bytes(4, "little")  # a call that its waiter sleeps for
MAX_PLACES = 3000
SLOTS = 4
PATIENCE_MS = 20_000


LEAVES = """
import arm_client as hb
from arm_client.session import process

mem, task = hb.hbSysMem(), hb.hbDSPTask_t()
assert hb.hbSysAllocMem(mem, 4) == 0
mem.view()[:] = (100_000_000).to_bytes(4, "little")
assert hb.hbDSPRpc(task, mem, None, hb.hbDSPRpcCtrlParam(rpcCmd=%d)) == 0
while process.process.default.tasks.state(task.value).name != "RUNNING":
    pass
raise KeyboardInterrupt
"""


def test_what_a_program_leaves_is_said_while_its_op_runs() -> None:
    source, settings = LEAVES % Chip.REST, {"HBRT_IMAGE": str(IMAGE), "HBRT_BOARD": "none"}
    done = ended(source, **settings)
    assert done.returncode == -signal.SIGINT
    (line,) = (line for line in done.stderr.splitlines() if " leak: " in line)
    assert "ended with 1 block (4 bytes) not freed. Allocated at <string>:6 " in line


def test_a_second_ctrl_c_ends_a_program_without_more_lines() -> None:
    source = "from arm_client.session import process\ndef interrupted():\n    raise KeyboardInterrupt\n"
    done = ended(f"{source}process._close_all = interrupted\n")
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def ended(source: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return run_program(["-c", source], PATIENCE_S, env={**os.environ, **settings})


def call(board: Board, output: Buffer) -> None:
    board.call(Chip.REST, MICROSECONDS, output)


def call_in_time(board: Board, output: Buffer) -> None:
    board.call(Chip.REST, MICROSECONDS, output, timeout=PATIENCE_S)


def wait_for_a_future(board: Board, output: Buffer) -> None:
    board.submit(Chip.REST, MICROSECONDS, output).result()


def wait_for_a_post(board: Board, output: Buffer) -> None:
    board.post(Chip.REST, MICROSECONDS, output).finish()


@pytest.fixture
def board(
    request: pytest.FixtureRequest, dsp_board_factory: Callable[..., AbstractContextManager[Board]]
) -> Iterator[Board]:
    """A board whose callers look before they sleep (2 CPUs), or do not (1). Its end gives back lost slots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spin, "usable_cpus", lambda: request.param)
        with dsp_board_factory(image=IMAGE, cores=1) as board:
            board.ping()  # what only a first call does is no part of the others
            yield board


@pytest.mark.parametrize(
    ("board", "action"),
    [(2, call), *((1, one) for one in (call, call_in_time, wait_for_a_future, wait_for_a_post))],
    indirect=["board"],
)
def test_an_interrupt_anywhere_in_a_call_leaves_no_task_and_no_waiter(
    board: Board, action: Callable[[Board, Buffer], None]
) -> None:
    is_over, output = False, board.alloc(len(MICROSECONDS))
    with ThreadPoolExecutor(1) as other:
        for at in range(1, MAX_PLACES):
            is_over = not is_interrupted(at, lambda: action(board, output))
            other.submit(call, board, output).result(PATIENCE_S)
            call_in_time(board, output)
            board.session.tasks.release_abandoned()
            assert board.live_tasks() == 0, f"a task that nobody knows, after an interrupt at {at}"
            if is_over:
                break
    assert is_over, "the places were not all visited"


@pytest.mark.parametrize("board", [1], indirect=True)
def test_an_interrupt_anywhere_in_a_submission_leaves_no_task_that_its_program_does_not_know(board: Board) -> None:
    is_over = False
    for at in range(1, MAX_PLACES):
        task, how = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
        how.rpcCmd = hb.HB_DSP_RPC_CMD_PING
        is_over = not is_interrupted(at, partial(hb.hbDSPRpc, task, None, None, how))
        assert board.session.tasks.live_handles() == ([task.value] if task.value else []), at
        if task.value:
            assert hb.hbDSPWaitTaskDone(task, PATIENCE_MS) == 0
            assert hb.hbDSPReleaseTask(task) == 0
        if is_over:
            break
    assert is_over, "the places were not all visited"


@pytest.mark.parametrize("board", [1], indirect=True)
def test_an_interrupt_anywhere_in_a_submission_spares_an_older_task_with_the_same_blocks(board: Board) -> None:
    mem, older, how = hb.hbSysMem(), hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam(rpcCmd=Chip.ECHO)
    assert hb.hbSysAllocMem(mem, 64) == 0
    assert hb.hbDSPRpc(older, mem, mem, how) == 0
    is_over = False
    for at in range(1, MAX_PLACES):
        task = hb.hbDSPTask_t()
        is_over = not is_interrupted(at, partial(hb.hbDSPRpc, task, mem, mem, how))
        live = {older.value, task.value} if task.value else {older.value}
        assert set(board.session.tasks.live_handles()) == live, at
        if task.value:
            assert hb.hbDSPReleaseTask(task) == 0
        if is_over:
            break
    assert is_over, "the places were not all visited"
    assert hb.hbDSPReleaseTask(older) == 0
    assert hb.hbSysFreeMem(mem) == 0


@pytest.mark.parametrize("board", [1], indirect=True)
def test_an_interrupt_anywhere_while_slots_come_back_gives_none_of_them_to_two_tasks(board: Board) -> None:
    tasks, is_over, rest = board.session.tasks, False, board.alloc(len(MICROSECONDS))
    rest.view()[:] = MICROSECONDS
    for at in range(1, MAX_PLACES):
        for _ in range(2):
            handle = tasks.submit(Chip.REST, 0, 0, 0, rest.phy_addr, rest.size_bytes, 0, 0)
            while tasks.state(handle) is State.READY:
                pass
            assert tasks.release(handle) == 0
        board.call(hb.HB_DSP_RPC_CMD_PING)  # the only core has ended both
        is_over = not is_interrupted(at, tasks.empty_released)
        handles = [tasks.submit(hb.HB_DSP_RPC_CMD_PING, 0, 0, 0, 0, 0, 0, 0) for _ in range(3)]
        assert [tasks.wait(handle, PATIENCE_MS) for handle in handles] == [0, 0, 0]
        tasks.empty_released()
        assert [tasks.state(handle) for handle in handles] == [State.DONE] * 3, at
        assert [tasks.release(handle) for handle in handles] == [0, 0, 0]
        if is_over:
            break
    assert is_over, "the places were not all visited"


class OwnCall:
    """A signal's handler that calls the board itself, at the n-th place."""

    def __init__(self, at: int, call: Callable[[], None]) -> None:
        self.left = at
        self._call = call

    def __call__(self, _frame: FrameType | None, event: str, _of: object) -> None:
        if event in {"call", "c_return"}:
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                self._call()


def release_queued(board: Board, output: Buffer) -> None:
    tasks = board.session.tasks
    handles = [tasks.submit(hb.HB_DSP_RPC_CMD_PING, 0, 0, 0, 0, 0, output.phy_addr, output.size_bytes) for _ in "ab"]
    assert [tasks.release(handle) for handle in handles] == [0, 0]


@pytest.mark.parametrize(
    ("board", "action"),
    [(2, call), *((1, one) for one in (call, call_in_time, wait_for_a_future, release_queued))],
    indirect=["board"],
)
def test_a_signals_handler_may_call_the_board_anywhere_in_a_call(
    board: Board, action: Callable[[Board, Buffer], None]
) -> None:
    outputs, visited = [board.alloc(len(MICROSECONDS)) for _ in range(2)], []

    def visit() -> None:
        for at in range(1, MAX_PLACES):
            own = OwnCall(at, lambda: action(board, outputs[1]))
            sys.setprofile(own)
            try:
                action(board, outputs[0])
            finally:
                sys.setprofile(None)
            if own.left > 0:
                visited.append(at)
                return

    # A thread of its own: one that waits for itself ends no test otherwise.
    visitor = threading.Thread(target=visit, daemon=True)
    visitor.start()
    visitor.join(PATIENCE_S)
    assert visited, "a call waits for the call that it has interrupted, or has failed"
    board.session.tasks.empty_released()
    assert board.live_tasks() == 0


def allocate_and_free(board: Board, _: hb.hbSysMem) -> None:
    board.alloc(4096).free()


def allocate_and_free_by_c_names(_: Board, mem: hb.hbSysMem) -> None:
    assert hb.hbSysAllocMem(mem, 4096) == 0
    assert hb.hbSysFreeMem(mem) == 0


def register_and_unregister(_: Board, mem: hb.hbSysMem) -> None:
    assert hb.hbSysRegisterMem(mem) == 0
    assert hb.hbSysUnregisterMem(mem) == 0


REQUESTS = [allocate_and_free, allocate_and_free_by_c_names, register_and_unregister]


@pytest.fixture
def mapped(board: Board) -> Iterator[hb.hbSysMem]:
    """The one block of the board, which the C names use: allocated, not registered."""
    block, before = board.alloc(64), set_default(board.session)
    yield hb.hbSysMem(phyAddr=block.phy_addr, memSize=block.size_bytes)
    set_default(before)


def again(mem: hb.hbSysMem) -> hb.hbSysMem:
    """The same memory, not mapped yet."""
    return hb.hbSysMem(phyAddr=mem.phyAddr, memSize=mem.memSize)


def held(board: Board) -> list[tuple[int, list[int]]]:
    """Blocks of the board and who has registered them, after what came too late was given back."""
    for _ in range(2):
        board.alloc(1).free()
    blocks = board.session.link.request("mem", most=10)["blocks"]
    return [(one["phy_addr"], one["registered_by"]) for one in blocks]


@pytest.mark.parametrize("board", [1], indirect=True)
@pytest.mark.parametrize("action", REQUESTS)
def test_what_was_granted_to_an_interrupted_request_is_given_back(
    board: Board, mapped: hb.hbSysMem, action: Callable[[Board, hb.hbSysMem], None]
) -> None:
    is_over = False
    for at in range(1, MAX_PLACES):
        mem = again(mapped)
        is_over = not is_interrupted(at, partial(action, board, mem))
        if mem.virAddr:  # it was told of its memory, and releases it: the first time or again
            (hb.hbSysUnregisterMem if action is register_and_unregister else hb.hbSysFreeMem)(mem)
        if is_over:
            break
    assert is_over, "the places were not all visited"
    assert held(board) == [(mapped.phyAddr, [])]


@pytest.mark.parametrize("board", [1], indirect=True)
def test_slots_that_were_granted_to_an_interrupted_request_go_to_the_next_one(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "SLOTS_AT_ONCE", SLOTS)
    tasks, is_over = board.session.tasks, False
    for at in range(1, MAX_PLACES):
        while tasks.slots.free:
            tasks.slots.free.pop()
        before = board.status()["slots"]["leased"]
        is_over = not is_interrupted(at, lambda: tasks.slots.free.append(tasks.slots.take()))
        board.ping()  # takes in what came too late
        granted = board.status()["slots"]["leased"] - before
        # The one that was taken out when the interrupt came may be lost with it.
        assert granted - len(tasks.slots.free) <= 1, at
        if is_over:
            break
    assert is_over, "the places were not all visited"


INTERRUPTED = """
import random, signal, sys
import arm_client as hb
from arm_client.client import private_board
from arm_client.session.session import set_default

MAX_SECONDS, WANTED = 0.002, 200
random.seed(12)
with private_board(cores=1) as board:
    set_default(board.session)
    kept, interrupts = board.alloc(64), 0
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    while interrupts < WANTED:
        mem, array = hb.hbSysMem(), None
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, MAX_SECONDS))
            hb.hbSysAllocMem(mem, 4096)
            array = board.empty(64, "u1")
            hb.hbSysFreeMem(mem)
            while True:
                board.alloc(64).free()
        except KeyboardInterrupt:
            interrupts += 1
        if mem.virAddr:
            hb.hbSysFreeMem(mem)  # the first time, or once more
    del array
    board.alloc(64).free()
    board.alloc(64).free()
    held = board.session.link.request("mem", most=WANTED)["blocks"]
    print(interrupts, [one["phy_addr"] == kept.phy_addr for one in held])
"""


def test_real_interrupts_leave_no_block_behind() -> None:
    done = run_program(["-c", INTERRUPTED], PATIENCE_S)
    assert (done.stdout, done.returncode) == ("200 [True]\n", 0), done.stderr


@pytest.mark.parametrize("board", [1], indirect=True)
@pytest.mark.parametrize("action", [*(pytest.param(one, marks=pytest.mark.long) for one in REQUESTS[1:]), REQUESTS[0]])
def test_a_signals_handler_may_ask_the_daemon_anywhere_in_a_request(
    board: Board,
    mapped: hb.hbSysMem,
    action: Callable[[Board, hb.hbSysMem], None],
) -> None:
    from arm_client.dnn.capi.runtime import runtime  # from here on each free asks it, too

    assert runtime.tasks in block_users
    visited = []

    def visit() -> None:
        for at in range(1, MAX_PLACES):
            own = OwnCall(at, lambda: board.alloc(64).free())
            sys.setprofile(own)
            try:
                action(board, again(mapped))
            finally:
                sys.setprofile(None)
            if own.left > 0:
                visited.append(at)
                return

    visitor = threading.Thread(target=visit, daemon=True)
    visitor.start()
    visitor.join(PATIENCE_S)
    assert visited, "a request waits for the one that it has interrupted, or has failed"
    assert held(board) == [(mapped.phyAddr, [])]
