"""``hbrt trace``: a timeline of what a board does, for Perfetto's UI."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths, BoardRef
from hbrt.cli.options import any_board_option, board_option
from hbrt.cli.tables import show_text
from hbrt.control.ask import ask
from hbrt.control.observer import Observer
from hbrt.findings.text import counted
from hbrt.trace.ring import SUFFIX
from hbrt.trace.save import check_name, save as save_trace
from hbrt.trace.timeline import Written

_CORES_SECONDS = 2.0


@click.group(short_help="Trace a board, and save the timeline.", epilog="Example: hbrt trace save board.pftrace")
def command() -> None:
    """Trace a board, and save the timeline for https://ui.perfetto.dev, Perfetto's trace processor or chrome://tracing.

    A trace has what each process does: programs by thread, ops, copies, waits and TCM of each core, tasks that wait,
    models, what the daemon finds. Without one, a board keeps its newest tasks, which can be saved as well.
    """


@command.command(short_help="Begin to trace a board.", epilog="Example: hbrt trace on --events 1000000")
@board_option
@click.option(
    "--events",
    type=click.IntRange(1024, 1 << 28),
    help="How many events each process, and how many tasks each core keeps: the newest. Default: HBRT_TRACE_EVENTS.",
)
def on(board: BoardPaths, events: int | None) -> None:
    """Begin to trace a board; what an earlier trace has kept is dropped.

    A program that runs already takes part from its next sleep in a wait, or its next allocation, on.
    """
    answer: dict[str, Any] = ask(board, "trace", do="on", events=events or 0)
    if answer["was_on"]:
        show_text(f"Board {board.name} is traced already; nothing was changed.")
        return
    _await_cores(board, Path(answer["directory"]))
    show_text(f"Board {board.name} is traced. To see it: hbrt trace save FILE.pftrace")


@command.command(short_help="End the trace of a board.", epilog="Example: hbrt trace off")
@board_option
def off(board: BoardPaths) -> None:
    """End the trace of a board; what it has kept stays until the next one begins, or the board ends."""
    was_on = ask(board, "trace", do="off", events=0)["was_on"]
    show_text(f"Board {board.name} is not traced any more." if was_on else f"Board {board.name} was not traced.")


@command.command(short_help="Write the timeline into a file.", epilog="Example: hbrt trace save board.pftrace")
@any_board_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--from",
    "directory",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Save what lies there, as of HBRT_TRACE, instead of what a board keeps.",
)
def save(board: BoardRef, file: Path, directory: Path | None) -> None:
    """Write what the trace of a board has kept into FILE, also while it goes on, and after the board was killed.

    The ending of FILE is its format: .pftrace or .perfetto-trace is Perfetto's own, .json is Chrome's. A board that was
    not traced has its newest tasks. Of a board of another machine the files of the trace are fetched.
    """
    check_name(file)
    if directory is None and not isinstance(board, BoardPaths):
        with TemporaryDirectory(prefix="hbrt-trace-") as fetched, Observer(board) as observer:
            found = observer.fetch_trace(Path(fetched))
            _show(file, save_trace(Path(fetched), file))
        if not found.is_on:
            show_text(f"Board {board.name} is not traced; 'hbrt trace on' on its machine has it keep more than tasks.")
        return
    if directory is None and isinstance(board, BoardPaths):
        directory = board.trace
        if daemon_pid(board) is not None or not any(directory.glob(f"*{SUFFIX}")):
            directory = Path(ask(board, "trace", do="flush", events=0)["directory"])
    assert directory is not None  # noqa: S101 - one of the two branches
    _show(file, save_trace(directory, file))


def _show(file: Path, written: Written) -> None:
    lost = f" {counted(written.lost, 'older one')} had no place any more." if written.lost else ""
    show_text(f"Wrote {file}: {counted(written.tasks, 'task')}, {counted(written.events, 'event')}.{lost}")


def _await_cores(board: BoardPaths, directory: Path) -> None:
    """Wait until the cores that run take part: a core looks between two ops."""
    deadline = time.monotonic() + _CORES_SECONDS
    running = [core for core in ask(board, "status")["cores"] if core["state"] == "running"]
    while time.monotonic() < deadline:
        if len(list(directory.glob(f"*-core-*{SUFFIX}"))) >= len(running):
            return
        time.sleep(0.01)
