"""Options that verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hbrt import settings
from hbrt.board import BoardPaths, RemoteBoard, WrongUseError, board_paths

F = TypeVar("F", bound=Callable[..., Any])


def to_bytes(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """Callback of an option that takes a size such as 512M or 2G."""
    try:
        return settings.parse_size(value)
    except settings.BadSettingError as error:
        raise click.BadParameter(str(error)) from None


def to_command(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """Callback of an option that takes a command number, decimal or with 0x."""
    try:
        return int(value, 0)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number; write it as 0x1000.") from None


def _to_paths(_ctx: click.Context, _param: click.Parameter, value: str | None) -> BoardPaths:
    board = _to_any_board(_ctx, _param, value)
    if isinstance(board, RemoteBoard):
        raise WrongUseError(
            f"The board at {board.name} is on another machine; this verb looks at boards of this one: call it there, "
            "or name one of this machine with --board. Programs, 'hbrt run' and 'hbrt op check' use it from here."
        )
    return board


def _to_any_board(_ctx: click.Context, _param: click.Parameter, value: str | None) -> BoardPaths:
    try:
        return board_paths(value)
    except WrongUseError as error:
        raise click.BadParameter(str(error)) from None


def board_option(function: F) -> F:
    """Add ``--board``; the verb gets ``board``, a BoardPaths."""
    return click.option(
        "--board",
        "-b",
        metavar="NAME",
        callback=_to_paths,
        help="Name of the board, or its directory when it has a slash. Default: HBRT_BOARD, else 'default'.",
    )(function)


def any_board_option(function: F) -> F:
    """Add ``--board`` for boards of other machines, too; ``board`` is a RemoteBoard then."""
    return click.option(
        "--board",
        "-b",
        metavar="NAME",
        callback=_to_any_board,
        help="Name of the board, its directory when it has a slash, or tcp://HOST:PORT of its relay. Default: "
        "HBRT_BOARD, else 'default'.",
    )(function)


def json_option(function: F) -> F:
    """Add ``--json``; the verb gets ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")(function)


def timeout_option(default_s: float) -> Callable[[F], F]:
    """Add ``--timeout``; the verb gets ``timeout``, in seconds."""
    return click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=default_s,
        show_default=True,
        help="Give up after this time, with exit code 124.",
    )
