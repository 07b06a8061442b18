"""The verb ``hbrt farm``: many boards, here or on a cluster."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arm_client.commands.op.loading import load_named
from arm_client.commands.run.program import is_program
from hbrt import settings
from hbrt.cli.exits import Exit
from hbrt.cli.options import address_option, boards_option, check_option, image_option, profile_option, timeout_option
from hbrt.cli.progress import progress
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import show_text
from hbrt_farm.commands.bench import bench
from hbrt_farm.commands.serve import serve, status
from hbrt_farm.commands.suite import test

if TYPE_CHECKING:
    from hbrt_farm.commands.output import Output
    from hbrt_farm.commands.work import Against

ITEM_SECONDS = 60.0
_MODELS = (".onnx", ".bin", ".hbm")


@click.group(epilog="Example: hbrt farm map 0x1000 --image my_image.py --over frames/ --boards 4 --out results")
def command() -> None:
    """A pool of private boards, as processes of Ray: on this machine, or on a cluster."""


command.add_command(bench)
command.add_command(test)
command.add_command(serve)
command.add_command(status)


@command.command(
    "map",
    short_help="Pass each of many files to an op, a model or a program.",
    epilog="Example: hbrt farm map 0x1000 --image my_image.py --over 'frames/*.npy' --boards 4 --out results\n\n"
    "A model against a reference: hbrt farm map net.onnx --over frames/ --against reference.py:net --out results",
)
@click.argument("what", metavar="CMD|MODEL|PROGRAM")
@click.argument("arguments", metavar="[ARGUMENT...]", nargs=-1)
@click.option("--over", metavar="DIR|GLOB|FILE.parquet", required=True, help="The items: files. A Parquet file has "
              "their paths in its column 'path'.")  # fmt: skip
@click.option("--out", metavar="DIR", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="Directory of the results. Run the same command again to continue where it stopped.")  # fmt: skip
@boards_option
@image_option(help="Image of each board. Default: HBRT_IMAGE, else the packaged ops.")
@click.option("--output-bytes", metavar="N", type=click.IntRange(1), help="Size of the output block of CMD. Default: "
              "the input's.")  # fmt: skip
@click.option("--against", metavar="FILE.py:FUNCTION", help="Compare with this function's result for an item, and "
              "keep the worst items.")  # fmt: skip
@click.option(
    "--tolerance",
    metavar="X",
    type=click.FloatRange(0),
    help="The largest difference from the reference; an item beyond it fails.",
)
@address_option
@check_option
@profile_option
@timeout_option(ITEM_SECONDS)
@reports
def map_(
    what: str,
    arguments: tuple[str, ...],
    over: str,
    out: Path,
    boards: int,
    image: Path | None,
    output_bytes: int | None,
    against: str | None,
    tolerance: float | None,
    address: str | None,
    timeout: float,
) -> Report:
    """Pass each file to a board: to an op as its input block, to a model, or to a program as its last argument.

    CMD takes .npy files and bytes, MODEL .npy, .npz with one array per input, and pictures. Results come in the order
    of the items, into DIR/parts while it runs and DIR/results.parquet at the end: status, host time, modeled cycles,
    findings, digests of outputs. --timeout applies to each item. An item whose board died is retried; after three
    attempts it is set aside. The exit code is 1 if an item failed or a board reported a finding.
    """
    settings.check()
    from hbrt_farm.commands.items import items_over
    from hbrt_farm.commands.output import Output, written
    from hbrt_farm.commands.report import Summary
    from hbrt_farm.commands.work import Against

    image = image or (Path(found) if (found := settings.text("HBRT_IMAGE")) else None)
    reference = Against(load_named(against, "function"), tolerance) if against else None
    if tolerance is not None and not against:
        raise click.UsageError("--tolerance needs a reference: add --against.")
    work = _work(what, arguments, output_bytes, timeout, reference)
    items = items_over(over)
    plan = {
        "what": what,
        "arguments": list(arguments),
        "items": len(items),
        "names of the items": hashlib.sha256("\0".join(items).encode("utf-8", "surrogateescape")).hexdigest(),
        "image": _digest(image),
        "program or model": None if what[:1].isdecimal() else _digest(Path(what)),
        "output bytes": output_bytes,
        "reference": against and [against, _digest(Path(against.rpartition(":")[0]))],
        "tolerance": tolerance,
        "checks": settings.text("HBRT_CHECK"),
        "profile": settings.text("HBRT_PROFILE"),
    }
    with Output(out, plan) as output:
        if output.done < len(items) or (reference is not None and not output.is_finished):
            _run(output, work, items, boards, image, address)
        file = output.finish()
        summary = Summary(output.tables())
        with written(out / "report.html") as page:
            page.write(summary.page(f"hbrt farm map: {out.name}", out / "worst").encode())
        data = {"results": str(file), **summary.document()}
        code = Exit.GOOD if summary.is_good else Exit.FAILED
        return Report(data, *summary.lines(), f"Results: {file}", code=code)


def _run(output: Output, work: Any, items: list[str], boards: int, image: Path | None, address: str | None) -> None:
    """Run the items that are not done yet, and keep the worst results."""
    from hbrt_farm import Farm
    from hbrt_farm.commands.report import Summary, save_worst

    if output.done:
        show_text(f"{output.done} of {len(items)} items are done; continuing with the rest.", err=True)
    with (
        Farm(max(1, min(boards, len(items) - output.done)), image, address=address) as farm,
        progress(len(items), "items") as show,
    ):
        if work.against is not None:  # copied to the boards' processes by value: they may not have its file
            from ray import cloudpickle

            cloudpickle.register_pickle_by_value(sys.modules[work.against.function.__module__])
        show(output.done)
        for result in farm.stream(work, items[output.done :], first=output.done):
            if result is None:
                output.look()
            else:
                output.add(result)
                show(result.index + 1)
        output.flush()
        if worst := [one for one in Summary(output.tables()).worst if one[0]]:
            work.against = work.against._replace(keeps=True)
            for rank, result in enumerate(farm.map(work, [item for _, _, item in worst]), 1):
                if result.value is not None:
                    save_worst(output.directory / "worst", rank, result.item, result.value)


def _work(
    what: str, arguments: tuple[str, ...], output_bytes: int | None, seconds: float, against: Against | None
) -> Any:
    """How each board processes an item.

    Raises:
        click.UsageError: it is not a command number, a model or a program.
    """
    from hbrt_farm.commands.work import ModelWork, OpWork, ProgramWork

    with contextlib.suppress(ValueError):
        cmd = int(what, 0)
        if arguments:
            raise click.UsageError(f"An op takes no arguments: got {arguments[0]!r}.")
        return OpWork(cmd, output_bytes, seconds, against)
    if not Path(what).is_file():
        raise click.UsageError(f"{what!r} is neither a command number, such as 0x1000, nor a file.")
    path = str(Path(what).absolute())
    if output_bytes is not None:
        raise click.UsageError("--output-bytes is for a command number only.")
    if what.endswith(_MODELS):
        return ModelWork(path, against)
    if not is_program(what):
        raise click.UsageError(
            f"Cannot run {what}: not a model ({', '.join(_MODELS)}), not a Python file, and not executable."
        )
    if against is not None:
        raise click.UsageError("--against compares an op's or a model's outputs; a program must compare by itself.")
    return ProgramWork(path, arguments, seconds)


def _digest(file: Path | None) -> str | None:
    """SHA-256 of a file: continuing with a different file would mix results."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else None
