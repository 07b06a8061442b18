"""The verb ``hbrt op bench``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from arm_client.commands.which_board import say_private, say_where
from hbrt.board.paths import BoardRef
from hbrt.cli.options import any_board_option, command_argument, image_option, timeout_option, together, was_given
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import PARTS, Column, Table, most_of, number, numbers, time_of_us
from hbrt.lazy import how_to_install

CALL_SECONDS = 60.0


_COLUMNS = (
    *numbers("ELEMENTS"),
    number("HOST", lambda row: time_of_us(row["host_median_us"])),
    number("MODELED", lambda row: time_of_us(row["modeled_us"], "~" * row["modeled_is_estimated"])),
    Column("OF IT", lambda row: most_of({name: row[f"modeled_{name}_cycles"] for name in PARTS})),
)
_RATIOS = (
    number("HOST RATIO", lambda row: f"{row['host_ratio']['value']:.2f}"),
    Column("95%", lambda row: f"{row['host_ratio']['low']:.2f} to {row['host_ratio']['high']:.2f}"),
    Column("", lambda row: row["host_ratio"]["verdict"]),
    number("MODELED RATIO", lambda row: None if row["modeled_ratio"] is None else f"{row['modeled_ratio']:.2f}"),
)


def sizes_of(_ctx: click.Context, param: click.Parameter, value: str) -> list[int]:
    """Callback of an option that takes sizes in elements."""
    from arm_client.commands.op.sweep import to_sizes

    try:
        return to_sizes(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from None


of_an_op = together(
    click.option(
        "--sizes",
        metavar="LIST",
        default="1K-1M",
        show_default=True,
        callback=sizes_of,
        help="Elements of the arrays, as in 1K,64K,1M; 1K-1M doubles each time.",
    ),
    click.option(
        "--params",
        metavar="MODULE:FUNCTION",
        help="Makes the input block, as for 'hbrt op check'. Default: {int32 data_size; uint64 input}.",
    ),
    click.option("--dtype", default="float32", show_default=True, help="Type of the input."),
    click.option("--output-dtype", help="Type of the output. Default: the input's."),
)
"""The options for calling an op: ``--sizes``, ``--params``, ``--dtype``, ``--output-dtype``."""


def how_called(params: str | None, dtype: str, output_dtype: str | None) -> tuple[Any, tuple[Any, Any]]:
    """The function that makes the input block, and the types of both arrays.

    Raises:
        BadNameError: a name is unknown.
    """
    from arm_client.commands.op import check

    pack = check.load_params(params) if params else check.default_params
    return pack, (check.to_dtype(dtype), check.to_dtype(output_dtype or dtype))


@click.command(
    "bench",
    short_help="Measure an op over sizes, and model it for the board.",
    epilog="Example: hbrt op bench 0x400 --sizes 1K-1M --plot roofline.png",
)
@command_argument
@of_an_op
@click.option(
    "--repeats", metavar="N", type=click.IntRange(2), default=20, show_default=True, help="Calls of each size."
)
@image_option(help="Image of a private board. Default: the running board's.")
@image_option("--against", help="An image to compare with, such as an older one.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a roofline plot (PNG): the op against the limits of TCM, DDR and vectors. Needs the extra 'estimate'.",
)
@any_board_option
@timeout_option(CALL_SECONDS)
@reports
def bench(
    cmd: int,
    sizes: list[int],
    params: str | None,
    dtype: str,
    output_dtype: str | None,
    repeats: int,
    image: Path | None,
    against: Path | None,
    plot: Path | None,
    board: BoardRef,
    timeout: float,
) -> Report:
    """Call the op of CMD with arrays of several sizes.

    HOST is the median time in the op, measured on this machine; MODELED is its time on the board. With --against both
    images take turns, call by call; the ratio of their host times is the median over such pairs, with a 95% interval
    (bootstrap). Modeled times repeat exactly.
    """
    from arm_client.client import connect, private_board
    from arm_client.commands.op.bench import dot_of, plot as write_plot, ratio_of, row_of
    from arm_client.commands.op.sweep import sweep

    pack, dtypes = how_called(params, dtype, output_dtype)
    was_named = was_given("board")
    if was_named and image:
        raise click.UsageError("Use either --board or --image: an image gets a private board.")

    with ExitStack() as stack:

        def opened(of_image: Path | None) -> Any:
            named = str(board.path) if was_named else None
            return stack.enter_context(private_board(of_image) if of_image else connect(named))

        boards = [opened(image), *([opened(against)] if against else [])]
        if image:
            say_private(image)
        else:
            say_where(board)
        profile = boards[0].profile
        samples, *others = sweep(boards, cmd, pack, sizes, dtypes, repeats, timeout)
    rows = [row_of(one, profile) for one in samples]
    for row, new, old in zip(rows, samples, others[0], strict=True) if others else ():
        ratio, other = ratio_of(new.host_ns, old.host_ns), row_of(old, profile)
        row["host_ratio"] = {**ratio._asdict(), "verdict": ratio.verdict}
        row["modeled_ratio"] = row["modeled_us"] / other["modeled_us"] if other["modeled_us"] else None
    if plot is not None:
        name = samples[0].call.name or f"command {cmd:#x}"
        try:
            write_plot([dot_of(one, profile) for one in samples], profile, f"{name} ({cmd:#x})", plot)
        except ImportError as error:
            raise click.UsageError(f"A plot needs matplotlib ({error}); {how_to_install('estimate')}.") from None
    parts: list[object] = [Table((*_COLUMNS, *_RATIOS) if others else _COLUMNS, rows)]
    if any(row["modeled_is_estimated"] for row in rows):
        parts.append("~: the op charges nothing; estimated from its reads and writes; see hb_dsp_charge.")
    if plot is not None:
        parts.append(f"Wrote {plot}.")
    data = {"cmd": cmd, "profile": profile.name, "plot": str(plot) if plot else None, "sizes": rows}
    return Report(data, *parts)
