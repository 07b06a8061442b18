"""``hbrt farm bench``: an op of two images, compared over a whole set of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hbrt import settings
from hbrt.cli.exits import Exit
from hbrt.cli.options import (
    address_option,
    boards_option,
    check_option,
    command_argument,
    image_option,
    profile_option,
    timeout_option,
)
from hbrt.cli.report import Report, reports
from hbrt.findings.text import counted
from hbrt_farm.result import MAX_SHOWN


@click.command(
    "bench",
    short_help="Compare an op of two images over many files.",
    epilog="Example: hbrt farm bench 0x1000 --image new.py --against old.py --over frames/ --boards 2",
)
@command_argument
@image_option(required=True, help="The image to compare.")
@image_option("--against", required=True, help="The image to compare it with, such as an older one.")
@click.option("--over", metavar="DIR|GLOB|FILE.parquet", required=True, help="The items: files, as for 'farm map'.")
@click.option("--repeats", metavar="N", type=click.IntRange(1), default=5, show_default=True,
              help="Calls of each image with an item, after one that warms up.")  # fmt: skip
@click.option("--output-bytes", metavar="N", type=click.IntRange(1), help="Size of the output block. Default: the "
              "input's.")  # fmt: skip
@boards_option
@address_option
@check_option
@profile_option
@timeout_option(60.0)
@reports
def bench(
    cmd: int,
    image: Path,
    against: Path,
    over: str,
    repeats: int,
    output_bytes: int | None,
    boards: int,
    address: str | None,
    timeout: float,
) -> Report:
    """Call the op of CMD with each file, on boards of both images side by side, which take turns.

    The ratio of their host times is the median over the items, with a 95% interval (bootstrap); below 1, the image of
    --image is faster. It is measured on this machine, with its noise; the modeled ratio comes from the board's cycles,
    and is exact. Items whose outputs differ are listed. The exit code is 1 if an item failed.
    """
    settings.check()
    from hbrt_farm import Farm, Status
    from hbrt_farm.commands.items import items_over
    from hbrt_farm.commands.turns import TurnsWork, compared_set

    items = items_over(over)
    work = TurnsWork(cmd, against, output_bytes, timeout, repeats)
    turns, failed = [], []
    with Farm(min(boards, len(items)), image, address=address) as farm:
        for result in farm.map(work, items):
            if result.status is Status.GOOD:
                turns.append((result.item, result.value))
            else:
                failed.append({"index": result.index, "item": result.item, "text": result.text})
    told = {"cmd": cmd, "items": len(items), "failed": failed, **(compared_set(turns) if turns else {})}
    return Report(told, *_lines(told), code=Exit.FAILED if failed else Exit.GOOD)


def _lines(told: dict[str, Any]) -> list[str]:
    """For people."""
    failed = told["failed"]
    lines = [f"{told['items']} items, {len(failed)} failed."]
    if ratio := told.get("host_ratio"):
        lines.append(
            f"Host time, measured: {ratio['value']:.3f} times the other image's, 95% interval {ratio['low']:.3f} to "
            f"{ratio['high']:.3f}: {ratio['verdict']}."
        )
        if told["modeled_ratio"] is not None:
            lines.append(f"Modeled cycles: {told['modeled_ratio']:.3f} times the other image's.")
        others = counted(told["other_outputs"], "item") if told["other_outputs"] else ""
        lines.append(f"Outputs: {f'different for {others}' if others else 'the same for each item'}.")
        lines += [f"Different output: {name}" for name in told["first_of_them"]]
    lines += [f"Item {one['index']} failed: {one['item']}: {one['text']}" for one in failed[:MAX_SHOWN]]
    if len(failed) > MAX_SHOWN:
        lines.append(f"... and {len(failed) - MAX_SHOWN} more; --json lists them all.")
    return lines
