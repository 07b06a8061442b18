"""Where a board lives: names, directories that are refused, the lock, and what a dead daemon left."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hbrt.board import files as board_files
from hbrt.board.files import check_directory, daemon_pid, leftovers, make_directory, remove_files, take_lock
from hbrt.board.paths import SOCKET_PATH_MAX, BoardPaths, board_ref, default_home, home
from hbrt.errors import BoardBusyError, BoardError, WrongUseError

if TYPE_CHECKING:
    from tests.shared import Shell


@pytest.fixture
def paths(tmp_path: Path) -> BoardPaths:
    return BoardPaths(tmp_path / "board")


@pytest.fixture
def made(paths: BoardPaths) -> BoardPaths:
    make_directory(paths)
    return paths


def test_board_is_named_by_name_by_directory_or_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_HOME", "/home/boards")
    monkeypatch.setenv("HBRT_BOARD", "mine")
    assert board_ref().path == Path("/home/boards/mine")
    assert board_ref("other").path == Path("/home/boards/other")
    assert board_ref("/var/x/y").path == Path("/var/x/y")
    assert board_ref("./y").path == Path.cwd() / "y"
    assert (board_ref("other").name, board_ref("/var/x/y").name) == ("other", "y")


@pytest.mark.parametrize("name", ["", "a" * 65, "-x", ".", "..", ".x", "a b", "a\nb", "\u00e9", "a\0", "*"])
def test_name_that_is_none_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_BOARD", "default")
    if not name:
        assert board_ref(name).name == "default"
        return
    with pytest.raises(WrongUseError, match="is not a board name: use up to 64 letters, digits"):
        board_ref(name)


def test_home_is_the_settings_then_the_runtime_directory_then_tmp(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HBRT_HOME", "relative")
    assert home() == Path.cwd() / "relative"
    monkeypatch.delenv("HBRT_HOME")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert home() == default_home() == tmp_path / "hbrt"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    assert home() == Path(f"/tmp/hbrt-{os.getuid()}")  # noqa: S108 - the name is what is tested
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert home() == Path(f"/tmp/hbrt-{os.getuid()}")  # noqa: S108 - as above


def test_directory_is_made_ours_alone_with_its_home(tmp_path: Path) -> None:
    paths = BoardPaths(tmp_path / "home" / "board")
    make_directory(paths)
    make_directory(paths)  # again is no harm
    for path in (paths.path, paths.path.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_directory_open_to_others_is_refused(made: BoardPaths) -> None:
    for mode in (0o750, 0o707, 0o701):
        made.path.chmod(mode)
        with pytest.raises(BoardError, match=f"has mode {mode:o}, open to others; run 'chmod 700 {made.path}'"):
            make_directory(made)
    made.path.chmod(0o700)
    make_directory(made)


def test_link_is_refused_though_it_leads_to_a_good_directory(made: BoardPaths, tmp_path: Path) -> None:
    link = BoardPaths(tmp_path / "link")
    link.path.symlink_to(made.path)
    for look in (make_directory, check_directory, daemon_pid):
        with pytest.raises(BoardError, match=f"{link.path} is a symbolic link; name the real directory"):
            look(link)


def test_file_in_the_place_of_a_directory_is_refused(paths: BoardPaths) -> None:
    paths.path.write_text("")
    with pytest.raises(BoardError, match=f"{paths.path} is not a directory; remove it or choose another"):
        make_directory(paths)
    with pytest.raises(BoardError, match="is not a directory"):
        check_directory(paths)
    with pytest.raises(BoardError, match="is not a directory"):
        make_directory(BoardPaths(paths.path / "below"))


def test_another_users_directory_is_refused(made: BoardPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    for look in (make_directory, check_directory, daemon_pid):
        with pytest.raises(
            BoardError, match=f"The board directory {made.path} belongs to user {owner}; choose another"
        ):
            look(made)


def test_home_in_which_others_could_replace_the_board_is_refused(made: BoardPaths) -> None:
    made.path.parent.chmod(0o777)
    with pytest.raises(BoardError, match="is writable by everyone, who could replace the board in it; run 'chmod o-w"):
        check_directory(made)
    made.path.parent.chmod(0o1777)  # as /tmp: nobody else may rename what is ours
    check_directory(made)


@pytest.mark.parametrize("how", ["link", "open"])
def test_default_home_must_be_ours_alone_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(board_files, "default_home", lambda: tmp_path / "hbrt-0")
    paths = BoardPaths(tmp_path / "hbrt-0" / "default")
    make_directory(paths)
    if how == "link":
        paths.path.parent.rename(tmp_path / "elsewhere")
        paths.path.parent.symlink_to(tmp_path / "elsewhere")
        text = "is a symbolic link"
    else:
        paths.path.parent.chmod(0o755)
        text = "has mode 755, open to others"
    with pytest.raises(BoardError, match=f"The home of the boards {paths.path.parent} {text}"):
        check_directory(paths)


def test_directory_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"Cannot create the board directory .*: File name too long\."):
        make_directory(BoardPaths(tmp_path / ("x" * 300)))


def test_lock_is_one_processs_and_names_it(made: BoardPaths) -> None:
    fd = take_lock(made)
    assert stat.S_IMODE(made.lock.stat().st_mode) == 0o600
    assert daemon_pid(made) == os.getpid()
    with pytest.raises(BoardBusyError, match=f"is already running: its daemon is process {os.getpid()}. Nothing was"):
        take_lock(made)
    os.close(fd)
    assert daemon_pid(made) is None
    os.close(take_lock(made))


def test_lock_is_let_go_when_its_holder_is_killed(made: BoardPaths) -> None:
    program = (
        "import sys; from pathlib import Path; from hbrt.board.paths import BoardPaths; "
        "from hbrt.board.files import take_lock; "
        "take_lock(BoardPaths(Path(sys.argv[1]))); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(made.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        assert daemon_pid(made) == holder.pid
        with pytest.raises(BoardBusyError, match=f"process {holder.pid}"):
            take_lock(made)
        holder.kill()
    assert daemon_pid(made) is None
    os.close(take_lock(made))


def test_who_only_looks_never_keeps_a_daemon_from_starting(made: BoardPaths) -> None:
    """A look that held the lock for a moment would make a start fail by chance."""
    import threading

    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            daemon_pid(made)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(300):
            os.close(take_lock(made))
    finally:
        stop.set()
        for looker in lookers:
            looker.join()


def test_lock_that_is_a_link_is_refused(made: BoardPaths, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    made.lock.symlink_to(victim)
    with pytest.raises(BoardError, match=f"The lock {made.lock} is a symbolic link"):
        take_lock(made)
    assert victim.read_text() == "precious"


def test_lock_of_a_board_that_nobody_knows_is_nobodys(paths: BoardPaths, made: BoardPaths) -> None:
    assert daemon_pid(BoardPaths(paths.path.parent / "unknown")) is None
    assert daemon_pid(made) is None
    made.lock.write_text("4711\n")  # a dead daemon's
    assert daemon_pid(made) is None


def _leave(paths: BoardPaths) -> list[Path]:
    for path in (paths.attach, paths.control):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    files = [paths.path / "image-1.py", paths.path / "image-22.py", paths.lock, paths.log]
    for path in files:
        path.write_text("")
    return files


def test_files_of_a_dead_daemon_are_found_and_removed_and_others_are_not(made: BoardPaths) -> None:
    _leave(made)
    (made.path / "mine.txt").write_text("")
    left = {path.name for path in leftovers(made)}
    assert left == {"attach.sock", "control.sock", "image-1.py", "image-22.py"}
    assert {path.name for path in remove_files(made)} == left | {"lock"}
    assert sorted(path.name for path in made.path.iterdir()) == ["log", "mine.txt"]
    assert leftovers(made) == []
    assert remove_files(made) == []


def test_directory_goes_with_its_last_file_and_the_default_home_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_files, "default_home", lambda: tmp_path / "home")
    one, two = BoardPaths(tmp_path / "home" / "one"), BoardPaths(tmp_path / "home" / "two")
    for paths in (one, two):
        make_directory(paths)
        _leave(paths)
    remove_files(one, keep_log=False)
    assert not one.path.exists()
    assert two.path.exists()
    remove_files(two, keep_log=False)
    assert not two.path.parent.exists()


def test_lock_that_cannot_be_written_is_not_taken(made: BoardPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(BoardError, match=f"Cannot write the lock {made.lock}: No space left on device"):
            take_lock(made)
    assert not made.lock.exists()
    os.close(take_lock(made))


def test_home_that_a_user_chose_is_the_users(made: BoardPaths) -> None:
    remove_files(made, keep_log=False)
    assert not made.path.exists()
    assert made.path.parent.exists()


def test_socket_of_a_long_path_is_reached_through_its_directory(tmp_path: Path) -> None:
    paths = BoardPaths(tmp_path / ("long-" * 30))
    make_directory(paths)
    assert len(os.fsencode(paths.attach)) > SOCKET_PATH_MAX
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(paths.attach_address)
        server.listen()
        client.connect(paths.attach_address)
    assert paths.attach.is_socket()
    assert len(paths.attach_address) <= SOCKET_PATH_MAX


@pytest.mark.parametrize("encoding", ["C.UTF-8", "C"])
def test_a_board_is_reached_whatever_the_locale_makes_of_its_directory(shell: Shell, encoding: str) -> None:
    shell.environment |= {"LC_ALL": encoding, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    shell.environment["HBRT_HOME"] = os.fsdecode(os.fsencode(shell.home) + "/b\u00f6rd".encode())
    if encoding == "C":
        answer = shell.hbrt("start")
        assert answer.returncode == 2
        assert (
            "is not valid text in this locale, so messages cannot name it: choose another with HBRT_HOME"
            in answer.stderr
        )
    else:
        shell.good("start")
        shell.good("stop")


def test_an_address_for_zeromq_is_the_bytes_of_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a locale of ISO 8859-1, Python reads a UTF-8 name as other characters, whose UTF-8 would be another path."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsencode", lambda path: str(path).encode("latin-1"))
        paths = BoardPaths(Path("/b\u00f6rd".encode().decode("latin-1")))
        assert paths.control_endpoint == "ipc:///b\u00f6rd/control.sock"
        other = tmp_path / "b\u00f6rd"  # with a byte that is no UTF-8
        other.mkdir()
        assert BoardPaths(other).control_endpoint.startswith("ipc:///proc/self/fd/")


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_an_image_whose_path_is_no_text_is_wrong_use(shell: Shell, verb: str) -> None:
    path = shell.cwd / "image\udcff.py"
    path.write_text("")
    answer = shell.hbrt(verb, "--image", path)
    assert answer.returncode == 2
    assert "is not text in this locale; rename the file" in answer.stderr


def test_an_image_and_a_recording_in_a_directory_that_is_no_text_are_wrong_use(shell: Shell) -> None:
    program = shell.cwd / "program.py"
    program.write_text("from arm_client import connect\nconnect().close()\n")
    shell.cwd /= "in\udcff"
    shell.cwd.mkdir()
    (shell.cwd / "image.py").write_text("")
    answer = shell.hbrt("start", "--image", "image.py")
    assert (answer.returncode, "is not text in this locale; rename the file" in answer.stderr) == (2, True)
    for name, value, why in (
        ("HBRT_IMAGE", "image.py", "The path of the image '"),
        ("HBRT_RECORD", "new", "is not valid text in this locale, so messages"),
    ):
        shell.environment[name] = value
        answer = shell.python(program)
        assert (answer.returncode, why in answer.stderr) == (1, True), answer.stderr
        del shell.environment[name]
