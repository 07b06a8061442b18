"""A daemon's own life: start, stop, a second daemon, sudden deaths, and what is on the disk meanwhile."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arm_client.errors import HbrtError
from dsp_server.daemon import daemon
from hbrt.board.files import daemon_pid
from hbrt.board.launch import DaemonConfig
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError, DidNotStartError
from hbrt.mailbox.native import NativeMissingError
from hbrt.status import Status

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]
    WriteImage = Callable[..., Path]


def test_files_are_the_owners_alone_and_go_with_the_daemon(start: Start) -> None:
    running = start(is_private=False)
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in running.paths.path.iterdir()}
    # The second image is that of the cores for models.
    assert set(modes) == {"attach.sock", "control.sock", "lock", "log", "image-1.py", "image-2.py"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(running.paths.path.lstat().st_mode) == 0o700
    assert daemon_pid(running.paths) == running.pid
    running.ask("stop")
    running.await_end(running.pid)
    assert [path.name for path in running.paths.path.iterdir()] == ["log"]
    assert daemon_pid(running.paths) is None


def test_without_the_c_mailbox_a_board_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing() -> None:
        raise NativeMissingError("The C mailbox cannot be used: it is older than its sources.")

    monkeypatch.setattr(daemon, "native", missing)
    with pytest.raises(BoardError, match="older than its sources"):
        daemon.serve(DaemonConfig(directory=str(tmp_path / "board")), print)
    assert not (tmp_path / "board").exists()


@pytest.mark.usefixtures("hangups_count")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_a_board_in_good_order(start: Start, number: int) -> None:
    running = start()
    cores = [core["pid"] for core in running.ask("status")["cores"]]
    os.kill(running.pid, number)
    _, wait_status = os.waitpid(running.pid, 0)
    assert os.WIFEXITED(wait_status)
    assert os.WEXITSTATUS(wait_status) == 0
    assert not [pid for pid in cores if Path(f"/proc/{pid}").exists()]
    assert not running.paths.path.exists()


def test_board_that_ends_answers_every_task(start: Start) -> None:
    running = start()
    board = running.attach()
    held = running.hold(board, core=1)
    queued = board.submit(running.WHICH, None, core=1)
    os.kill(running.pid, signal.SIGTERM)
    error = queued.exception()
    assert isinstance(error, HbrtError)
    assert error.status == Status.HB_DSP_BOARD_LOST
    held.let_go()  # what runs has a grace
    assert held.task.exception() is None
    assert held.flags[2] == 1


IMAGES = {
    "raises": ("raise RuntimeError('no weights')", "hb_dsp_start()", Status.HB_DSP_RUN_TASK_FAILED, "no weights"),
    "returns": ("pass", "return", Status.HB_DSP_RUN_TASK_FAILED, "returned; it must end with hb_dsp_start()"),
    "exits": ("raise SystemExit(4)", "pass", Status.HB_DSP_RUN_TASK_FAILED, "SystemExit: 4"),
    "ends its process": ("os._exit(9)", "pass", Status.HB_DSP_RUN_TASK_FAILED, "exited with code 9 while loading"),
    "is killed": ("os.kill(os.getpid(), 9)", "pass", Status.HB_DSP_RUN_TASK_FAILED, "signal 9 (SIGKILL) while loa"),
    "breaks a rule": ("hb_dsp_register_fn(0x1, which, 0)", "pass", Status.HB_DSP_RUN_TASK_FAILED, "before hb_dsp_env_"),
}


@pytest.mark.parametrize("case", IMAGES)
def test_image_that_does_not_load_is_told_and_leaves_nothing(
    start: Start, write_image: WriteImage, directory: Path, case: str
) -> None:
    before, instead, status, text = IMAGES[case]
    image = write_image(before=before, instead=instead)
    with pytest.raises(DidNotStartError) as caught:
        start(image)
    assert text in str(caught.value)
    assert str(image) in str(caught.value)
    assert caught.value.status == status
    assert not directory.exists()


FILES: dict[str, tuple[Callable[[Path], object], Status, str]] = {
    "a pipe": (os.mkfifo, Status.HB_DSP_INVALID_ARGUMENT, "is not a regular file."),
    "not Python": (lambda p: p.write_text("x = (\n"), Status.HB_DSP_RUN_TASK_FAILED, "line 1, is not valid Python"),
}


@pytest.mark.parametrize("case", FILES)
def test_file_that_is_no_image_is_told(start: Start, tmp_path: Path, directory: Path, case: str) -> None:
    make, status, text = FILES[case]
    image = tmp_path / "image.py"
    make(image)
    with pytest.raises(DidNotStartError) as caught:
        start(image)
    assert text in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert caught.value.status == status
    assert not directory.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_daemon_can_be_ended_while_its_image_loads(
    start: Start, write_image: WriteImage, directory: Path, number: int
) -> None:
    said: list[str] = []

    def try_to_start() -> None:
        with pytest.raises(DidNotStartError) as caught:
            start(write_image(before="print('loading', flush=True); time.sleep(1000)"))
        said.append(str(caught.value))

    starter = threading.Thread(target=try_to_start)
    starter.start()
    paths = BoardPaths(directory)
    while not paths.log.exists() or "loading" not in paths.log.read_text(encoding="utf-8"):
        assert starter.is_alive()
    pid = daemon_pid(paths)
    assert pid is not None
    os.kill(pid, number)
    starter.join()
    assert said
    assert "The board was stopped before its cores were running." in said[0]
    assert not directory.exists()


def test_ddr_that_cannot_be_had_is_told(start: Start, directory: Path) -> None:
    with pytest.raises(DidNotStartError, match="DDR of 1 bytes is smaller than a page"):
        start(ddr_bytes=1)
    with pytest.raises(DidNotStartError, match="Cannot create a DDR"):
        start(ddr_bytes=1 << 62)
    with pytest.raises(DidNotStartError, match="0 to 8 cores, not 9"):
        start(cores=9)
    assert not directory.exists()
