"""Relay mode as a program sees it: the same calls, a relay that comes when it is needed, and what its end costs.

That the calls are the same is what the other tests of this directory say when they run with HB_DSP_RPC_MODE=relay:
``test_the_same_tests_pass_in_relay_mode`` has them do so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import arm_client as hb
from arm_client.client import Board
from arm_client.errors import BoardLostError
from arm_client.session.session import Session
from arm_client.transport import relay
from hbrt import settings
from hbrt.board.files import lock_holder
from hbrt.board.paths import BoardPaths
from hbrt.ddr.file import Ddr
from hbrt.mailbox.table import State
from tests.arm_client.conftest import Chip, Hold, Peer
from tests.arm_client.transport.again import HERE, STRICT, STRICT_LEFT_OUT, STRICT_PARTS, run_again
from tests.limits import PATIENCE_S
from tests.threads import in_threads

pytestmark = pytest.mark.dsp_board(image="../images/ops.py", cores=1)
PROGRAM = "dsp_relay_server"
# Nothing to do with how a task travels have: the plugin, the comparison of ops, memory and arrays alone, arguments that
# are refused before there is a task. The tasks of a board on another machine go by its relay in either mode. What
# happens when descriptors are few, and to memory of another library, is asked of each mode there, and a board in the
# program's own process has none.
OTHERS = {
    "test_plugin.py",
    "test_arrays.py",
    "memory/test_sys_mem.py",
    "test_no_call_raises.py",
    "memory/test_views.py",
    "memory/test_imports.py",
    "session/test_few_descriptors.py",
    "session/test_inline.py",
    "memory/test_beside.py",
    "session/test_callers.py",
    "session/test_say.py",
    "strict/test_structures.py",
}
FOLDERS = ("memory", "session", "strict")  # and the top; how a task travels is said in transport/

# Nor have a private board's life, how a child process is made, what a request to the daemon survives, how exactly a
# wait is slept for, and how what is said comes to standard error. Memory, its caches, its registrations and its end are
# this process's own in either mode: that tasks find them so needs few of their tests.
PARTS = {
    "memory/test_isolation.py": ["TestWhatGoesOn::test_blocks_of_all_kinds"],
    "memory/test_freed.py": ["test_a_task_on_freed_memory_is_told_who_freed_it_and_where"],
    "memory/test_unreleased.py": ["test_what_was_released_or_is_a_future_s_is_no_leak"],
    "session/test_exit_report.py": [
        "test_a_private_board_says_what_it_found[leak]",
    ],
    "session/test_connect.py": [
        "TestRestart::test_clear_errors_and_then_a_new_connection",
        "TestRestart::test_what_the_next_daemon_says_is_not_for_the_programs_of_the_one_before[a call]",
        "TestRestart::test_old_handles_are_nobody_s_tasks_on_the_new_board",
        "TestRestart::test_waiting_threads_are_let_go_when_the_daemon_dies",
    ],
    STRICT: STRICT_PARTS,
    "strict/test_addresses.py": [
        "test_task_with_a_freed_block",
        "test_structure_with_a_virtual_address",
        "test_a_task_is_under_way_until_its_end_is_seen",
    ],
    "strict/test_eviction.py": ["TestEviction::test_clean_program_has_the_results_that_it_has_without"],
    "strict/test_late_views.py": ["test_a_freed_block_that_an_op_was_to_get_is_refused_as_ever"],
    "strict/test_stale.py": ["test_a_read_is_named_with_both_lines_and_goes_on_with_the_old_bytes"],
    "session/test_checks.py": ["test_cores_see_what_is_watched", "test_nothing_is_watched_by_default"],
    "session/test_waiting.py": [
        "test_answer_is_there_whatever_calls_usually_take",
        "test_threads_that_wait_at_once_each_get_their_own",
    ],
}
LEFT_OUT = [
    *STRICT_LEFT_OUT,
    "session/test_fork.py::test_multiprocessing",
    "session/test_interrupts.py::test_what_was_granted_to_an_interrupted_request_is_given_back",
    "session/test_interrupts.py::test_slots_that_were_granted_to_an_interrupted_request_go_to_the_next_one",
    "session/test_interrupts.py::test_what_a_program_leaves_is_said_while_its_op_runs",
    "session/test_interrupts.py::test_a_second_ctrl_c_ends_a_program_without_more_lines",
    "session/test_interrupts.py::test_real_interrupts_leave_no_block_behind",
    "session/test_interrupts.py::test_a_signals_handler_may_ask_the_daemon_anywhere_in_a_request",
]
FILES = (file for folder in (HERE, *map(HERE.joinpath, FOLDERS)) for file in folder.glob("test_*.py"))
SAME_TESTS = sorted({str(file.relative_to(HERE)) for file in FILES} - OTHERS)
RUNS = [SAME_TESTS[first::2] for first in range(2)]  # which spread over the processes of a test run


@pytest.fixture(autouse=True)
def mode(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Relay mode, unless the test is run in both."""
    chosen: str = getattr(request, "param", "relay")
    monkeypatch.setenv("HB_DSP_RPC_MODE", chosen)
    return chosen


both_modes = pytest.mark.parametrize("mode", ["direct", "relay"], indirect=True)


def relay_pid(board: Board) -> int | None:
    return lock_holder(BoardPaths(board.session.link.paths.path).relay_lock)


def kill(chip: Chip, number: int = signal.SIGKILL) -> int:
    """Send a signal to the board's relay; returns its process id."""
    pid = relay_pid(chip.board)
    assert pid is not None
    os.kill(pid, number)
    return pid


@both_modes
def test_the_mode_says_who_carries_tasks(mode: str, chip: Chip) -> None:
    assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
    held = Hold(chip).await_running()
    (me,) = (client for client in chip.board.status()["clients"] if client["pid"] == os.getpid())
    assert me["tasks"] == 1
    assert held.finish() == 0
    others = [client["name"] for client in chip.board.status()["clients"] if client["pid"] != os.getpid()]
    assert others == {"direct": [], "relay": [PROGRAM]}[mode]


@pytest.mark.parametrize(
    ("rpc_mode", "ucp", "is_relayed"),
    [("", "", False), ("", "1", True), ("", "true", True), ("direct", "1", False), ("relay", "0", True)],
)
def test_settings_of_the_mode(monkeypatch: pytest.MonkeyPatch, rpc_mode: str, ucp: str, is_relayed: bool) -> None:  # noqa: FBT001
    monkeypatch.setenv("HB_DSP_RPC_MODE", rpc_mode)
    monkeypatch.setenv("HB_UCP_ENABLE_RELAY_MODE", ucp)
    assert settings.is_relayed() is is_relayed


def test_an_unknown_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HB_DSP_RPC_MODE", "rely")
    with pytest.raises(settings.BadSettingError, match="Invalid HB_DSP_RPC_MODE 'rely': must be one of direct, relay"):
        settings.is_relayed()


@pytest.mark.dsp_board(image="../images/ops.py", cores=1, fresh=True)
def test_the_relay_is_found_on_the_path(chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / PROGRAM
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/told\nexec {sys.executable} -m dsp_server.relay "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
    assert (tmp_path / "told").read_text() == f"--board {chip.board.path} --detach\n"


@pytest.mark.dsp_board(image="../images/ops.py", cores=1, fresh=True)
def test_a_relay_that_does_not_start(chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / PROGRAM
    program.write_text("#!/bin/sh\necho no relay today >&2\nexit 3\n")
    program.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert hb.hbDSPRpc(hb.hbDSPTask_t(), None, None, chip.ctrl(0)) == hb.HB_DSP_RELAY_LOST
        assert "no relay today" in hb.last_error()
    assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
    assert chip.board.live_tasks() == 0


@pytest.mark.dsp_board(image="../images/ops.py", cores=1, fresh=True)
def test_programs_that_start_at_once_share_one_relay(chip: Chip) -> None:
    peers = [Peer(chip.board) for _ in range(3)]
    say = "connect().call(0); tasks = hb.process.process.default.tasks"
    in_threads(lambda peer: peer(f"from arm_client import connect; {say}"), peers)
    names = [client["name"] for client in chip.board.status()["clients"]]
    assert names.count(PROGRAM) == 1
    assert len(names) == 5
    for peer in peers:
        peer.close()


@pytest.fixture
def other_mapping(chip: Chip) -> Iterator[Ddr]:
    """The memory as another program has it: arrays of this one over a block that it freed are private."""
    session = Session(chip.board.session.link.paths)
    session.users = 1
    board = Board(session)
    yield session.link.ddr
    board.close()


class TestTheRelayDies:
    def test_callers_hear_at_once_and_the_next_call_finds_a_new_one(self, chip: Chip) -> None:
        held, queued = Hold(chip).await_running(), chip.rpc(hb.HB_DSP_RPC_CMD_PING)
        found: list[tuple[int, str]] = []

        def wait() -> None:
            found.append((hb.hbDSPWaitTaskDone(held.task, 0), hb.last_error()))

        waiter = threading.Thread(target=wait)
        waiter.start()
        first = kill(chip)
        waiter.join(PATIENCE_S)
        assert [status for status, _ in found] == [hb.HB_DSP_RELAY_LOST]
        assert f"(process {first}) died" in found[0][1]
        assert hb.hbDSPWaitTaskDone(queued, 0) == hb.HB_DSP_RELAY_LOST
        assert hb.hbDSPReleaseTask(queued) == hb.hbDSPReleaseTask(held.task) == 0
        next_one = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
        assert relay_pid(chip.board) not in {None, first}
        held.let_go()  # the board finishes what the dead relay had a core run
        assert hb.hbDSPWaitTaskDone(next_one, 0) == 0
        assert hb.hbDSPReleaseTask(next_one) == 0
        chip.until(lambda: bytes(held.output.view()[:2]) == b"\xa5\xa5", "the end of the task that continued")

    def test_memory_that_a_running_op_uses_outlives_relay_and_free(self, chip: Chip, other_mapping: Ddr) -> None:
        held = Hold(chip).await_running()
        flags = other_mapping.view(held.mem.phyAddr, 64)
        kill(chip)
        assert hb.hbDSPWaitTaskDone(held.task, 0) == hb.HB_DSP_RELAY_LOST
        assert hb.hbDSPReleaseTask(held.task) == 0
        used = chip.board.status()["memory"]["used_bytes"]
        for mem in (held.mem, held.output):
            assert hb.hbSysFreeMem(mem) == 0
        assert chip.board.status()["memory"]["used_bytes"] == used
        flags[1] = 1
        chip.until(lambda: chip.board.status()["memory"]["used_bytes"] < used, "the end of the memory")
        assert chip.board.status()["cores"][0]["crashes"] == 0  # no time limit of ops has ended it

    def test_callbacks_and_futures_hear(self, chip: Chip) -> None:
        held = Hold(chip).await_running()
        heard: list[int] = []
        done = threading.Event()

        def note(_task: hb.hbDSPTask_t, status: int, _data: Any) -> None:
            heard.append(status)
            done.set()

        assert hb.hbDSPSetTaskDoneCb(held.task, note) == 0
        future = chip.board.submit(hb.HB_DSP_RPC_CMD_PING)
        kill(chip)
        error = future.exception(PATIENCE_S)
        assert isinstance(error, BoardLostError)
        assert error.status == hb.HB_DSP_RELAY_LOST
        assert done.wait(PATIENCE_S)
        assert heard == [hb.HB_DSP_RELAY_LOST]
        assert hb.hbDSPReleaseTask(held.task) == 0
        held.let_go()

    def test_one_that_hangs_is_given_up(self, chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(relay, "LOST_SECONDS", 0.3)
        monkeypatch.setattr(relay, "BEAT_SECONDS", 0.05)
        held = Hold(chip).await_running()
        kill(chip, signal.SIGSTOP)
        assert hb.hbDSPWaitTaskDone(held.task, 0) == hb.HB_DSP_RELAY_LOST
        assert "has not responded for 0.3 s" in hb.last_error()
        assert hb.hbDSPReleaseTask(held.task) == 0
        held.let_go()
        first = kill(chip)
        chip.until(lambda: relay_pid(chip.board) != first, "the end of the relay that hung")
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")


@contextlib.contextmanager
def stopped_relay(chip: Chip) -> Iterator[None]:
    """A relay that reads nothing for a while: what is sent to it stays under way."""
    assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")
    pid = kill(chip, signal.SIGSTOP)
    chip.until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "its stop")
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):  # killed meanwhile
            os.kill(pid, signal.SIGCONT)


class TestNotYetQueued:
    """Tasks that the relay has not read."""

    def test_they_can_be_looked_at_cancelled_and_released_without_it(self, chip: Chip) -> None:
        inputs, output = chip.mem(8, b"\x01\0\0\0\x40\0\0\0"), chip.mem(64)
        with stopped_relay(chip):
            future = chip.board.submit(hb.HB_DSP_RPC_CMD_PING)
            assert not future.done()
            assert not future.running()
            assert chip.board.session.link.mailbox.slots_in(State.SENT)
            with pytest.raises(TimeoutError):
                future.result(0.01)
            assert future.cancel()
            tasks = [chip.rpc(chip.NOTE, inputs, output) for _ in range(3)]
            assert hb.hbDSPWaitTaskDone(tasks[0], 10) == hb.HB_DSP_TIMEOUT
            for task in tasks:
                assert hb.hbDSPReleaseTask(task) == 0
            assert chip.board.session.link.mailbox.slots_in(State.SENT, State.READY) == []
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")  # the relay read all before
        assert bytes(output.view()) == bytes(64)
        assert chip.board.live_tasks() == 0

    def test_they_are_queued_when_it_goes_on(self, chip: Chip) -> None:
        with stopped_relay(chip):
            task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
            oldest = chip.board.status()["oldest_waiting"]
            assert oldest["cmd"] == hb.HB_DSP_RPC_CMD_PING  # a relay that hangs is seen
            assert oldest["client"] == chip.board.session.link.client_id
        assert hb.hbDSPWaitTaskDone(task, 0) == hb.hbDSPReleaseTask(task) == 0

    def test_they_go_with_the_program(self, chip: Chip, peer: Peer) -> None:
        phy_addr = peer.alloc(64)
        peer("ctrl = hb.hbDSPRpcCtrlParam(); hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl); task = hb.hbDSPTask_t()")
        peer(f"ctrl.rpcCmd = {chip.ECHO}")
        mailbox = chip.board.session.link.mailbox
        assert peer("hb.hbDSPRpc(task, mem, mem, ctrl) or hb.hbDSPWaitTaskDone(task, 0)") == 0
        with stopped_relay(chip):
            peer("task = hb.hbDSPTask_t(); hb.hbDSPRpc(task, mem, mem, ctrl)")
            assert len(mailbox.slots_in(State.SENT)) == 1
            peer.kill()
            chip.until(lambda: mailbox.slots_in(State.SENT) == [], "the end of its task")
            chip.until(lambda: chip.board.session.link.ddr.block_at(phy_addr) is None, "the end of its memory")
        assert chip.outcome(hb.HB_DSP_RPC_CMD_PING) == (0, "")

    def test_they_end_when_the_relay_is_killed(self, chip: Chip) -> None:
        with stopped_relay(chip):
            task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
            first = kill(chip)
            assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_RELAY_LOST
            chip.until(lambda: chip.board.session.link.mailbox.slots_in(State.SENT) == [], "the end of its slot")
            chip.until(lambda: relay_pid(chip.board) != first, "the end of the relay")
            assert hb.hbDSPReleaseTask(task) == 0
            assert hb.hbDSPReleaseTask(task) == hb.HB_DSP_TASK_RELEASED


class TestAProgramDies:
    def test_its_queued_tasks_go_and_its_memory_comes_back(self, chip: Chip, peer: Peer) -> None:
        held = Hold(chip).await_running()
        phy_addr = peer.alloc(4096)
        peer("ctrl = hb.hbDSPRpcCtrlParam(); hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl); tasks = []")
        peer(f"ctrl.rpcCmd = {chip.ECHO}")
        for _ in range(3):
            peer("tasks.append(hb.hbDSPTask_t())")
            assert peer("hb.hbDSPRpc(tasks[-1], mem, mem, ctrl)") == 0
        chip.until(lambda: chip.board.status()["tasks"]["ready"] == 3, "the tasks of the other program")
        peer.kill()
        chip.until(lambda: chip.board.status()["tasks"]["ready"] == 0, "the end of its tasks")
        chip.until(lambda: chip.board.session.link.ddr.block_at(phy_addr) is None, "the end of its memory")
        assert held.finish() == 0
        findings = chip.board.status()["findings"]
        assert [found["kind"] for found in findings if found["kind"] != "leak"] == []

    def test_memory_that_a_running_op_uses_is_kept_until_it_ends(
        self, chip: Chip, peer: Peer, other_mapping: Ddr
    ) -> None:
        phy_addr = peer.alloc(64)
        flags = other_mapping.view(phy_addr, 64)
        peer("ctrl = hb.hbDSPRpcCtrlParam(); hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl); task = hb.hbDSPTask_t()")
        peer(f"ctrl.rpcCmd = {chip.HOLD}")
        assert peer("hb.hbDSPRpc(task, mem, mem, ctrl)") == 0
        chip.until(lambda: flags[0], "the start of the other program's task")
        before = len(chip.programs())
        peer.kill()
        chip.until(lambda: len(chip.programs()) < before, "the end of the other program")
        assert chip.board.session.link.ddr.block_at(phy_addr) is not None
        flags[1] = 1
        chip.until(lambda: chip.board.session.link.ddr.block_at(phy_addr) is None, "the end of its memory")
        assert chip.board.status()["cores"][0]["crashes"] == 0  # no time limit of ops has ended it


@both_modes
def test_priorities_order_the_tasks_of_all_programs(chip: Chip, peer: Peer) -> None:
    held = Hold(chip).await_running()
    journal = chip.mem(64)
    peer(f"journal = hb.hbSysMem(phyAddr={journal.phyAddr}, memSize=64)")
    assert peer("hb.hbSysRegisterMem(journal)") == 0
    peer("ctrl = hb.hbDSPRpcCtrlParam(); hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl); tasks = []; mems = []")
    peer(f"ctrl.rpcCmd = {chip.NOTE}")
    mine = []
    wanted = []
    for number, priority in enumerate((1, 9, 5, 200, 3, 7)):
        wanted.append((-priority, number))
        word = number.to_bytes(4, "little") + (64).to_bytes(4, "little")
        if number % 2:
            task, mem = hb.hbDSPTask_t(), chip.mem(8, word)
            assert hb.hbDSPRpc(task, mem, journal, chip.ctrl(chip.NOTE, priority=priority)) == 0
            mine.append(task)
        else:
            peer("tasks.append(hb.hbDSPTask_t()); mems.append(hb.hbSysMem())")
            peer(f"hb.hbSysAllocMem(mems[-1], 8); mems[-1].view()[:8] = {word!r}; ctrl.priority = {priority}")
            assert peer("hb.hbDSPRpc(tasks[-1], mems[-1], journal, ctrl)") == 0
    chip.until(lambda: chip.board.status()["tasks"]["ready"] == 6, "the tasks of both programs")
    assert held.finish() == 0
    for task in mine:
        assert hb.hbDSPWaitTaskDone(task, 0) == hb.hbDSPReleaseTask(task) == 0
    assert peer("[hb.hbDSPWaitTaskDone(task, 0) or hb.hbDSPReleaseTask(task) for task in tasks]") == [0, 0, 0]
    raw = bytes(journal.view())
    noted = [int.from_bytes(raw[at : at + 4], "little") for at in range(4, 28, 4)]
    assert noted == [number for _, number in sorted(wanted)]


def test_what_runs_again_is_there(tmp_path: Path) -> None:
    run_again(PARTS, tmp_path / "inner", "--collect-only", parts=PARTS, left_out=[])


@pytest.mark.long
@pytest.mark.parametrize("names", RUNS, ids=" ".join)
def test_the_same_tests_pass_in_relay_mode(names: list[str], tmp_path: Path) -> None:
    run_again(names, tmp_path / "inner", parts=PARTS, left_out=LEFT_OUT)
