"""``hbrt run PROGRAM``: a program of the user's own, with findings as its exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from hbrt import settings
from hbrt.board.paths import BoardRef


def is_program(name: str) -> bool:
    """Whether an argument names a program: a Python file, or a file that can be executed."""
    return Path(name).is_file() and (name.endswith(".py") or os.access(name, os.X_OK))


class RunCommand(click.Command):
    """``hbrt run``, whose arguments behind a program are the program's own, options too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, up to the program."""
        flags = {
            name for param in self.params if isinstance(param, click.Option) and param.is_flag for name in param.opts
        }
        for at, word in enumerate(args):
            before = args[at - 1] if at else ""
            is_value = before.startswith("-") and before not in {*flags, "--"} and "=" not in before
            if word.startswith("-") or is_value:
                continue
            if is_program(word) and "--" not in args[:at]:
                args = [*args[:at], "--", *args[at:]]
            break
        return super().parse_args(ctx, args)


def run_program(program: str, arguments: tuple[str, ...], board: BoardRef | None, mode: str | None) -> NoReturn:
    """Become the program; it ends with exit code 1 when a mistake of it was found.

    Args:
        program: A Python file, or a file that can be executed.
        arguments: Its arguments.
        board: The board that it uses; None for the one that it chooses.
        mode: HB_DSP_RPC_MODE; None leaves it to the program's environment.

    Raises:
        BadSettingError: a setting is wrong. click.UsageError: the file cannot be executed.
    """
    settings.check()
    os.environ["HBRT_CHECK"] = failing(settings.words("HBRT_CHECK"))
    if board is not None:
        os.environ["HBRT_BOARD"] = str(board.path)
    if mode is not None:
        os.environ["HB_DSP_RPC_MODE"] = mode
    command = [sys.executable, program] if program.endswith(".py") else [str(Path(program).absolute())]
    try:
        os.execv(command[0], [*command, *arguments])  # noqa: S606 - the user names the program
    except OSError as error:
        raise click.UsageError(f"{program} cannot be executed: {error.strerror}.") from None


def failing(words: frozenset[str]) -> str:
    """HBRT_CHECK for what a verb runs: what the user watches, and that a finding is an error."""
    return ",".join(sorted(words - {"tell"} | {"fail"}))
