"""connect(), private boards and their end, a board that is restarted under its client, a program's own life."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import arm_client as hb
from arm_client import BoardError, BoardLostError, CallerError, UnknownCommandError, connect, private_board
from arm_client.client import Board
from arm_client.session.process import process
from arm_client.session.session import Session, set_default
from hbrt.board.launch import DaemonConfig, Launched, launch
from hbrt.board.paths import BoardPaths
from hbrt.settings import BadSettingError
from tests.limits import PATIENCE_S

IMAGE = Path(__file__).parent.parent / "images" / "ops.py"


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def homeless(board_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without any board, and this process attached to none."""
    monkeypatch.setenv("HBRT_HOME", str(board_home))
    before = set_default(None)
    yield board_home
    left = set_default(before)
    assert left is None or left.link.fault
    assert not list(board_home.iterdir())


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Launched]]:
    """Boards that the test starts by directory; gone at its end."""
    running: dict[int, Launched] = {}

    def start(path: Path) -> Launched:
        launched = launch(DaemonConfig(str(path), str(IMAGE), ddr_bytes=64 << 20, is_private=True))
        running[launched.pid] = launched
        return launched

    yield start
    for launched in running.values():
        with contextlib.suppress(OSError):
            os.close(launched.lifeline)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(launched.pid, 0)


def stop(launched: Launched) -> None:
    os.kill(launched.pid, signal.SIGTERM)
    os.waitpid(launched.pid, 0)


@pytest.mark.usefixtures("homeless")
class TestAutostart:
    def test_a_private_board_for_as_long_as_it_is_used(self, homeless: Path) -> None:
        with connect() as board:
            pid = board.session.link.daemon_pid
            assert board.path.parent == homeless
            assert board.path.name.startswith(f"private-{os.getpid()}-")
            assert board.call(hb.HB_DSP_RPC_CMD_PING) is None
            assert "softmax" in board.ops().values()
        assert not is_alive(pid)

    def test_the_c_names_start_one_as_well(self, homeless: Path) -> None:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 64) == 0
        assert hb.hbSysFreeMem(mem) == 0
        with connect() as board:  # the same one
            assert board.path.parent == homeless

    def test_a_child_whose_parent_took_the_private_board_along_hears_what_to_do(
        self, homeless: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HBRT_AUTOSTART", "0")
        monkeypatch.setenv("HBRT_BOARD", str(homeless / "private-1-ab"))
        with pytest.raises(BoardError, match=r"private-1-ab ended with .* Make the first call after daemon\(\)"):
            connect()

    def test_who_named_another_board_is_told(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        connect().close()
        assert not caplog.records
        monkeypatch.setenv("HBRT_BOARD", "nix")
        connect().close()
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert record.getMessage().startswith(
            f"Board nix (HBRT_BOARD) is not running, so this program uses a private one, private-{os.getpid()}-"
        )

    def test_who_lacks_an_op_is_told_that_no_board_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        private = "Board default is not running, so this program uses a private one with the packaged ops alone"
        told = rf"the nearest are .* lists all\. {private}"
        with connect() as board:
            with pytest.raises(UnknownCommandError, match=told):
                board.call(0x1FFF)
            task, ctrl = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam(rpcCmd=0x1FFF)
            assert hb.hbDSPRpc(task, None, None, ctrl) == 0
            assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_UNKNOWN_COMMAND
            assert hb.last_error().endswith("with 'hbrt start --image FILE.py', or name the image in HBRT_IMAGE.")
            hb.hbDSPReleaseTask(task)
        monkeypatch.setenv("HBRT_IMAGE", str(IMAGE))
        with connect() as board, pytest.raises(UnknownCommandError, match=f"a private one with the image {IMAGE}: "):
            board.call(0x1FFF)
        with private_board() as board, pytest.raises(UnknownCommandError) as lacks:
            board.call(0x1FFF)
        assert "No board" not in str(lacks.value)

    def test_turned_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HBRT_AUTOSTART", "0")
        with pytest.raises(BoardError, match=r"^Board default is not running; start it with 'hbrt start'\.$"):
            connect()
        assert hb.hbSysAllocMem(hb.hbSysMem(), 64) == hb.HB_SYS_NOT_RUNNING
        assert hb.last_error() == "Board default is not running; start it with 'hbrt start'."
        with pytest.raises(BoardError, match=r"^Board lab is not running; start it with 'hbrt start --board lab'\.$"):
            connect("lab")
        task, ctrl = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
        assert hb.hbDSPRpc(task, None, None, ctrl) == hb.HB_DSP_NOT_RUNNING
        assert hb.hbSysFreeMem(hb.hbSysMem(phyAddr=0x8200_0000)) == hb.HB_SYS_NOT_ALLOCATED
        assert hb.hbDSPReleaseTask(task) == hb.HB_DSP_INVALID_TASK_HANDLE

    @pytest.mark.parametrize(
        "setting", ["HBRT_AUTOSTART", "HBRT_SPIN_US", "HBRT_CACHE", "HBRT_CORES", "HBRT_DDR", "HBRT_WATCHDOG_MS"]
    )
    def test_settings_that_make_no_sense(self, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
        monkeypatch.setenv(setting, "banana")
        assert hb.hbSysAllocMem(hb.hbSysMem(), 64) == hb.HB_SYS_NOT_RUNNING
        assert f"{setting} " in hb.last_error()
        assert "banana" in hb.last_error()

    def test_a_home_that_cannot_be_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HBRT_HOME", "/proc/nowhere")
        assert hb.hbSysAllocMem(hb.hbSysMem(), 64) == hb.HB_SYS_NOT_RUNNING
        assert "/proc/nowhere" in hb.last_error()
        with pytest.raises(BoardError, match="/proc/nowhere"):
            connect()

    def test_its_image_is_a_setting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HBRT_IMAGE", str(IMAGE))
        monkeypatch.setenv("HBRT_CORES", "1")
        with connect() as board:
            assert board.ops()[0x1000] == "echo"
            assert board.core_count == 1

    def test_an_image_that_does_not_load(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        bad = tmp_path / "bad.py"
        bad.write_text("import no_such_module_here\n", encoding="utf-8")
        monkeypatch.setenv("HBRT_IMAGE", str(bad))
        with pytest.raises(BoardError, match="No module named 'no_such_module_here'") as failed:
            connect()
        assert failed.value.__context__ is None  # its traceback is not about the board that does not run
        assert hb.hbSysAllocMem(hb.hbSysMem(), 64) == hb.HB_SYS_NOT_RUNNING
        assert "No module named 'no_such_module_here'" in hb.last_error()


@pytest.mark.usefixtures("homeless")
class TestSharing:
    def test_connecting_twice_shares_one_attachment(self) -> None:
        with connect() as one:
            with connect() as two:
                assert two.session is one.session
                array = one.empty(4)
                assert two.call(hb.HB_DSP_RPC_CMD_PING, array) is None
                mem = hb.hbSysMem()
                assert hb.hbSysAllocMem(mem, 64) == 0
                assert two.live_bytes() == 64 + 16
                assert hb.hbSysFreeMem(mem) == 0
            assert one.call(hb.HB_DSP_RPC_CMD_PING) is None  # the other's end is not this one's
            assert two.is_closed
            with pytest.raises(BoardLostError, match="This connection was closed; call connect"):
                two.call(hb.HB_DSP_RPC_CMD_PING)

    def test_a_named_board(
        self, homeless: Path, monkeypatch: pytest.MonkeyPatch, serve: Callable[[Path], Launched]
    ) -> None:
        lab, other = serve(homeless / "lab"), serve(homeless / "other")
        with connect("lab") as one, connect("other") as two, connect(str(homeless / "lab")) as three:
            assert one.path.name == "lab"
            assert one.session.link.daemon_pid == lab.pid
            assert two.session.link.daemon_pid == other.pid
            assert three.session is one.session
            with pytest.raises(CallerError, match="is not on this connection's board"):
                two.submit(0x1000, one.empty(2))
        for bad in ("nobody", str(homeless / "nobody")):
            with pytest.raises(BoardError, match="Board nobody is not running"):
                connect(bad)
        with pytest.raises(BoardError, match="is not a board name"):
            connect("no name!")
        monkeypatch.setenv("HBRT_BOARD", "other")
        with connect() as four:
            assert four.path.name == "other"
        stop(lab)
        stop(other)

    def test_private_boards_nest(self) -> None:
        with private_board(IMAGE, cores=1) as outer:
            mem = hb.hbSysMem()
            with private_board(cores=1) as inner:
                assert hb.hbSysAllocMem(mem, 64) == 0
                assert (inner.live_bytes(), outer.live_bytes()) == (64, 0)
                assert hb.hbSysFreeMem(mem) == 0
            assert process.default is outer.session
            assert hb.hbSysAllocMem(mem, 64) == 0
            assert outer.live_bytes() == 64

    def test_private_boards_that_end_in_the_order_they_began_leave_none_for_the_c_names(self) -> None:
        first, second = private_board(cores=1), private_board(cores=1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert process.default is None

    @pytest.mark.parametrize(
        ("asked", "why"),
        [
            ({"cores": 0}, "0 DSP cores do not fit a board with the profile j5, which has 2"),
            ({"ddr_bytes": 0}, "A DDR of 0 bytes is smaller than a page"),
        ],
    )
    def test_a_private_board_of_nothing_is_refused(self, asked: dict[str, Any], why: str) -> None:
        with pytest.raises((BoardError, BadSettingError), match=why), private_board(**asked):
            pytest.fail("It was given something else than it asked for.")

    def test_a_private_board_whose_daemon_was_killed_leaves_no_directory(self) -> None:
        with private_board(cores=1) as board:
            daemon = board.session.daemon
            assert daemon is not None
            os.kill(daemon.pid, signal.SIGKILL)
        assert not daemon.paths.path.exists()

    def test_a_private_board_whose_block_raises(self) -> None:
        pids: list[int] = []

        def fail() -> None:
            with private_board(cores=1) as board:
                pids.append(board.session.link.daemon_pid)
                raise KeyError("the test's own")

        with pytest.raises(KeyError, match="the test's own"):
            fail()
        assert not is_alive(pids[0])


class TestRestart:
    def test_clear_errors_and_then_a_new_connection(self, homeless: Path, serve: Callable[[Path], Launched]) -> None:
        first = serve(homeless / "default")
        board = connect()
        mem, task = hb.hbSysMem(), hb.hbDSPTask_t()
        assert hb.hbSysAllocMem(mem, 64) == 0
        ctrl = hb.hbDSPRpcCtrlParam()
        assert hb.hbDSPRpc(task, mem, mem, ctrl) == 0
        assert hb.hbDSPWaitTaskDone(task, 0) == 0
        array = board.empty(4)
        stop(first)
        second = serve(homeless / "default")
        assert hb.hbDSPWaitTaskDone(task, 0) in {0, hb.HB_DSP_BOARD_LOST}  # it had ended before
        for _ in range(2):
            with pytest.raises(BoardLostError, match=rf"The daemon of board default \(process {first.pid}\) died"):
                board.alloc(4)
        with pytest.raises(BoardLostError) as caught:
            board.call(hb.HB_DSP_RPC_CMD_PING, array)
        assert caught.value.status == hb.HB_DSP_BOARD_LOST
        with connect() as again:
            assert again.session.link.daemon_pid == second.pid
            assert again.call(hb.HB_DSP_RPC_CMD_PING) is None
            assert hb.hbDSPReleaseTask(task) in {hb.HB_DSP_FOREIGN_TASK_HANDLE, hb.HB_DSP_TASK_RELEASED}
            assert hb.hbSysFreeMem(mem) == hb.HB_SYS_NOT_ALLOCATED
            assert hb.hbSysAllocMem(mem, 64) == 0
            with pytest.raises(BoardLostError):
                board.alloc(4)  # the old connection stays what it is
            assert hb.hbSysFreeMem(mem) == 0
        board.close()
        stop(second)

    def test_a_request_to_the_dead_daemon_raises_no_sigpipe(
        self, homeless: Path, serve: Callable[[Path], Launched]
    ) -> None:
        """Which would end a program that has that signal's default."""
        raised: list[int] = []
        first = serve(homeless / "default")
        board = connect()
        before = signal.signal(signal.SIGPIPE, lambda number, _frame: raised.append(number))
        try:
            board.alloc(4)
            stop(first)
            with pytest.raises(BoardLostError):
                board.alloc(4)
        finally:
            signal.signal(signal.SIGPIPE, before)
        assert raised == []
        board.close()

    def test_nobody_noticed_the_end(self, homeless: Path, serve: Callable[[Path], Launched]) -> None:
        first = serve(homeless / "default")
        board = connect()
        stop(first)
        second = serve(homeless / "default")
        with connect() as again:  # not a single call has failed before
            assert again.session.link.daemon_pid == second.pid
            assert again.call(hb.HB_DSP_RPC_CMD_PING) is None
        board.close()
        stop(second)

    @pytest.mark.parametrize("asked", ["a call", "memory"])
    def test_what_the_next_daemon_says_is_not_for_the_programs_of_the_one_before(
        self, homeless: Path, serve: Callable[[Path], Launched], asked: str
    ) -> None:
        first = serve(homeless / "default")
        board = connect()
        os.kill(first.pid, signal.SIGKILL)
        os.waitpid(first.pid, 0)
        second = serve(homeless / "default")
        other = Session(board.session.link.paths)  # connect() would look whether the board of the first is gone
        Board(other).call(hb.HB_DSP_RPC_CMD_PING)  # in relay mode, its relay is there from now on
        with pytest.raises(BoardLostError, match=rf"process {first.pid}\) died") as caught:
            board.call(hb.HB_DSP_RPC_CMD_PING) if asked == "a call" else board.alloc(64)
        assert caught.value.status in {hb.HB_DSP_BOARD_LOST, hb.HB_SYS_BOARD_LOST}
        other.close()
        board.close()
        stop(second)

    def test_old_handles_are_nobody_s_tasks_on_the_new_board(
        self, homeless: Path, serve: Callable[[Path], Launched]
    ) -> None:
        tasks: list[hb.hbDSPTask_t] = []
        ctrl = hb.hbDSPRpcCtrlParam()
        for _ in range(3):
            launched = serve(homeless / "default")
            fresh = [hb.hbDSPTask_t() for _ in range(5)]
            with connect():
                for task in fresh:
                    assert hb.hbDSPRpc(task, None, None, ctrl) == 0
                for task in tasks:
                    status = hb.hbDSPWaitTaskDone(task, 0)
                    assert status in {hb.HB_DSP_FOREIGN_TASK_HANDLE, hb.HB_DSP_TASK_RELEASED}
                    assert status == hb.HB_DSP_TASK_RELEASED or "board or relay was lost" in hb.last_error()
                for task in fresh:
                    assert hb.hbDSPWaitTaskDone(task, 0) == 0
            tasks += fresh
            stop(launched)
        assert len({task.value for task in tasks}) == 15

    def test_waiting_threads_are_let_go_when_the_daemon_dies(
        self, homeless: Path, serve: Callable[[Path], Launched]
    ) -> None:

        launched = serve(homeless / "default")
        board = connect()
        statuses: list[int] = []

        def wait(timeout: int) -> None:
            task, mem = hb.hbDSPTask_t(), hb.hbSysMem()
            hb.hbSysAllocMem(mem, 64)
            hb.hbDSPRpc(task, mem, mem, hb.hbDSPRpcCtrlParam(rpcCmd=0x1001))
            ready.release()
            statuses.append(hb.hbDSPWaitTaskDone(task, timeout))

        ready = threading.Semaphore(0)
        threads = [threading.Thread(target=wait, args=(timeout,)) for timeout in (0, 0, 0, 60_000, 60_000, 0)]
        for thread in threads:
            thread.start()
        for _ in threads:
            ready.acquire()
        os.kill(launched.pid, signal.SIGKILL)
        os.waitpid(launched.pid, 0)
        for thread in threads:
            thread.join(PATIENCE_S)
        assert statuses == [hb.HB_DSP_BOARD_LOST] * 6
        board.close()
        for left in BoardPaths(homeless / "default").path.iterdir():
            left.unlink(missing_ok=True)  # a relay that ends with its board removes its own
        BoardPaths(homeless / "default").path.rmdir()


FEW_DESCRIPTORS = """
import os, resource, sys
from arm_client import BoardError, connect

open_now = len(os.listdir("/proc/self/fd"))
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
for spare in range(12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + spare, most))
    try:
        connect(sys.argv[1]).close()
    except (BoardError, OSError) as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    assert len(os.listdir("/proc/self/fd")) == open_now, spare
"""


def test_without_room_for_descriptors_it_says_so_and_keeps_none(dsp_board: Board) -> None:
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(dsp_board.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said
    assert all("Too many open files" in line for line in said), said
