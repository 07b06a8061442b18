"""What verbs that use a farm have in common: its options, and a sentence where its libraries are missing."""

from __future__ import annotations

from importlib.util import find_spec

import click

MAX_SHOWN = 20  # items that have failed, say: files may be thousands, and the results name them all
boards_option = click.option(
    "--boards",
    metavar="N",
    type=click.IntRange(1, 10_000),
    default=2,
    show_default=True,
    help="How many boards, each in a process of its own.",
)
address_option = click.option(
    "--address", metavar="HOST:PORT", help="Boards on the machines of a Ray cluster. Default: this machine."
)


def need(*modules: str) -> None:
    """Say what to install.

    Args:
        *modules: Names of modules that the extra ``farm`` has.

    Raises:
        click.UsageError: one of them is missing.
    """
    if missing := [name for name in modules if find_spec(name) is None]:
        raise click.UsageError(f"A farm needs {' and '.join(missing)}: pip install 'hbrt[farm]'.")
