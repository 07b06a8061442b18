"""``hbrt estimate``: the time of a program or a command on the board."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from arm_client.commands.estimate.what_if import WHAT_IF, changes
from arm_client.commands.op.bench_command import CALL_SECONDS, how_called, of_an_op
from arm_client.commands.which_board import private_image, say_private
from hbrt.board.paths import BoardRef
from hbrt.cli.options import allow_option, any_board_option, command_argument, complete_command, image_option
from hbrt.cli.report import Report, is_json, reports
from hbrt.cli.tables import Column, Table, number, show_text
from hbrt.lazy import how_to_install
from hbrt.profiles.profile import MEASURED, Constant, Profile, active, find
from hbrt.settings import BadSettingError, rounded

if TYPE_CHECKING:
    from arm_client.commands.estimate.calls import Known

PUBLISHED: Final = "j5"
"""The board whose DSP has published times: with another one's profile, a check of them would say nothing."""
AT_END: Final = 0.02
"""As near to the end of its range, as a share, a constant of a fit would go further."""


class _Estimate(click.Group):
    """Subcommands by name; any other first word is a program or a command number."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click does; any other name is of a program."""
        return super().get_command(ctx, cmd_name) or self.commands["of"]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Like click, and command numbers and files."""
        items = [*super().shell_complete(ctx, incomplete), *complete_command(ctx, self.params[0], incomplete)]
        return [*items, CompletionItem(incomplete, type="file")]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click, but passes anything other than a subcommand to ``of``."""
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return super().resolve_command(ctx, ["of", *args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the group's own options, those of ``of``, which has no help of its own, and subcommands."""
        with click.Context(self.commands["of"], parent=ctx) as inner:
            options = [one for one in inner.command.params if isinstance(one, click.Option)]
            rows = [row for one in options if (row := one.get_help_record(inner))]
        with formatter.section("Options of a PROGRAM, a CMD or a MODEL.onnx"):
            formatter.write_dl(rows)
        super().format_options(ctx, formatter)


def _profile(_ctx: click.Context, param: click.Parameter, value: str | None) -> Profile | None:
    if value is None:
        return None
    try:
        return find(value)
    except BadSettingError as error:
        raise click.BadParameter(str(error).replace("HBRT_PROFILE", "it", 1), param=param) from None


def _names(_ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    names = [one.strip() for one in value.split(",") if one.strip()]
    if not names:
        raise click.BadParameter(f"{value!r} names no board; write names with commas between them.", param=param)
    return names


def _former(_ctx: click.Context, param: click.Parameter, value: Path | None) -> dict[str, Any] | None:
    if value is None:
        return None
    from arm_client.commands.estimate.against import BadEstimateError, read

    try:
        return read(value)
    except BadEstimateError as error:
        raise click.BadParameter(str(error), param=param) from None


def _what_if(_ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, float]:
    try:
        return changes(value)
    except BadSettingError as error:
        raise click.BadParameter(str(error), param=param) from None


@click.group(
    cls=_Estimate,
    epilog="Example: hbrt estimate my_program.py --what-if clock=800,rpc_us=100\n\nHow it meets published figures: "
    "hbrt estimate --self-check",
    invoke_without_command=True,
    subcommand_metavar="{PROGRAM|CMD|MODEL.onnx|COMMAND} [ARGUMENT]...",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--self-check", "is_self_check", is_flag=True, help="Show published figures next to the model's.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --self-check: draw modeled against published times (PNG). Needs the extra 'estimate'.",
)
@reports
@click.pass_context
def command(ctx: click.Context, plot: Path | None, *, is_self_check: bool) -> Report | None:
    """Estimate the time on the board of PROGRAM's calls, or of the calls of command CMD that a running board remembers.

    A MODEL.onnx is estimated layer by layer, for the NPUs and BPUs with published figures.

    All times are modeled for the board, by the profile's constants; none is measured here. Each has a range, from the
    assumed constants at their best to all at their worst.
    """
    if ctx.invoked_subcommand is not None:
        return None
    if not is_self_check:
        raise click.UsageError("Name a program or a command number, or use --self-check.")
    from arm_client.commands.estimate.self_check import self_check

    used = active()
    try:
        return self_check(used if used.chip == PUBLISHED else find(PUBLISHED), plot)
    except ImportError as error:
        raise click.UsageError(f"A plot needs matplotlib ({error}); {how_to_install('estimate')}.") from None


_constants = click.option(
    "--profile", metavar="FILE", callback=_profile, help="Constants. Default: HBRT_PROFILE, or j5."
)


@command.command(
    "of",
    hidden=True,
    epilog="Example: hbrt estimate of 0x400 --what-if rpc_us=100",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": True},
)
@click.argument("what", metavar="PROGRAM|CMD|MODEL.onnx")
@click.argument("arguments", metavar="[ARGUMENT]...", nargs=-1)
@any_board_option
@image_option(help="Image of the program's board. Default: the running board's, or HBRT_IMAGE.")
@_constants
@click.option(
    "--what-if",
    "changed",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=_what_if,
    help="Other constants: clock (MHz), cores, tile (bytes of a bank that ops may use), rpc_us, relay_us, or a key of "
    "the profile.",
)
@click.option("--relay", "is_relayed", is_flag=True, help="Calls go through a relay.")
@click.option(
    "--profiles",
    metavar="NAME,...",
    callback=_names,
    help="Boards side by side; a PROGRAM runs on each. Default for a MODEL.onnx: that of the profile, else all that "
    "have figures.",
)
@click.option(
    "--against",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_former,
    help="Compare with an earlier --json output, as a Markdown table; the exit code is 1 if something is slower.",
)
@allow_option
@reports
def of(
    what: str,
    arguments: tuple[str, ...],
    board: BoardRef,
    image: Path | None,
    profile: Profile | None,
    changed: dict[str, float],
    profiles: list[str] | None,
    against: dict[str, Any] | None,
    allow: float,
    *,
    is_relayed: bool,
) -> Report:
    """Run PROGRAM on its own board and estimate its calls; or estimate calls of CMD, or a run of MODEL.onnx."""
    from arm_client.commands.estimate.model import SUFFIX, document_of_model, parts_shown as parts_of_model
    from arm_client.commands.estimate.report import document_of, parts_shown
    from arm_client.commands.estimate.side_by_side import document_of_boards, parts_shown as parts_of_boards

    if what.endswith(SUFFIX):
        if arguments or image or changed or is_relayed or profile:
            raise click.UsageError("A model accepts only --profiles, --against and --json: it is not run.")
        document = document_of_model(Path(what), profiles)
        return _answer(document, parts_of_model(document), against, allow)
    if profiles is not None and profile:
        raise click.UsageError("Use either --profile, for one board, or --profiles, for several.")

    wanted = _profiles(profiles) if profiles is not None else [profile]
    found = [
        document_of(what, known, base, used, is_relayed=is_relayed)
        for base, used, known in _calls(what, arguments, board, image, wanted, changed, is_quiet=against is not None)
    ]
    if profiles is not None:
        document = document_of_boards(what, found)
        return _answer(document, parts_of_boards(document), against, allow)
    return _answer(found[0], parts_shown(found[0]), against, allow)


def _profiles(names: list[str]) -> list[Profile]:
    try:
        return [find(one) for one in names]
    except BadSettingError as error:
        raise click.UsageError(str(error).replace("HBRT_PROFILE", "--profiles", 1)) from None


def _calls(
    what: str,
    arguments: tuple[str, ...],
    board: BoardRef,
    image: Path | None,
    profiles: Sequence[Profile | None],
    changed: dict[str, float],
    *,
    is_quiet: bool,
) -> Iterator[tuple[Profile, Profile, Known]]:
    """The calls of a program or of a command, for each profile that is wanted, or None for its own.

    Returns:
        The profile that they ran with, the one that is wanted, and they. A program runs once for each.
    """
    from arm_client.commands.estimate.calls import calls_of_board, calls_of_program
    from arm_client.commands.run.program import command_of
    from hbrt.profiles.estimate import needs_a_run

    if Path(what).is_file():
        for one in profiles:
            wanted = (one or active()).fixed(changed, WHAT_IF)
            dsp_image = private_image(image)
            if not is_quiet:
                say_private(dsp_image, wanted.name)
            yield wanted, wanted, calls_of_program(command_of(what, arguments), wanted, dsp_image)
        return
    cmd = _number(what)
    if arguments or image:
        raise click.UsageError("Arguments and --image are for a program; the calls of a command were already made.")
    if runs := [key for key in changed if needs_a_run(key)]:
        raise click.UsageError(f"{runs[0]} changes the op's behavior: estimate a program with it, not a command.")
    base, known = calls_of_board(board, cmd)
    if not is_json() and not is_quiet:
        show_text(f"Calls that board {board.name} remembers, profile {base.name}.")
    for one in profiles:
        yield base, (one or base).fixed(changed, WHAT_IF), known


def _answer(document: dict[str, Any], parts: Iterator[object], against: dict[str, Any] | None, allow: float) -> Report:
    """An estimate, or the changes since an earlier one, which determine the exit code."""
    if against is None:
        return Report(document, *parts)
    from arm_client.commands.estimate.against import changes_of, report

    return report(changes_of(against, document), allow / 100)


def _number(what: str) -> int:
    try:
        return int(what, 0)
    except ValueError:
        raise click.UsageError(f"{what!r} is neither a file nor a command number, such as 0x400.") from None


@command.command(
    short_help="Fit assumed constants to times that were measured on a board.",
    epilog="Example: hbrt estimate calibrate calls --image ops.py --output ours.toml",
)
@click.argument("file", metavar="CAPTURE|CSV", type=click.Path(exists=True, path_type=Path))
@image_option(help="Image whose ops a CAPTURE called. Default: HBRT_IMAGE.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("fitted.toml"),
    show_default=True,
    help="Where to write the profile.",
)
@click.option(
    "--profile",
    metavar="FILE",
    callback=_profile,
    help="The profile that the calls ran with. Default: HBRT_PROFILE, or j5.",
)
@reports
def calibrate(file: Path, image: Path | None, output: Path, profile: Profile | None) -> Report:
    """Fit the assumed constants of a profile to measurements, each within its range, and write a profile.

    CAPTURE is a directory that samples/c/recorder.c wrote on the board: its calls are rerun here to determine their
    work. CSV has lines of 'hbrt tasks --csv' with one more column: board_op_us, the time of the op on its core of the
    board, or board_call_us, the time of the whole call. Constants that the measurements hardly affect keep their
    values.
    """
    from arm_client.commands.estimate.capture import measurements_of
    from arm_client.commands.estimate.fit import fit, held_out_errors, read, sizes_of
    from hbrt.profiles.estimate import needs_a_run

    base, notes = profile or active(), list[str]()
    if file.is_dir():
        measured, notes = measurements_of(file, private_image(image), base)
    else:
        measured = read(file)
    try:
        fitted, held_out = fit(measured, base), held_out_errors(measured, base)
    except ImportError as error:
        raise click.UsageError(f"A fit needs scipy ({error}); {how_to_install('estimate')}.") from None
    lines = [f'base = "{base.origin}"', f'name = "{output.stem}"']
    for key, value in fitted.values.items():
        one = base.constants[key]
        why = f"fitted to {len(measured)} measurements of {file.name}"
        lines.append(f'{key} = {{ value = {value!r}, assumed = [{one.low!r}, {one.high!r}], why = "{why}" }}')
    lines.append(f"[{MEASURED}]  # op = [least bytes, most bytes, error of a fit to the other ops]")
    for op, (least, most) in sizes_of(measured).items():
        off = f", {held_out[op]:.4f}" if op in held_out else ""  # of a single op there is none
        lines.append(f"{json.dumps(op)} = [{least}, {most}{off}]")
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    find(str(output.absolute()))  # it reads back
    kept = [key for key in base.assumed if key not in fitted.values and not needs_a_run(key)]
    at_end = [key for key, value in fitted.values.items() if _is_at_end(value, base.constants[key])]
    columns = (
        Column("CONSTANT", lambda key: key),
        number("WAS", lambda key: rounded(base.number(key), 6)),
        number("FITTED", lambda key: rounded(fitted.values[key], 6)),
        Column("RANGE", lambda key: f"{rounded(base.constants[key].low, 6)} to {rounded(base.constants[key].high, 6)}"),
    )
    return Report(
        {
            "output": str(output),
            **fitted._asdict(),
            "held_out": held_out,
            "kept": kept,
            "at_end": at_end,
            "notes": notes,
        },
        Table(columns, list(fitted.values)),
        f"\nThe model was off by {fitted.before:.0%} and is off by {fitted.after:.0%} (root mean square of "
        f"{len(measured)} measurements). {_held_out_text(held_out)}",
        *notes,
        *([f"At the end of their range, where the board may lie beyond it: {', '.join(at_end)}."] if at_end else []),
        *([f"Not determined by these measurements, and kept: {', '.join(kept)}."] if kept else []),
        f"Wrote {output}: hbrt start --profile {output}.",
    )


def _is_at_end(value: float, one: Constant) -> bool:
    return min(abs(value - end) for end in (one.low, one.high)) <= AT_END * value


def _held_out_text(held_out: dict[str, float]) -> str:
    """How well a fit to the other ops predicts each op."""
    if not held_out:
        return "They cover only one op: the error for other ops is unknown."
    in_order = sorted(held_out.values())
    worst = max(held_out, key=lambda name: held_out[name])
    return (
        f"Your {len(held_out)} ops, each held out of its fit: half within {in_order[(len(in_order) - 1) // 2]:.0%}, "
        f"worst {worst} {held_out[worst]:.0%}."
    )


@command.command(
    short_help="Find the size from which the DSP is faster than the CPU.",
    epilog="Example: hbrt estimate offload 0x400 --cpu my_reference.py:softmax --sizes 1K-1M",
)
@command_argument
@of_an_op
@click.option(
    "--cpu", metavar="MODULE:FUNCTION", required=True, help="The function for the CPU: takes the input array."
)
@image_option(help="Image of a private board. Default: the running board's, or HBRT_IMAGE.")
@_constants
@click.option(
    "--calls",
    metavar="N",
    type=click.IntRange(2),
    default=10,
    show_default=True,
    help="Number of calls to compare with one.",
)
@click.option(
    "--buffers",
    metavar="N",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    help="Number of buffers to compare with one.",
)
@click.option("--relay", "is_relayed", is_flag=True, help="Calls go through a relay.")
@reports
def offload(
    cmd: int,
    sizes: list[int],
    params: str | None,
    dtype: str,
    output_dtype: str | None,
    cpu: str,
    image: Path | None,
    profile: Profile | None,
    calls: int,
    buffers: int,
    *,
    is_relayed: bool,
) -> Report:
    """Compare the op of CMD with a function on the CPU, and find the size from which a call pays off.

    The function is measured here; the board's CPU is taken to be cpu.host_ratio times slower, an assumed constant. The
    op's time is modeled. One call is set against many, and one buffer with offsets against many.
    """
    import numpy as np

    from arm_client.client import connect
    from arm_client.commands.estimate.calls import board_of
    from arm_client.commands.estimate.offload import choice_of, host_us, report
    from arm_client.commands.op.check import load_function
    from arm_client.commands.op.sweep import sweep

    used = profile or active()
    pack, dtypes = how_called(params, dtype, output_dtype)
    function = load_function(cpu)
    dsp_image = private_image(image)
    say_private(dsp_image, used.name)
    with board_of(used, dsp_image) as paths, connect(str(paths.path)) as board:
        every = sorted({*sizes, *(max(size // calls, 1) for size in sizes)})
        samples = {one.elements: one for one in sweep([board], cmd, pack, every, dtypes, 1, CALL_SECONDS)[0]}
    random, choices = np.random.default_rng(0), []
    for size in sizes:
        here_us = host_us(function, (random.random(size) * 100).astype(dtypes[0]))
        whole, part = samples[size], samples[max(size // calls, 1)]
        choices.append(choice_of(whole, part, here_us, used, calls, buffers, is_relayed=is_relayed))
    return report(choices, used, calls, buffers)
