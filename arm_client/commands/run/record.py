"""A run that ``hbrt run`` begins: the findings of all its processes, and the settings that its options make."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from arm_client.session.exit_report import end_record
from arm_client.session.process import process
from hbrt import settings
from hbrt.board.routes import COMPARE, parse_routing
from hbrt.board.run_record import FirstProcess
from hbrt.cli.exits import Exit
from hbrt.cli.tables import show_text
from hbrt.exploration.seeds import settings_of
from hbrt.findings.record import Finding

_WAIT_SECONDS = 5.0


@dataclass
class Recorded:
    """The findings of a finished run; ``is_complete`` is False if one of its processes is still attached."""

    findings: list[Finding] = field(default_factory=list)
    is_complete: bool = True

    def exit_code(self, code: int) -> int:
        """Return the run's exit code: ``code``, or UNCHECKED instead of GOOD if the findings are incomplete."""
        return code or (Exit.GOOD if self.is_complete else Exit.UNCHECKED)


@contextlib.contextmanager
def recorded() -> Iterator[Recorded]:
    """A run; afterward, its record and the file of HBRT_SARIF contain its findings."""
    found = Recorded()
    run = FirstProcess()
    process.is_reported = True
    try:
        yield found
    finally:
        found.is_complete = run.wait(_WAIT_SECONDS)
        if not found.is_complete:
            show_text(
                "hbrt: a process of the program is still attached: its later findings are not reported.", err=True
            )
        found.findings.extend(end_record(run))
        run.detach()


def record_into(_ctx: click.Context, param: click.Parameter, directory: Path | None) -> None:
    """Pass ``--record`` as HBRT_RECORD to everything that the verb starts.

    Raises:
        click.BadParameter: something is in the directory.
    """
    if directory is None:
        return
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise click.BadParameter(f"{directory} exists and is not an empty directory; name another one.", param=param)
    os.environ["HBRT_RECORD"] = str(directory.absolute())


def run_by_seed(_ctx: click.Context, _param: click.Parameter, seed: int | None) -> None:
    """Pass ``--seed`` as settings to everything that the verb starts."""
    if seed is not None:
        os.environ.update(settings_of(seed, os.environ))


def route_by(_ctx: click.Context, param: click.Parameter, routes: tuple[str, ...]) -> None:
    """Pass ``--route`` as HBRT_ROUTE to everything that the verb starts.

    Raises:
        click.BadParameter: an entry is invalid.
    """
    if not routes:
        return
    try:
        parse_routing(",".join(routes))
    except settings.BadSettingError as error:
        raise click.BadParameter(str(error), param=param) from None
    os.environ["HBRT_ROUTE"] = ",".join(routes)


def compare_routes(_ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001 - click's
    """Pass ``--compare`` in HBRT_ROUTE to everything that the verb starts.

    Raises:
        click.BadParameter: there is nothing to compare.
    """
    if not is_wanted:
        return
    if not settings.text("HBRT_ROUTE"):
        raise click.BadParameter("no route is set: name one with --route, or in HBRT_ROUTE.", param=param)
    os.environ["HBRT_ROUTE"] += f",{COMPARE}"
