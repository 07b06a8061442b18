"""Directories and files of this user alone, whatever the umask."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hbrt.board.private_files import make_directory, open_file
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

UMASKS = [0, 0o022, 0o277, 0o777]
# What looks away from modes; a process of root that may not have them is refused like anybody else.
CAPABILITIES = "-dac_override,-dac_read_search"


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("value", UMASKS)
def test_a_directory_is_made_with_those_above_it(tmp_path: Path, value: int) -> None:
    path = tmp_path / "a" / "b" / "c"
    with umask(value):
        make_directory(path)
        make_directory(path)
    assert [mode_of(one) for one in (path, path.parent, path.parent.parent)] == [0o700] * 3


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    path.chmod(0o750)
    make_directory(path)
    make_directory(path / "b")
    assert (mode_of(path), mode_of(path / "b")) == (0o750, 0o700)


def test_something_else_is_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in ("file", "link", "link/below"):
        with pytest.raises(FileExistsError):
            make_directory(tmp_path / place)
    with pytest.raises(NotADirectoryError):
        make_directory(tmp_path / "file" / "below")


@pytest.mark.parametrize("value", UMASKS)
def test_a_file(tmp_path: Path, value: int) -> None:
    path = tmp_path / "file"
    with umask(value):
        fd = open_file(path, os.O_RDWR | os.O_CREAT)
    assert (mode_of(path), os.get_inheritable(fd)) == (0o600, False)
    os.close(fd)
    path.chmod(0o644)
    os.close(open_file(path, os.O_WRONLY | os.O_CREAT))
    assert mode_of(path) == 0o644


def _other(kind: str, path: Path) -> None:
    match kind:
        case "a FIFO":
            os.mkfifo(path)
        case "a directory":
            path.mkdir()
        case "a socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "a symbolic link":
            path.symlink_to(path.parent / "nowhere")
        case _:
            path.with_name("theirs").write_text("kept")
            os.link(path.with_name("theirs"), path)


@pytest.mark.parametrize(
    "kind", ["a FIFO", "a directory", "a socket", "a symbolic link", "one of 2 hard links to a file"]
)
@pytest.mark.parametrize("flags", [os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_RDWR | os.O_CREAT, os.O_RDONLY])
def test_what_is_no_file_of_its_own_is_refused_and_not_waited_for(tmp_path: Path, kind: str, flags: int) -> None:
    path = tmp_path / "lock"
    _other(kind, path)
    with pytest.raises(OSError, match=f"it is {kind}.*; remove it") as caught:
        os.close(open_file(path, flags))
    assert caught.value.filename == str(path)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lock", "a FIFO"),
        ("log", "one of 2 hard links to a file"),
        ("attach.sock", "a symbolic link"),
        ("control.sock", "a directory"),
        ("control.sock", "one of 2 hard links to a file"),
    ],
)
def test_a_start_over_something_else_says_so_or_replaces_it(shell: Shell, tmp_path: Path, name: str, kind: str) -> None:
    board = tmp_path / "board"
    board.mkdir(0o700)
    _other(kind, board / name)
    started = shell.hbrt("start", "--board", str(board))
    said = started.stdout + started.stderr
    assert "Traceback" not in said
    if started.returncode == 0:
        assert shell.hbrt("stop", "--board", str(board)).returncode == 0
    else:
        assert str(board / name) in said
        assert "emove it" in said or "is a symbolic link" in said
    theirs = board / "theirs"
    assert not theirs.exists() or theirs.read_text() == "kept"


def test_a_board_whose_owner_has_a_umask_that_takes_all(shell: Shell, tmp_path: Path) -> None:
    program = f'umask 0777; exec {sys.executable} -m hbrt "$0" "$@"'
    prefix = ["setpriv", f"--bounding-set={CAPABILITIES}"] if os.getuid() == 0 else []
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no setpriv that takes root's privileges away")
    shell.environment["HBRT_HOME"] = str(shell.home / "deep" / "home")
    keys = tmp_path / "keys"
    for arguments in (
        ["start"],
        ["status"],
        ["relay", "--detach"],
        ["restart"],
        ["log"],
        ["stop"],
        ["keys", "new", "--name", "alice", str(keys)],
        ["keys", "list", str(keys)],
    ):
        done = subprocess.run(
            [*prefix, "sh", "-c", program, *arguments],
            cwd=shell.cwd,
            env=shell.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done)
