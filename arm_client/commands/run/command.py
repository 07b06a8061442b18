"""``hbrt run``: the sample programs of a group on a board, with the result of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from arm_client.commands.run.board import INLINE, MODES, board_to_trace, mode_of, running_board, running_here
from arm_client.commands.run.defects import GROUP, all_defects, judge, kinds_of, watching
from arm_client.commands.run.files import default_output, file_option, options_of, prepare_output
from arm_client.commands.run.forks import Forks
from arm_client.commands.run.pictures import contact_sheet, extras_of, missing_for, need, take_pictures
from arm_client.commands.run.program import RunCommand, is_program, run_program
from arm_client.commands.run.record import compare_routes, record_into, recorded, route_by, run_by_seed
from arm_client.commands.run.samples import LOADED, Outcome, chosen, groups, run_sample, samples_of, summary_of
from arm_client.commands.run.traced import traced_run
from hbrt.board.paths import BoardPaths
from hbrt.cli.exits import Exit
from hbrt.cli.options import any_board_option, check_option, dma_order_option, option_given, timeout_option, was_given
from hbrt.cli.progress import progress
from hbrt.cli.report import Report, is_json, reports
from hbrt.cli.tables import Column, Table, in_unit, number, show_text
from hbrt.status import name_of

SAMPLE_SECONDS = 60.0
# The first Hexagon code of a machine compiles the C library, too; quality recognizes 5000 words three times.
LONG_SECONDS = {"hexagon": 600.0, "quality": 600.0}
_OF_SAMPLES = ("output", "picture", "points", "recording", "model")
_CORES = {0: "any", 1: "0", 2: "1"}


def _if_known(key: str, text: Callable[[Any], object]) -> Callable[[dict[str, Any]], object]:
    """The text of a field of a sample's result; None if the field has no value."""
    return lambda result: None if (value := result[key]) is None else text(value)


def _us(time_us: float) -> str:
    return in_unit(time_us * 1000, "µs")


_COLUMNS = (
    Column("OP"),
    number("COMMAND", _if_known("command", "{:#x}".format)),
    Column("CORE", _if_known("core", lambda core: _CORES.get(core, str(core)))),
    Column("STATUS", _if_known("status", lambda status: name_of(status) if status else "0")),
    number("LARGEST ERROR", _if_known("max_error", "{:.2g}".format)),
    number("HOST TIME", _if_known("host_time_us", _us)),
    number("MODELED", _if_known("modeled_us", _us)),
    Column("RESULT", lambda result: "ok" if result["passed"] else "FAILED"),
)
_DEFECTS = (
    Column("DEFECT", lambda one: one.defect.name),
    Column(
        "NAMED AS",
        lambda one: (", ".join(kinds_of(one.defect)) or "the task's text") if all(one.sentences) else None,
    ),
    Column("CORRECTED", lambda one: "findings" if one.twin else "clean"),
    Column("RESULT", lambda one: "ok" if one.is_good else "FAILED"),
)


def _complete_group(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = [CompletionItem(name) for name in (*groups(), GROUP) if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def _complete_sample(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    group = ctx.params.get("group")
    known = all_defects() if group == GROUP else samples_of(group) if group in groups() else []
    return [name for name in known if name.startswith(incomplete)]


@click.command(
    cls=RunCommand,
    epilog="Example: hbrt run nn softmax --mode direct\n\nUnder checks: hbrt run --check memory,dma my_program.py 3",
)
@click.argument("group", metavar="[GROUP | PROGRAM]", required=False, shell_complete=_complete_group)
@click.argument("names", metavar="[help | NAME... | ARGUMENT...]", nargs=-1, shell_complete=_complete_sample)
@any_board_option
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write results.json, each sample's output, and pictures to this directory. Default: output/ if a "
    "sample writes a file.",
)
@file_option("--input", "-i", "picture", help="Picture for the samples that take one; any file that OpenCV reads.")
@file_option(
    "--points",
    help="Point cloud for the named sample: float32 records, 5 numbers for centerpoint, 4 for pointpillars.",
)
@file_option("--wav", "recording", help="Recording of digits for the asr sample words: 8000 Hz, 16 bits, one channel.")
@file_option("--model", help="ONNX model for the dnn samples that take one, with its description next to it.")
@file_option(
    "--image",
    help="DSP image of a program's private board, as in HBRT_IMAGE.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="How tasks reach the cores. Default: HB_DSP_RPC_MODE, or relay, as in the vendor's scripts.",
)
@click.option(
    "--record",
    metavar="DIR",
    type=click.Path(path_type=Path),
    callback=record_into,
    expose_value=False,
    help="Record every call of a program into this directory, for 'hbrt replay'.",
)
@click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a timeline of the run: .pftrace is Perfetto's own format, .json Chrome's.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    callback=run_by_seed,
    expose_value=False,
    help="Run a program in one repeatable order, as 'hbrt explore' does; 0 is the order without preemption.",
)
@click.option(
    "--route",
    metavar="COMMAND[-LAST]=ADDRESS",
    multiple=True,
    callback=route_by,
    expose_value=False,
    help="Have the board at ADDRESS (tcp:// or farm://) run these commands, as in HBRT_ROUTE; may be repeated.",
)
@click.option(
    "--compare",
    is_flag=True,
    callback=compare_routes,
    expose_value=False,
    help="Run each task of --route on both boards; a difference is a finding, and exit code 1.",
)
@check_option
@dma_order_option
@timeout_option(SAMPLE_SECONDS)
@reports
def command(
    group: str | None,
    names: tuple[str, ...],
    board: BoardPaths,
    output: Path | None,
    picture: Path | None,
    points: Path | None,
    recording: Path | None,
    model: Path | None,
    image: Path | None,
    mode: str | None,
    trace: Path | None,
    timeout: float,
) -> Report:
    """Run the samples of GROUP (such as 'nn'), all or only the named ones; 'hbrt run nn help' lists them.

    They run on the running board, or on a private one when none runs; their tasks go through the board's relay unless
    --mode or HB_DSP_RPC_MODE says direct. Each result is compared with a reference; the exit code is 1 when one failed.
    'nn' runs a model too, if the extra 'dnn' is installed. --timeout applies to each.

    PROGRAM is your Python file or executable; its arguments follow it. The exit code is the program's own, or 1 if a
    mistake was found in it. If no board is running, it gets a private one with the DSP image --image. With --json the
    findings are the document, and the program's standard output goes to standard error.
    """
    was_named = was_given("board")
    if group is None or group == "help":
        raise click.UsageError(f"Name a program, or a group of samples; there are {', '.join([*groups(), GROUP])}.")
    if group == GROUP:
        why = f"has no effect: {GROUP} have their own board, with all checks"
        _refuse_options((*_OF_SAMPLES, "image", "board", "check", "mode"), why)
        with recorded() as run, traced_run(trace, None):
            report = _run_defects(names, timeout)
        report.code = run.exit_code(report.code)
        return report
    if group not in groups() and is_program(group):
        _refuse_options((*_OF_SAMPLES, "timeout"), "is for samples: your own program does not take it")
        if image is not None and running_here(board) is not None:
            why = (
                f"has no effect: board {board.name} is running with its own image. Load yours with `hbrt "
                f"restart --image FILE`, or give a different --board"
            )
            _refuse_options(("image",), why)
        return run_program(group, names, board if was_named else None, mode, image, trace=trace)
    _refuse_options(("image",), "is for programs: the packaged image has the ops of the samples")
    named = tuple(name for name in names if name != "help")
    samples = chosen(group, named)
    if "help" in names:
        listed = [{"sample": name, "file": str(file), "about": summary_of(file)} for name, file in samples.items()]
        return Report(listed, Table((Column("SAMPLE"), Column("ABOUT")), listed))
    files = {
        "points_file": points,
        "input_file": picture,
        "wav_file": recording,
        "model_file": model,
    }
    with recorded() as run, traced_run(trace, board_to_trace(board)):
        report = _run_samples(
            group, samples, board, output, files, mode, timeout, were_named=bool(named), must_run=was_named
        )
    report.code = run.exit_code(report.code)
    return report


def _refuse_options(names: tuple[str, ...], why: str) -> None:
    """Refuse options that would have no effect.

    Args:
        names: Of the options.
        why: The rest of the message, after the option's name.

    Raises:
        click.UsageError: one was given.
    """
    if option := option_given(*names):
        raise click.UsageError(f"{option} {why}.")


def _run_samples(
    group: str,
    samples: dict[str, Path],
    board: BoardPaths,
    output: Path | None,
    files: dict[str, Path | None],
    mode: str | None,
    timeout: float,
    *,
    were_named: bool,
    must_run: bool,
) -> Report:
    """Run samples; returns the result of each.

    Raises:
        OSError: the results cannot be written; they have been shown.
    """
    samples = _installed(samples, were_named=were_named)
    output = output or default_output(samples)
    options = options_of(samples, files, output)
    mode = mode_of(board, mode, group)
    with running_board(board, group, must_run=must_run) as (directory, is_private):
        if output is not None:
            prepare_output(output)
        limits = {} if was_given("timeout") else LONG_SECONDS
        outcomes: list[Outcome] = []
        with Forks(*LOADED) as forks, progress(len(samples), group) as show:
            for name, file in samples.items():
                outcomes.append(run_sample(forks, name, file, directory, limits.get(name, timeout), options, mode))
                show(len(outcomes))
    document: dict[str, Any] = {
        "group": group,
        "board": None if is_private else board.name,
        "mode": mode,
        "passed": all(outcome.has_passed for outcome in outcomes),
        "results": [outcome.document() for outcome in outcomes],
    }
    on = f"{'a private board' if is_private else f'board {board.name}'}, in {mode} mode"
    parts = [*_parts(document["results"], "a board of each sample's own (HBRT_INLINE)" if mode == INLINE else on)]
    failures = [f"{one.name} failed: {one.problem}\n{one.output}".rstrip() for one in outcomes if not one.has_passed]
    report = Report(document, *parts, code=_exit_code(outcomes), warnings=failures)
    if output is not None:
        try:
            where = _keep(output, document, outcomes, files["input_file"], has_sheet=take_pictures(samples))
        except OSError as error:  # the results are shown first
            report.show(as_json=is_json())
            raise error if error.filename else OSError(error.errno, error.strerror, str(output)) from None
        report.parts = (*report.parts, where)
    return report


def _run_defects(names: tuple[str, ...], timeout: float) -> Report:
    """Run the programs with one mistake each: report what detects it, and the checks' result for the corrected twin."""
    known = all_defects()
    if unknown := [name for name in names if name not in known and name != "help"]:
        raise click.UsageError(f"Unknown defect {unknown[0]!r}; known are {', '.join(known)}.")
    if "help" in names:
        listed = [{"defect": one.name, "mistake": one.about} for one in known.values()]
        return Report(listed, Table((Column("DEFECT"), Column("MISTAKE")), listed))
    with watching() as (board, forks):
        verdicts = [judge(known[name], board, forks, timeout) for name in names or known]
    good = [one for one in verdicts if one.is_good]
    failures = []
    for one in verdicts:
        if not one.is_good:
            missed = [named for named, told in zip(one.defect.named, one.sentences, strict=False) if not told]
            why = one.twin or f"nothing detects {', '.join(missed) or 'its mistake'}."
            failures.append(f"{one.defect.name} failed: {why}")
    return Report(
        {"group": GROUP, "passed": not failures, "results": [one.document() for one in verdicts]},
        Table(_DEFECTS, verdicts),
        f"{len(good)} of {len(verdicts)} are named, and their corrected twins clean.",
        code=Exit.FAILED if failures else Exit.GOOD,
        warnings=failures,
    )


def _installed(samples: dict[str, Path], *, were_named: bool) -> dict[str, Path]:
    """The samples whose libraries are installed; the others are listed on stderr.

    Raises:
        PictureError: no other sample is left, or the ones that need them were named.
    """
    lacking = {name: extra for name, file in samples.items() for extra in extras_of(file) if missing_for(extra)}
    others = {name: file for name, file in samples.items() if name not in lacking}
    for extra in dict.fromkeys(lacking.values()):
        if were_named or not others:
            need(extra)
        names = ", ".join(name for name in lacking if lacking[name] == extra)
        show_text(f"Left out: {names}, which needs {', '.join(missing_for(extra))} (hbrt's extra {extra!r}).", err=True)
    return others


def _parts(results: list[dict[str, Any]], where: str) -> Iterator[object]:
    by_command = sorted(results, key=_place_of)
    yield Table(_COLUMNS, by_command)
    told = [lines for result in by_command if (lines := result.get("report"))]
    yield from ("\n".join(["", *lines]) for lines in told)
    if told:
        yield ""
    yield f"{sum(result['passed'] for result in results)} of {len(results)} passed, on {where}."


def _place_of(result: dict[str, Any]) -> tuple[int, str]:
    """Sort key of the table: command, then name; unknown commands come last."""
    command = result["command"]
    return 1 << 16 if command is None else command, result["sample"]


def _keep(
    output: Path, document: dict[str, Any], outcomes: list[Outcome], picture: Path | None, *, has_sheet: bool
) -> str:
    """Write all results to the directory, and the sheet to the document; returns a line with the path.

    Raises:
        OSError: it cannot be written.
    """
    made = [(outcome.name, Path(file)) for outcome in outcomes if (file := outcome.result.get("output_file"))]
    sheet = contact_sheet(output, picture, made) if has_sheet else None
    if sheet is not None:
        document["contact_sheet"] = str(sheet.absolute())
    (output / "results.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for outcome in outcomes:
        (output / f"{outcome.name}.log").write_text(outcome.output, encoding="utf-8")
    return f"All pictures: {sheet}" if sheet else f"Results: {output}"


def _exit_code(outcomes: list[Outcome]) -> Exit:
    failed = [outcome for outcome in outcomes if not outcome.has_passed]
    if not failed:
        return Exit.GOOD
    return Exit.TIME_LIMIT if all(outcome.has_timed_out for outcome in failed) else Exit.FAILED
