"""``hbrt run``: the sample programs of a group, for real, with what came of each."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from arm_client.commands._pictures import (
    DEFAULT_DIRECTORY,
    contact_sheet,
    need_opencv,
    take_pictures,
)
from arm_client.commands._samples import Outcome, arguments_of, chosen, groups, run_sample, summary_of
from hbrt import settings
from hbrt.board import BoardError, BoardPaths, NotRunningError, RemoteBoard
from hbrt.board_files import daemon_pid, lock_holder
from hbrt.cli_options import any_board_option, json_option, timeout_option
from hbrt.exits import Exit
from hbrt.status import name_of
from hbrt.tables import Column, show_json, show_table

SAMPLE_SECONDS = 60.0
RELAY_SECONDS = 5.0
MODES = ("relay", "direct")
_MODE_SAYS = {"relay": "in relay mode", "direct": "in direct mode"}
_COLUMNS = (
    Column("OP"),
    Column("COMMAND", is_number=True),
    Column("CORE"),
    Column("STATUS"),
    Column("LARGEST ERROR", is_number=True),
    Column("HOST TIME", is_number=True),
    Column("RESULT"),
)
_FILES = {"points_file": ("--points", "point-cloud"), "input_file": ("--input", "picture")}
_CORES = {0: "any", 1: "0", 2: "1"}


@click.command(short_help="Run the sample programs of a group and compare their results.")
@click.argument("group", required=False)
@click.argument("names", metavar="[help | NAME...]", nargs=-1)
@any_board_option
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write results.json, what each sample printed, and pictures into this directory; cv samples take output/.",
)
@click.option(
    "--input",
    "-i",
    "picture",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Picture for the samples that take one; any file that OpenCV reads.",
)
@click.option(
    "--points",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Point cloud for the samples that take one: float32 records, 5 numbers for centerpoint, 4 for pointpillars.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="How their tasks go to the cores. Default: HB_DSP_RPC_MODE, else relay, as the vendor's scripts do.",
)
@timeout_option(SAMPLE_SECONDS)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    group: str | None,
    names: tuple[str, ...],
    board: BoardPaths,
    output: Path | None,
    picture: Path | None,
    points: Path | None,
    mode: str | None,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    """Run the samples of GROUP (such as 'nn'), all or those named; 'hbrt run nn help' lists them.

    They run on the running board, or on a private one when none runs; their tasks go by the board's relay unless --mode
    or HB_DSP_RPC_MODE says direct. Each compares its results with a reference; the exit code is 1 when one failed.
    --timeout is for each.
    """
    if group is None or group == "help":
        raise click.UsageError(f"Name a group of samples; there are {', '.join(groups())}.")
    wants_help = "help" in names
    samples = chosen(group, tuple(name for name in names if name != "help"))
    if wants_help:
        _list(samples, as_json=as_json)
        return
    if has_pictures := take_pictures(samples):
        need_opencv()
        output = output or DEFAULT_DIRECTORY
    options = _options(samples, {"points_file": points, "input_file": picture}, output)
    mode = _mode(board, mode)
    was_named = ctx.get_parameter_source("board") is not click.core.ParameterSource.DEFAULT
    with _running_board(board, must_run=was_named) as (directory, is_private):
        outcomes = [
            run_sample(name, file, directory, timeout, options, mode)
            for name, file in _with_progress(samples, group, is_shown=not as_json)
        ]
    document: dict[str, Any] = {
        "group": group,
        "board": None if is_private else board.name,
        "mode": mode,
        "passed": all(outcome.has_passed for outcome in outcomes),
        "results": [outcome.document() for outcome in outcomes],
    }
    if output is not None:
        made = [(outcome.name, Path(file)) for outcome in outcomes if (file := outcome.result.get("output_file"))]
        sheet = contact_sheet(output, picture, made) if has_pictures else None
        if sheet is not None:
            document["contact_sheet"] = str(sheet)
        _write(output, document, outcomes)
    if as_json:
        show_json(document)
    else:
        _show(outcomes, f"{'a private board' if is_private else f'board {board.name}'}, {_MODE_SAYS[mode]}")
        if "contact_sheet" in document:
            click.echo(f"All pictures: {document['contact_sheet']}")
    ctx.exit(_exit_code(outcomes))


def _options(samples: dict[str, Path], files: dict[str, Path | None], output: Path | None) -> dict[str, str]:
    """What the samples get as arguments of their ``run()``, as far as they take it.

    Raises:
        click.UsageError: a point cloud or a picture, and no sample that takes one.
    """
    options = {} if output is None else {"output_dir": str(output.absolute())}
    for argument, file in files.items():
        if file is None:
            continue
        if not any(argument in arguments_of(sample) for sample in samples.values()):
            option, kind = _FILES[argument]
            raise click.UsageError(f"{option} {file} is for {kind} samples; {', '.join(samples)} takes none.")
        options[argument] = str(file.absolute())
    return options


def _with_progress(samples: dict[str, Path], group: str, *, is_shown: bool) -> Iterable[tuple[str, Path]]:
    """The samples, with a bar on the terminal while they run."""
    if not is_shown or not sys.stderr.isatty():
        return samples.items()
    from rich.console import Console
    from rich.progress import track

    return track(samples.items(), group, total=len(samples), console=Console(stderr=True), transient=True)


@contextmanager
def _running_board(board: BoardPaths, *, must_run: bool) -> Iterator[tuple[str, bool]]:
    """Directory of a board that runs meanwhile, and whether it is a private one."""
    if isinstance(board, RemoteBoard) or daemon_pid(board) is not None:
        yield str(board.path), False
        return
    if must_run:
        from hbrt.control_client import why_not_running

        raise NotRunningError(why_not_running(board))
    import secrets

    from hbrt.board import home
    from hbrt.launch import DaemonConfig, launch

    directory = home() / f"private-{os.getpid()}-{secrets.token_hex(4)}"
    image = settings.text("HBRT_IMAGE")
    config = DaemonConfig(
        directory=str(directory),
        image=str(Path(image).absolute()) if image else None,
        cores=settings.integer("HBRT_CORES"),
        ddr_bytes=settings.size_bytes("HBRT_DDR"),
        is_private=True,
    )
    daemon = launch(config)
    try:
        yield str(directory), True
    finally:
        relay = _relay_of(BoardPaths(directory))
        os.close(daemon.lifeline)
        os.waitpid(daemon.pid, 0)
        if relay is not None:  # it ends with its board, a little later
            select.select([relay], [], [], RELAY_SECONDS)
            os.close(relay)


def _relay_of(board: BoardPaths) -> int | None:
    """A descriptor that is readable once the board's relay has ended; None when there is none."""
    try:
        pid = lock_holder(board.relay_lock)
        return None if pid is None else os.pidfd_open(pid)
    except (BoardError, ProcessLookupError):
        return None


def _mode(board: BoardPaths | RemoteBoard, asked: str | None) -> str:
    """Relay, unless the user said otherwise, here or by the settings; a board of another machine has no other way."""
    if isinstance(board, RemoteBoard):
        return "relay"
    if asked is None and any(os.environ.get(name) for name in ("HB_DSP_RPC_MODE", "HB_UCP_ENABLE_RELAY_MODE")):
        return "relay" if settings.is_relayed() else "direct"
    return asked or "relay"


def _list(samples: dict[str, Path], *, as_json: bool) -> None:
    if as_json:
        show_json([{"sample": name, "file": str(file), "about": summary_of(file)} for name, file in samples.items()])
    else:
        show_table((Column("SAMPLE"), Column("ABOUT")), [(name, summary_of(file)) for name, file in samples.items()])


def _show(outcomes: list[Outcome], where: str) -> None:
    by_command = sorted(outcomes, key=lambda outcome: (outcome.result.get("command", 1 << 16), outcome.name))
    show_table(_COLUMNS, [_row(outcome) for outcome in by_command])
    for outcome in outcomes:
        if not outcome.has_passed:
            click.echo(f"{outcome.name} failed: {outcome.problem}\n{outcome.output}".rstrip(), err=True)
    good = sum(outcome.has_passed for outcome in outcomes)
    click.echo(f"{good} of {len(outcomes)} passed, on {where}.")


def _row(outcome: Outcome) -> tuple[object, ...]:
    result: dict[str, Any] = outcome.result
    if not result:
        return outcome.name, "-", "-", "-", "-", "-", "FAILED"
    return (
        result.get("op", outcome.name),
        f"{result['command']:#x}" if "command" in result else "-",
        _CORES.get(result.get("core", -1), str(result.get("core", "-"))),
        name_of(result["status"]) if result.get("status") else str(result.get("status", "-")),
        f"{result['max_error']:.2g}" if "max_error" in result else "-",
        f"{result['host_time_us']:.0f} us" if "host_time_us" in result else "-",
        "ok" if outcome.has_passed else "FAILED",
    )


def _write(directory: Path, document: dict[str, Any], outcomes: list[Outcome]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for outcome in outcomes:
        (directory / f"{outcome.name}.log").write_text(outcome.output, encoding="utf-8")


def _exit_code(outcomes: list[Outcome]) -> Exit:
    failed = [outcome for outcome in outcomes if not outcome.has_passed]
    if not failed:
        return Exit.GOOD
    return Exit.TIME_LIMIT if all(outcome.has_timed_out for outcome in failed) else Exit.FAILED
