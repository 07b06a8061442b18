"""``hbrt doctor``: whether boards can run here, how those that run are, and what dead ones left."""

from __future__ import annotations

import click

from dsp_server.commands.doctor.checks import Check, Level, environment, extras, installation, profile
from dsp_server.commands.doctor.kernel import kernel, memory
from dsp_server.commands.doctor.leftovers import boards
from dsp_server.commands.doctor.remote import remote_board
from hbrt.cli.exits import Exit
from hbrt.cli.options import json_option
from hbrt.cli.tables import Column, show_json, show_table


@click.command(short_help="Check the installation and what dead boards left.", epilog="Example: hbrt doctor --clean")
@click.option("--clean", is_flag=True, help="Remove what boards whose daemon has died left; logs of named boards stay.")
@click.option("--extras", "only_extras", is_flag=True, help="Show only which extras of hbrt are installed.")
@json_option
@click.pass_context
def command(ctx: click.Context, *, clean: bool, only_extras: bool, as_json: bool) -> None:
    """Check what a board needs (the installation, settings, the kernel, memory), and the boards that run.

    Exit code 3 when a check fails; a warning is none.
    """
    checks = (
        [*extras()]
        if only_extras
        else [*installation(), *environment(), *profile(), *kernel(), *memory(), *boards(clean=clean), *remote_board()]
    )
    if as_json:
        show_json([check._asdict() for check in checks])
    else:
        show_table((Column(""), Column("CHECK"), Column("FOUND")), [_row(check) for check in checks])
    ctx.exit(Exit.BROKEN if any(check.level is Level.FAIL for check in checks) else Exit.GOOD)


def _row(check: Check) -> tuple[str, str, str]:
    return check.level, check.name, f"{check.found}. {check.advice}" if check.advice else check.found
