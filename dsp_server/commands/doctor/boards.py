"""A user's boards: running ones and their cores, files left behind by dead daemons, boards on other machines."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dsp_server.commands.doctor.checks import Check, Level
from dsp_server.lifecycle.health import HEALTHY
from dsp_server.process.proc_state import STOPPED, state_of
from hbrt import settings
from hbrt.board.files import boards_in, daemon_pid, leftovers, remove_stopped
from hbrt.board.paths import BoardPaths, RemoteBoard, board_ref, home, is_private_name
from hbrt.board.routes import parse_routing
from hbrt.control.ask import ask, how_to_name
from hbrt.errors import BoardError, NotRunningError, RefusedError, RequestRefusedError, WrongUseError
from hbrt.status import Status

ANSWER_SECONDS = 5.0


def boards(*, clean: bool) -> Iterator[Check]:
    """Check the directory of the boards and each board in it; ``clean`` removes the files of dead ones."""
    place = home()
    try:
        found = boards_in(place)
        yield _mode("boards", place)
    except FileNotFoundError:
        yield Check("boards", Level.OK, f"none yet; the first start creates {place}")
        return
    except OSError as error:
        yield Check("boards", Level.FAIL, f"{place}: {error.strerror}", "Set HBRT_HOME to a directory that you own.")
        return
    for paths in found:
        with contextlib.suppress(FileNotFoundError):  # ended since it was listed
            yield from _board(paths, clean=clean)


def _mode(name: str, path: Path) -> Check:
    info = path.lstat()
    mode = stat.S_IMODE(info.st_mode)
    found = f"{path}, user {info.st_uid}, mode {mode:o}"
    if info.st_uid != os.getuid():
        return Check(name, Level.WARN, found, "It belongs to another user: set HBRT_HOME to a directory that you own.")
    return Check(name, Level.OK, found)


def _board(paths: BoardPaths, *, clean: bool) -> Iterator[Check]:
    name = f"board {paths.name}"
    try:
        pid = daemon_pid(paths)
    except BoardError as error:
        yield Check(name, Level.FAIL, "its directory is refused", str(error))
        return
    shown = _mode(name, paths.path).found
    if pid is None:
        yield _offline(paths, shown, clean=clean)
    elif state_of(pid) in STOPPED:
        yield Check(
            name,
            Level.FAIL,
            f"its daemon process {pid} is stopped, by a signal (SIGSTOP) or a debugger; {shown}",
            f"'kill -CONT {pid}' resumes it.",
        )
    else:
        yield from _running(paths, pid, shown)


def _running(paths: BoardPaths, pid: int, shown: str) -> Iterator[Check]:
    """Check a board that has a daemon, and report each of its cores that is not well."""
    name = f"board {paths.name}"
    try:
        status = ask(paths, "status", ANSWER_SECONDS)
    except RefusedError as error:
        if error.status == Status.HB_DSP_TIMEOUT:
            advice = f"'hbrt log{how_to_name(paths)}' may say why; 'hbrt stop{how_to_name(paths)}' ends it."
            yield Check(name, Level.FAIL, f"daemon process {pid} does not answer; {shown}", advice)
            return
        yield Check(name, Level.OK, f"ended meanwhile; {shown}")
        return
    except NotRunningError:
        yield Check(name, Level.OK, f"ended meanwhile; {shown}")
        return
    yield Check(name, Level.OK, f"running, daemon process {pid}; {shown}")
    if problem := status["claim_lock"]:
        found, _, advice = problem.partition(". ")
        yield Check(f"{name} claim lock", Level.FAIL, found, advice)
    for core in status["cores"]:
        if core["health"] in HEALTHY or core["next"]:
            continue
        # A stopped core is offline because a user wanted it so.
        level = Level.WARN if core["health"] == "offline" else Level.FAIL
        advice = f"'hbrt restart --core {core['core']}{how_to_name(paths)}' restarts it."
        if core["health"] == "stuck":
            advice = f"'hbrt why{how_to_name(paths)}' shows where it is stuck and who waits for it. {advice}"
        yield Check(f"{name} core {core['core']}", level, core["problem"].rstrip("."), advice)


def _offline(paths: BoardPaths, shown: str, *, clean: bool) -> Check:
    """Check a board without a daemon; ``clean`` removes its files."""
    name = f"board {paths.name}"
    is_private = is_private_name(paths.name)
    left = [path.name for path in (*leftovers(paths), *([paths.log] if is_private else [])) if path.exists()]
    if not left:
        return Check(name, Level.OK, f"offline; {shown}")
    if not clean:
        found = f"its daemon died and left {', '.join(left)}; {shown}"
        return Check(name, Level.WARN, found, "Run 'hbrt doctor --clean' to remove them.")
    try:
        removed = remove_stopped(paths, keep_log=not is_private)
    except BoardError as error:
        return Check(name, Level.OK, f"was started meanwhile: {error}")
    return Check(name, Level.OK, f"removed {', '.join(removed)}")


def remote_board() -> Iterator[Check]:
    """Check the boards on other machines that HBRT_BOARD and HBRT_ROUTE name, if any."""
    try:
        board = board_ref()
    except WrongUseError as error:
        yield Check("HBRT_BOARD", Level.FAIL, str(error))
        return
    if isinstance(board, RemoteBoard):
        yield _answering("HBRT_BOARD", board)
    try:
        routes = parse_routing(settings.text("HBRT_ROUTE")).routes
    except settings.BadSettingError as error:
        yield Check("HBRT_ROUTE", Level.FAIL, str(error))
        return
    for there in dict.fromkeys(route.board for route in routes):
        yield _answering("HBRT_ROUTE", there)


def _answering(setting: str, board: RemoteBoard) -> Check:
    """Whether the relay or farm at an address answers, and whether the keys that it requires exist."""
    from hbrt.remote.keys import KeysError, default_directory, program_keys
    from hbrt.remote.probe import mechanism

    try:
        has_keys = mechanism(board) == "CURVE"
        if has_keys:
            program_keys(default_directory())
    except (RequestRefusedError, KeysError) as error:
        return Check(setting, Level.FAIL, f"{board.name} cannot be used: {str(error).rstrip('.')}")
    how = f"with keys (there are some in {default_directory()})" if has_keys else "without keys"
    kind, verb = (
        ("farm", "hbrt farm status' lists its boards") if board.is_leased else ("relay", "hbrt status' shows its board")
    )
    return Check(setting, Level.OK, f"a {kind} answers at {board.name}, {how}; '{verb}")
