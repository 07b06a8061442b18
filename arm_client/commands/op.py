"""``hbrt op``: ops of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from hbrt.cli_options import json_option, to_command


@click.group(short_help="Write an op of your own.")
def command() -> None:
    """Ops of your own."""


@command.command()
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
@json_option
def new(name: str, cmd: int, directory: Path, *, as_json: bool) -> None:
    """Write an image with the op NAME, an ARM program that calls it, and a test that compares it with numpy.

    All run as written. The op computes y = a * x + b over float32: replace that with yours.
    """
    from arm_client.commands._op_new import NewOp, OpError, write_op

    try:
        files = write_op(NewOp(name, cmd), directory)
    except OpError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        from hbrt.tables import show_json

        show_json({"op": name, "cmd": cmd, "command": f"{cmd:#x}", "files": [str(file) for file in files]})
        return
    param, image, call, test = (file.name for file in files)
    where = f" in {directory}" if directory != Path() else ""
    click.echo(
        f"""\
Wrote {image} (the op), {call} (calls it), {test} (checks it) and {param} (what they share){where}.
Run them there:

  hbrt start --image {image}
  python {call}
  pytest {test}
  hbrt stop"""
    )
