"""``hbrt op``: your own ops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from arm_client.commands.op.bench_command import bench
from arm_client.commands.op.kinds import DTYPES, KINDS, MAX_HALO, NewOp
from arm_client.commands.which_board import say_where
from hbrt.cli.exits import Exit, sentence_of
from hbrt.cli.options import any_board_option, command_argument, timeout_option, to_command, was_given
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import short_time, show_text
from hbrt.types import HB_DSP_RPC_CMD_BUTT, HB_DSP_RPC_CMD_PING

CASE_SECONDS = 30.0


@click.group(
    epilog="Example: hbrt op new scale --cmd 0x1000\n\nA parameter structure of both sides: hbrt op check-layout "
    "scale_param.py:ScaleParam scale.h:scale_param_t"
)
def command() -> None:
    """Ops of your own."""


command.add_command(bench)


@command.command(
    short_help="Write an op with all that belongs to it.", epilog="Example: hbrt op new scale --cmd 0x1000"
)
@click.argument("name")
@click.option(
    "--cmd",
    metavar="NUMBER",
    required=True,
    callback=to_command,
    help="Command number of the op, 0x1000 to 0xfffe.",
)
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to write; default: here.",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="elementwise",
    show_default=True,
    help="The inputs of a result: its element, its row, its neighbors, or all elements.",
)
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default="float32",
    show_default=True,
    help="Type of the elements.",
)
@click.option(
    "--halo",
    metavar="N",
    type=click.IntRange(0, MAX_HALO),
    default=1,
    show_default=True,
    help="Of an image: how many neighbors on each side a result depends on.",
)
@click.option("--numba", "way", flag_value="numba", help="Compute in loops that numba compiles.")
@click.option("--c", "way", flag_value="c", help="Write the image in C.")
@reports
def new(name: str, cmd: int, directory: Path, kind: str, dtype: str, halo: int, way: str | None) -> Report:
    """Write an image with the op NAME, an ARM program that calls it, and a test that compares it with numpy.

    All run as written. By default the op computes y = a * x + b over float32, with numpy: replace that with yours.
    """
    from arm_client.commands.op.kinds import words_of
    from arm_client.commands.op.new import write_op

    op = NewOp(name, cmd, way or "numpy", kind, dtype, halo)
    files = write_op(op, directory)
    param, image, call, test, *header = (file.name for file in files)
    is_c = op.way == "c"
    build = f"  hbrt cc --dsp -O3 {image}\n" if is_c else ""
    param = " and ".join([*header, param])
    served = f"{name}_image.so" if is_c else image
    where = f" in {directory}" if directory != Path() else ""
    structure = words_of(op)["Param"]
    return Report(
        {"op": name, "cmd": cmd, "command": f"{cmd:#x}", "files": [str(file) for file in files]},
        f"""\
Wrote {image} (the op), {call} (calls it), {test} (checks it) and {param} (what they share){where}.
To make it your op, edit compute_tile() in {image}, and its reference expected() in {call};
its parameters are {structure} in {param}.
Run them (if a board is running, with 'hbrt restart' instead of 'hbrt start'):

{build}  hbrt start --image {served}
  python {call}
  pytest {test}
  {op.check_line}
  hbrt stop""",
    )


def _to_shapes(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[Any, ...]:
    if not values:
        return ()
    from arm_client.commands.op.cases import to_shape

    try:
        return tuple(to_shape(value) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _to_atol(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if not math.isfinite(value):  # the range lets NaN pass; either would let every difference pass, or none
        raise click.BadParameter(f"Invalid difference {value}: must be a finite number, 0 or more.")
    return value


@command.command(
    short_help="Compare an op with a reference.", epilog="Example: hbrt op check 0x1000 --against my_reference.py:scale"
)
@command_argument
@click.option(
    "--against",
    metavar="MODULE:FUNCTION",
    required=True,
    help="The reference: takes a numpy array and returns the expected output block. FILE.py:FUNCTION works, too.",
)
@click.option(
    "--params",
    metavar="MODULE:FUNCTION",
    help="Makes the input block, as bytes or a ctypes structure, from the input array in device memory; one that takes "
    "two arguments gets the output array, too. Default: {int32 data_size; uint64 input}, as softmax takes.",
)
@click.option("--cases", "count", metavar="N", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--dtype", default="float32", show_default=True, help="Type of the generated elements.")
@click.option(
    "--shape",
    "shapes",
    metavar="HxW",
    multiple=True,
    callback=_to_shapes,
    help="Shape of the generated arrays. A side may be a range, also with a step, as in 1-480x2-640/2; several shapes "
    "are taken in turn. Default: one dimension, 1 to 70000 elements.",
)
@click.option(
    "--ulp",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Allowed difference in representable values (ulp).",
)
@click.option(
    "--atol",
    metavar="NUMBER",
    type=click.FloatRange(min=0),
    callback=_to_atol,
    default=0.0,
    show_default=True,
    help="Allowed absolute difference, however many ulp it is: near 0, an ulp is tiny.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--special", is_flag=True, help="Put NaN and infinities into some cases.")
@any_board_option
@timeout_option(CASE_SECONDS)
@reports
def check(cmd: int, against: str, params: str | None, board: Any, **how: Any) -> Report:
    """Compare the op registered for CMD with a reference over generated inputs.

    It runs on the running board, or on a private one (HBRT_IMAGE is its image). The first difference is printed with
    its index, both values and their distance in ulp; the exit code is then 1. --timeout applies to each case.
    """
    from arm_client.client import connect
    from arm_client.commands.op import check as op_check
    from arm_client.errors import HbrtError
    from arm_client.session.dsp_log import log_reader
    from hbrt import settings
    from hbrt.status import Status

    if cmd in {HB_DSP_RPC_CMD_PING, HB_DSP_RPC_CMD_BUTT} or not 0 <= cmd <= HB_DSP_RPC_CMD_BUTT:
        raise click.UsageError(f"Command {cmd:#x} is not an op; 'hbrt ops' lists those of the running board.")
    timeout_s = how.pop("timeout")
    reference = op_check.load_function(against)
    pack = op_check.load_params(params) if params else op_check.default_params
    how["dtype"] = op_check.to_dtype(how["dtype"])
    settings.check()
    with connect(str(board.path) if was_given("board") else None) as connected:
        say_where(board)
        name = connected.ops().get(cmd, "not registered")
        read_log = log_reader(connected.session)
        try:
            found = op_check.check(connected, cmd, reference, pack, timeout_s=timeout_s, **how)
        except op_check.CheckFailedError as error:
            raise click.ClickException(str(error)) from None
        except HbrtError as error:
            if error.status != Status.HB_DSP_UNKNOWN_COMMAND:
                _explain(error, has_params=params is not None)
            raise
        else:
            modeled = _modeled(connected.session.link.request("tasks", last=found.cases), cmd)
        finally:
            if connected.session.daemon is None:  # a private board says it by itself
                show_text(read_log(), err=True, nl=False)
    code = Exit.GOOD if found.difference is None else Exit.FAILED
    text = _as_text(cmd, name, against, found, modeled)
    return Report({**_as_data(cmd, name, against, found), **modeled}, text, code=code)


@command.command(
    "check-layout",
    short_help="Compare a parameter structure of both sides.",
    epilog="Example: hbrt op check-layout scale_param.py:ScaleParam scale.h:scale_param_t",
)
@click.argument("sides", metavar="A [B]", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@click.option(
    "--include",
    "-I",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of headers for C files; missing headers are ignored.",
)
@click.option("--define", "-D", metavar="NAME[=VALUE]", multiple=True, help="A macro of C files.")
@reports
def check_layout(sides: tuple[str, ...], include: tuple[Path, ...], define: tuple[str, ...], *, strict: bool) -> Report:
    """Show the memory layout of a parameter structure, and any differences between the ARM and the DSP.

    A and B are each FILE.h:STRUCT (also .c, .hpp, .cc, .cpp), FILE.py:CLASS or MODULE:CLASS; a class is a
    ctypes.Structure or a numpy dtype. Only the declarations that the class needs are run from a FILE.py, so it may be a
    program. Two are compared field by field. The exit code is 1 for an error: a difference, a pointer, a long. Holes,
    enums, bools and bit fields are warnings.
    """
    from arm_client.commands.op import check_layout as layout
    from hbrt.findings.record import Severity

    if len(sides) > len(layout.SIDES):
        raise click.UsageError(f"Got {len(sides)} structures: expected one, or two to compare.")
    try:
        read = [layout.read_side(what, include, define) for what in sides]
    except OSError as error:
        raise click.UsageError(sentence_of(error)) from None
    remarks = layout.remarks_of(read)
    is_good = not any(strict or remark.severity == Severity.ERROR for remark in remarks)
    return layout.report(read, remarks, is_good=is_good)


def _explain(error: Exception, *, has_params: bool) -> None:
    """Print the op's arguments before the error itself."""
    if not has_params:
        show_text(
            "Without --params the input block was {int32 data_size; uint64 input}; an op with a "
            "different one needs a function for it (see --help). See 'hbrt log' for the op's "
            "messages.",
            err=True,
        )
    for note in getattr(error, "__notes__", ()):
        show_text(note, err=True)


def _as_text(cmd: int, name: str, against: str, found: Any, modeled: dict[str, Any]) -> str:
    if found.difference is None:
        return (
            f"Command {cmd:#x} ({name}) agrees with {against} in {found.cases} cases; largest difference "
            f"{found.largest_ulp} ulp.{_modeled_text(**modeled) if modeled else ''}"
        )
    case, difference = found.case, found.difference
    where = str(case).capitalize()
    far = "not comparable" if difference.ulp is None else f"{difference.ulp} ulp apart"
    at = f"[{', '.join(map(str, difference.place))}]" if difference.place else difference.at
    return (
        f"Command {cmd:#x} ({name}) differs from {against}. {where}: element {at} is {difference.got}, "
        f"the reference has {difference.expected}, {far}.{_hint(case.data.dtype, difference.expected.dtype)}"
    )


def _hint(generated: Any, returned: Any) -> str:
    """A hint if the reference returned numpy's default type."""
    if returned == generated or str(returned) not in {"float64", "int64"}:
        return ""
    return f" The reference returned {returned}: if the op writes another type, return that."


def _modeled(rows: list[dict[str, Any]], cmd: int) -> dict[str, Any]:
    """The shortest and longest call of a command on the board, among the newest tasks; empty if there are none."""
    own = [row for row in rows if row["cmd"] == cmd and row["state"] == "done"]
    if not own:
        return {}
    times_us = [row["modeled_ns"] / 1000 for row in own]
    return {
        "modeled_least_us": min(times_us),
        "modeled_most_us": max(times_us),
        "modeled_is_estimated": any(row["modeled_is_estimated"] for row in own),
    }


def _modeled_text(modeled_least_us: float, modeled_most_us: float, *, modeled_is_estimated: bool) -> str:
    least, most = (short_time(time_us * 1000) for time_us in (modeled_least_us, modeled_most_us))
    how = " (estimated: the op charges nothing)" if modeled_is_estimated else ""
    return f"\nOn the board a call takes {least} to {most}, modeled{how}."


def _as_data(cmd: int, name: str, against: str, found: Any) -> dict[str, Any]:
    data = {"cmd": cmd, "name": name, "against": against, "cases": found.cases, "largest_ulp": found.largest_ulp}
    if found.difference is None:
        return {**data, "equal": True}
    case, difference = found.case, found.difference
    return {
        **data,
        "equal": False,
        "case": case.number,
        "kind": case.kind,
        "size": case.data.size,
        "shape": list(case.data.shape),
        "index": difference.at,
        "place": list(difference.place) or [difference.at],
        "got": _as_number(difference.got),
        "expected": _as_number(difference.expected),
        "ulp": difference.ulp,
    }


def _as_number(value: Any) -> float | str:
    """A number, or "nan", "inf" and "-inf", for which JSON has none."""
    number = float(value)
    return number if math.isfinite(number) else str(number)
