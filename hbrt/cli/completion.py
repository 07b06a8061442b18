"""``hbrt completion``: what makes a shell complete hbrt's verbs and options; click makes it."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hbrt.cli.group import group

_VARIABLE = "_HBRT_COMPLETE"  # click's name for it: the program's, in capitals


@click.command(epilog="Example: hbrt completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the lines for a shell's start file that complete verbs, options and the names of boards.

    For bash they go into ~/.bashrc, for zsh into ~/.zshrc, for fish into ~/.config/fish/completions/hbrt.fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"click {click.__version__} has no completion for {shell}.")
    click.echo(kind(group, {}, "hbrt", _VARIABLE).source())
