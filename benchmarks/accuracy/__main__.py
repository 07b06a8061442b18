"""The published figures beside the model's; docs/accuracy.md and docs/cycles.md describe them.

    python -m benchmarks.accuracy [--plot FILE] [--json]

The exit code is 1 if one is outside the stated range. The DSP's times are for the J5: for the active profile if that is
one of a J5, else for the one of hbrt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from benchmarks.accuracy.dsp import self_check
from hbrt.cli.report import Report, reports
from hbrt.profiles.profile import active, find

PUBLISHED: Final = "j5"
"""The board whose DSP has published times: with another one's profile, a check of them would say nothing."""


@click.command()
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw modelled against published times (PNG). Needs the extra 'estimate'.",
)
@reports
def main(plot: Path | None) -> Report:
    """Show the published figures beside the model's."""
    used = active()
    return self_check(used if used.chip == PUBLISHED else find(PUBLISHED), plot)


if __name__ == "__main__":
    main()
