"""``hbrt trace``: a timeline of what a board does, for Perfetto's UI."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths, BoardRef
from hbrt.cli.options import any_board_option, board_option, port_option
from hbrt.cli.report import Report, reports
from hbrt.control.ask import ask
from hbrt.errors import WrongUseError
from hbrt.findings.text import counted
from hbrt.settings import format_size
from hbrt.trace.ring import SUFFIX
from hbrt.trace.save import check_name, save as save_trace
from hbrt.trace.timeline import Written

_CORES_SECONDS = 2.0


@click.group(epilog="Example: hbrt trace save board.pftrace")
def command() -> None:
    """Trace a board; show the timeline, or save it for https://ui.perfetto.dev or Perfetto's trace processor.

    A trace shows programs by thread, the ops, copies, waits and TCM of each core, waiting tasks, models, and findings.
    Without tracing, a board still keeps its newest tasks, which can be shown and saved too.
    """


@command.command(short_help="Start tracing a board.", epilog="Example: hbrt trace on --events 1000000")
@board_option
@click.option(
    "--events",
    type=click.IntRange(1024, 1 << 28),
    help="How many events each process keeps, and how many tasks each core; the newest. Default: 131072.",
)
@reports
def on(board: BoardPaths, events: int | None) -> Report:
    """Start to trace a board, and drop the earlier trace.

    A program that is already running joins at its next allocation, or the next time it sleeps in a wait.
    """
    answer: dict[str, Any] = ask(board, "trace", do="on", events=events or 0)
    if not answer["was_on"]:
        _await_cores(board, Path(answer["directory"]))
    return Report(
        {"board": board.name, "was_on": answer["was_on"], "directory": answer["directory"]},
        f"Board {board.name} is already being traced; nothing changed."
        if answer["was_on"]
        else f"Tracing board {board.name}. To see the trace: hbrt trace open, or hbrt trace save FILE.pftrace",
    )


@command.command(short_help="Stop tracing a board.", epilog="Example: hbrt trace off")
@board_option
@reports
def off(board: BoardPaths) -> Report:
    """Stop tracing a board. The trace is kept until the next one starts or the board stops."""
    answer: dict[str, Any] = ask(board, "trace", do="off", events=0)
    text, disk_bytes = f"Board {board.name} was not being traced.", 0
    if answer["was_on"]:
        disk_bytes = sum(file.stat().st_blocks * 512 for file in Path(answer["directory"]).iterdir())
        text = (
            f"Stopped tracing board {board.name}. Its files take {format_size(disk_bytes)} until the next trace "
            "starts or the board stops."
        )
    return Report({"board": board.name, "was_on": answer["was_on"], "disk_bytes": disk_bytes}, text)


@command.command(short_help="Write the timeline to a file.", epilog="Example: hbrt trace save board.pftrace")
@any_board_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--from",
    "directory",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Save the trace in this directory (see HBRT_TRACE) instead of a board's.",
)
@reports
def save(board: BoardRef, file: Path, directory: Path | None) -> Report:
    """Write a board's trace to FILE; this also works while tracing continues and after the board was killed.

    The suffix of FILE selects the format: .pftrace or .perfetto-trace for Perfetto's own, .json for Chrome's. Without
    'hbrt trace on', the file has the board's newest tasks. A trace on another machine's board is downloaded.
    """
    check_name(file)
    if directory is None and not isinstance(board, BoardPaths):
        from hbrt.remote.observer import Observer  # ZeroMQ and keys: needed only for boards on other machines

        with TemporaryDirectory(prefix="hbrt-trace-") as fetched, Observer(board) as observer:
            found = observer.fetch_trace(Path(fetched))
            written = save_trace(Path(fetched), file)
        note = f"Board {board.name} is not being traced; run 'hbrt trace on' on its machine to get more than tasks."
        return _saved(file, written, *([] if found.is_on else [note]))
    if directory is None and isinstance(board, BoardPaths):
        directory = board.trace
        if daemon_pid(board) is not None or not any(directory.glob(f"*{SUFFIX}")):
            directory = Path(ask(board, "trace", do="flush", events=0)["directory"])
    assert directory is not None  # noqa: S101 - one of the two branches
    return _saved(file, save_trace(directory, file))


@command.command("open", short_help="Show the timeline in a browser.", epilog="Example: hbrt trace open run.json")
@any_board_option
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@port_option
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def open_(board: BoardRef, file: Path | None, port: int, *, no_browser: bool) -> None:
    """Show a board's timeline, or FILE's (.json), in a local viewer until Ctrl-C. It needs no network.

    The viewer is a web page on loopback with tracks for programs, cores and counters; it zooms and pans.
    """
    if file is not None and file.suffix != ".json":
        raise WrongUseError(f"The viewer reads .json files, not {file.name}; https://ui.perfetto.dev reads .pftrace.")
    from dsp_server.commands.web.command import serve  # the other verbs need no web server
    from dsp_server.commands.web.view import View

    view = View(board)
    read = view.trace if file is None else file.read_bytes
    try:
        read()  # fail right away if the board is not running
        answers = {"/trace.json": ("application/json", read)}
        serve(answers, port, "The trace", "viewer.html", opens=not no_browser)
    finally:
        view.close()


def _saved(file: Path, written: Written, *notes: str) -> Report:
    lost = f" {counted(written.lost, 'older event')} were dropped because the rings were full." if written.lost else ""
    text = f"Wrote {file}: {counted(written.tasks, 'task')}, {counted(written.events, 'event')}.{lost}"
    return Report({"file": str(file), **written._asdict()}, text, *notes)


def _await_cores(board: BoardPaths, directory: Path) -> None:
    """Wait until the running cores have joined the trace: each checks for it between two ops."""
    deadline = time.monotonic() + _CORES_SECONDS
    running = [core for core in ask(board, "status")["cores"] if core["state"] == "running"]
    while time.monotonic() < deadline:
        if len(list(directory.glob(f"*-core-*{SUFFIX}"))) >= len(running):
            return
        time.sleep(0.01)
