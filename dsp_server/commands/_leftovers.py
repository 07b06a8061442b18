"""The boards of this user as their directories show them: who runs, and what dead daemons left."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dsp_server.commands._checks import Check, Level
from hbrt.board import BoardError, BoardPaths, home, is_private_name
from hbrt.board_files import boards_in, daemon_pid, leftovers, remove_files, take_lock


def boards(*, clean: bool) -> Iterator[Check]:
    """The home of the boards and each board in it; with ``clean``, what dead ones left is removed."""
    place = home()
    try:
        found = boards_in(place)
        yield _mode("boards", place)
    except FileNotFoundError:
        yield Check("boards", Level.OK, f"none yet; {place} is made by the first start")
        return
    except OSError as error:
        yield Check("boards", Level.FAIL, f"{place}: {error.strerror}", "Set HBRT_HOME to a directory of yours.")
        return
    for paths in found:
        with contextlib.suppress(FileNotFoundError):  # it ended while we looked
            yield _board(paths, clean=clean)


def _mode(name: str, path: Path) -> Check:
    info = path.lstat()
    mode = stat.S_IMODE(info.st_mode)
    found = f"{path}, user {info.st_uid}, mode {mode:o}"
    if info.st_uid != os.getuid():
        return Check(name, Level.WARN, found, "It is another user's: set HBRT_HOME to a directory of yours.")
    return Check(name, Level.OK, found)


def _board(paths: BoardPaths, *, clean: bool) -> Check:
    name = f"board {paths.name}"
    try:
        pid = daemon_pid(paths)
    except BoardError as error:
        return Check(name, Level.FAIL, "its directory is refused", str(error))
    shown = _mode(name, paths.path).found
    if pid is not None:
        return Check(name, Level.OK, f"running, daemon process {pid}; {shown}")
    is_private = is_private_name(paths.name)
    left = [path.name for path in (*leftovers(paths), *([paths.log] if is_private else [])) if path.exists()]
    if not left:
        return Check(name, Level.OK, f"offline; {shown}")
    if not clean:
        found = f"its daemon has died and left {', '.join(left)}; {shown}"
        return Check(name, Level.WARN, found, "Run 'hbrt doctor --clean' to remove it.")
    try:
        lock = take_lock(paths)
    except BoardError as error:
        return Check(name, Level.OK, f"was started meanwhile: {error}")
    try:
        removed = remove_files(paths, keep_log=not is_private)
    finally:
        os.close(lock)
    return Check(name, Level.OK, f"removed {', '.join(path.name for path in removed)}")
