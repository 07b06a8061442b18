"""``hbrt completion``: the completion script of a shell, as click makes it."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hbrt.cli.group import group

_VARIABLE = "_HBRT_COMPLETE"  # click's name for it: the program's, in capitals


@click.command(epilog="Example: hbrt completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL, for verbs, options and names of boards.

    Append it to ~/.bashrc for bash, ~/.zshrc for zsh, or ~/.config/fish/completions/hbrt.fish for fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"click {click.__version__} has no completion for {shell}.")
    click.echo(kind(group, {}, "hbrt", _VARIABLE).source())
