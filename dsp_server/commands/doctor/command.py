"""``hbrt doctor``: whether boards can run here, the state of running ones, and the files of dead ones."""

from __future__ import annotations

import click

from dsp_server.commands.doctor.boards import boards, remote_board
from dsp_server.commands.doctor.checks import Level, environment, extras, installation, profile
from dsp_server.commands.doctor.kernel import kernel, memory
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import Column, Table

_COLUMNS = (
    Column("", "level"),
    Column("CHECK", "name"),
    Column("FOUND", lambda check: f"{check.found}. {check.advice}" if check.advice else check.found),
)


@click.command(epilog="Example: hbrt doctor --clean")
@click.option("--clean", is_flag=True, help="Remove files of boards with a dead daemon; keep named boards' logs.")
@click.option("--extras", "only_extras", is_flag=True, help="Show only which of hbrt's extras are installed.")
@reports
def command(*, clean: bool, only_extras: bool) -> Report:
    """Check what a board needs (the installation, settings, the kernel, memory), and the boards that exist.

    The exit code is 3 if a check fails; warnings do not count.
    """
    checks = (
        [*extras()]
        if only_extras
        else [*installation(), *environment(), *profile(), *kernel(), *memory(), *boards(clean=clean), *remote_board()]
    )
    code = Exit.BROKEN if any(check.level is Level.FAIL for check in checks) else Exit.GOOD
    return Report([check._asdict() for check in checks], Table(_COLUMNS, checks), code=code)
