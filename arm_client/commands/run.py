"""``hbrt run``: the sample programs of a group, for real, with what came of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from arm_client.commands._pictures import (
    DEFAULT_DIRECTORY,
    contact_sheet,
    is_picture,
    need_models,
    need_opencv,
    take_pictures,
)
from arm_client.commands._run_board import MODES, mode_of, running_board
from arm_client.commands._samples import Outcome, arguments_of, chosen, groups, run_sample, summary_of
from hbrt.board import BoardPaths
from hbrt.cli_options import any_board_option, json_option, timeout_option
from hbrt.exits import Exit
from hbrt.status import name_of
from hbrt.tables import Column, show_json, show_table

SAMPLE_SECONDS = 60.0
_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")
_COLUMNS = (
    Column("OP"),
    Column("COMMAND", is_number=True),
    Column("CORE"),
    Column("STATUS"),
    Column("LARGEST ERROR", is_number=True),
    Column("HOST TIME", is_number=True),
    Column("RESULT"),
)
_FILES = {
    "points_file": ("--points", "point-cloud"),
    "input_file": ("--input", "picture"),
    "model_file": ("--model", "model"),
    "image_file": ("--image", "model"),
}
_CORES = {0: "any", 1: "0", 2: "1"}


def _file_option(*names: str, help: str) -> Callable[[_Command], _Command]:
    """An option that names a file which is there."""
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option(*names, metavar="FILE", type=kind, help=help)


@click.command(short_help="Run the sample programs of a group and compare their results.")
@click.argument("group", required=False)
@click.argument("names", metavar="[help | NAME...]", nargs=-1)
@any_board_option
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write results.json, what each sample printed, and pictures into this directory. Default: output/ when one of "
    "the samples makes a file.",
)
@_file_option("--input", "-i", "picture", help="Picture for the samples that take one; any file that OpenCV reads.")
@_file_option(
    "--points",
    help="Point cloud for the samples that take one: float32 records, 5 numbers for centerpoint, 4 for pointpillars.",
)
@_file_option("--model", help="ONNX model for the dnn samples that take one, with its description beside it.")
@_file_option("--image", help="Picture for the model; any file that OpenCV reads.")
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
    model: Path | None,
    image: Path | None,
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
    if group == "dnn":
        need_models()
    if output is None and any("output_dir" in arguments_of(sample) for sample in samples.values()):
        output = DEFAULT_DIRECTORY
    files = {"points_file": points, "input_file": picture, "model_file": model, "image_file": image}
    options = _options(samples, files, output)
    mode = mode_of(board, mode)
    was_named = ctx.get_parameter_source("board") is not click.core.ParameterSource.DEFAULT
    with running_board(board, must_run=was_named) as (directory, is_private):
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
    sheet = None
    if output is not None:
        made = [(outcome.name, Path(file)) for outcome in outcomes if (file := outcome.result.get("output_file"))]
        sheet = contact_sheet(output, picture, made) if take_pictures(samples) else None
        document |= {"contact_sheet": str(sheet.absolute())} if sheet else {}
        _write(output, document, outcomes)
    if as_json:
        show_json(document)
    else:
        _show(outcomes, f"{'a private board' if is_private else f'board {board.name}'}, in {mode} mode")
        if output is not None:
            click.echo(f"All pictures: {sheet}" if sheet else f"Results: {output}")
    ctx.exit(_exit_code(outcomes))


def _options(samples: dict[str, Path], files: dict[str, Path | None], output: Path | None) -> dict[str, str]:
    """What the samples get as arguments of their ``run()``, as far as they take it.

    Raises:
        click.UsageError: a point cloud or a picture, and no sample that takes one; a picture that is none.
        PictureError: OpenCV is not installed.
    """
    options = {} if output is None else {"output_dir": str(output.absolute())}
    for argument, file in files.items():
        if file is None:
            continue
        if not any(argument in arguments_of(sample) for sample in samples.values()):
            option, kind = _FILES[argument]
            raise click.UsageError(f"{option} {file} is for {kind} samples; {', '.join(samples)} takes none.")
        options[argument] = str(file.absolute())
    if take_pictures(samples):
        need_opencv()
        if (picture := files["input_file"]) is not None and not is_picture(picture):
            raise click.UsageError(f"--input {picture} is not a picture that OpenCV can read.")
    return options


def _with_progress(samples: dict[str, Path], group: str, *, is_shown: bool) -> Iterable[tuple[str, Path]]:
    """The samples, with a bar on the terminal while they run."""
    if not is_shown or not sys.stderr.isatty():
        return samples.items()
    from rich.console import Console
    from rich.progress import track

    return track(samples.items(), group, total=len(samples), console=Console(stderr=True), transient=True)


def _list(samples: dict[str, Path], *, as_json: bool) -> None:
    if as_json:
        show_json([{"sample": name, "file": str(file), "about": summary_of(file)} for name, file in samples.items()])
    else:
        show_table((Column("SAMPLE"), Column("ABOUT")), [(name, summary_of(file)) for name, file in samples.items()])


def _show(outcomes: list[Outcome], where: str) -> None:
    by_command = sorted(outcomes, key=lambda outcome: (outcome.result.get("command", 1 << 16), outcome.name))
    show_table(_COLUMNS, [_row(outcome) for outcome in by_command])
    for outcome in by_command:
        if lines := outcome.result.get("report"):
            click.echo("\n".join(["", *lines]))
    if any(outcome.result.get("report") for outcome in outcomes):
        click.echo()
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
