"""``hbrt rm`` and ``hbrt prune``: remove what stopped boards have left, their logs as well."""

from __future__ import annotations

import os

import click

from hbrt.board.files import boards_in, daemon_pid, remove_files, take_lock
from hbrt.board.paths import BoardPaths, home
from hbrt.cli.options import json_option, to_paths
from hbrt.cli.tables import show_json, show_text
from hbrt.control.daemon import why_not_running
from hbrt.errors import BoardBusyError, BoardError, NotRunningError


@click.command(
    short_help="Remove what a stopped board has left: its log and its directory.", epilog="Example: hbrt rm default"
)
@click.argument("board", callback=to_paths)
@json_option
def command(board: BoardPaths, *, as_json: bool) -> None:
    """Remove the files of the stopped board BOARD: a name, or a directory with a slash.

    A running board is refused: stop it first with 'hbrt stop'.
    """
    if not _is_board(board):
        raise NotRunningError(why_not_running(board))
    removed = _remove(board)
    if as_json:
        show_json({"board": board.name, "directory": str(board.path), "removed": removed})
    else:
        show_text(f"Removed board {board.name}: {', '.join(removed)}.")


@click.command(short_help="Remove what all stopped boards of this user have left.", epilog="Example: hbrt prune")
@json_option
def prune(*, as_json: bool) -> None:
    """Remove the files of all stopped boards in the home of the boards, their logs as well. Running boards stay."""
    place = home()
    removed, kept = [], []
    for board in boards_in(place):
        try:
            if _is_board(board) and daemon_pid(board) is None:
                _remove(board)
                removed.append(board.name)
        except BoardBusyError:
            continue  # it has just started
        except BoardError as error:
            kept.append({"board": board.name, "problem": str(error)})
    if as_json:
        show_json({"home": str(place), "removed": removed, "kept": kept})
        return
    show_text(f"Removed {', '.join(removed)}." if removed else f"No stopped board in {place}.")
    for one in kept:
        show_text(f"Board {one['board']}: {one['problem']}", err=True)


def _is_board(board: BoardPaths) -> bool:
    """Whether a directory is a board's, and not one of the user's that lies beside them."""
    return os.path.lexists(board.log) or os.path.lexists(board.lock)


def _remove(board: BoardPaths) -> list[str]:
    """Remove a board's files; returns their names.

    Raises:
        BoardBusyError: it runs. BoardError: it is not this user's alone.
    """
    daemon_pid(board)  # refuses a directory that is not ours alone
    fd = take_lock(board)
    try:
        return sorted(path.name for path in remove_files(board, keep_log=False))
    finally:
        os.close(fd)
