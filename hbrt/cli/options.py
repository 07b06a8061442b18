"""Options that verbs share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hbrt import settings
from hbrt.board.paths import BoardPaths, BoardRef, RemoteBoard, board_ref, is_text
from hbrt.errors import WrongUseError
from hbrt.findings.checks import check_words, checks_of

F = TypeVar("F", bound=Callable[..., Any])


class ImageFile(click.Path):
    """An image: an existing file, whose path messages between processes can contain."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not is_text(whole := path.absolute()):
            why = f"The path {str(whole)!r} is not text in this locale; rename the file, or set LC_ALL=C.UTF-8."
            self.fail(why, param, ctx)
        return path


class Seconds(click.FloatRange):
    """A time span above 0; anything longer than eleven days, including infinity, counts as forever."""

    MOST = 1e6  # the waiting calls take 32 bits of milliseconds

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; NaN is rejected, since no bound does that."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return min(seconds, self.MOST)


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that adds several options, in the order of the help."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def was_given(*names: str) -> bool:
    """Whether one of the running verb's options was given, on the command line or by a variable."""
    ctx = click.get_current_context()
    return any(ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT for name in names)


def option_given(*names: str) -> str:
    """Return the first of these options on the command line, as spelled there; "" if none."""
    ctx = click.get_current_context()
    spellings = {param.name: param.opts[0] for param in ctx.command.params}
    on_line = click.core.ParameterSource.COMMANDLINE
    return next((spellings[name] for name in names if ctx.get_parameter_source(name) is on_line), "")


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
        raise click.BadParameter(f"Invalid command {value!r}: expected a number, such as 0x1000.") from None


def to_paths(_ctx: click.Context, _param: click.Parameter, value: str | None) -> BoardPaths:
    """Callback of an option or argument that names a board of this machine."""
    board = _to_any_board(_ctx, _param, value)
    if isinstance(board, RemoteBoard):
        raise WrongUseError(
            f"The board at {board.name} is on another machine; this verb is for local boards: run it there, or "
            "name a local board with --board. Programs, 'hbrt run', 'hbrt op check', 'hbrt status', 'hbrt ops', "
            "'hbrt tasks', 'hbrt top', 'hbrt web', 'hbrt mem', 'hbrt log' and 'hbrt trace save' use it from here."
        )
    return board


def _to_any_board(_ctx: click.Context, _param: click.Parameter, value: str | None) -> BoardRef:
    try:
        return board_ref(value)
    except WrongUseError as error:
        raise click.BadParameter(str(error)) from None


def complete_board(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Board names for a shell's completion."""
    from hbrt.board.files import boards_in
    from hbrt.board.paths import home, is_private_name

    try:
        names = [board.name for board in boards_in(home())]
    except OSError:
        return []
    return [name for name in names if name.startswith(incomplete) and not is_private_name(name)]


def _complete_profile(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of packaged profiles, and files, for a shell's completion."""
    from hbrt.profiles.profile import packaged

    names = [CompletionItem(name) for name in packaged() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def _complete_check(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Words of HBRT_CHECK, completing the last one of a list, for a shell's completion."""
    before, comma, word = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{one}" for one in check_words() if one.startswith(word) and one not in given]


def complete_command(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Command numbers of the running board, with the ops' names, for a shell's completion."""
    from hbrt.control.ask import ask

    try:
        rows = ask(ctx.params.get("board") or board_ref(None), "ops")
    except Exception:  # noqa: BLE001 - a completion must not print errors
        return []
    found = ((f"{row['cmd']:#x}", row["name"]) for row in rows)
    return [CompletionItem(number, help=name) for number, name in found if number.startswith(incomplete)]


def command_argument(function: F) -> F:
    """Add the argument ``CMD``, a command number; the verb gets ``cmd``."""
    return click.argument("cmd", metavar="CMD", callback=to_command, shell_complete=complete_command)(function)


def board_option(function: F) -> F:
    """Add ``--board``; the verb gets ``board``, a BoardPaths."""
    return click.option(
        "--board",
        "-b",
        metavar="NAME",
        callback=to_paths,
        shell_complete=complete_board,
        help="Name of the board, or its directory if it has a slash. Default: HBRT_BOARD, else 'default'.",
    )(function)


def any_board_option(function: F) -> F:
    """Add ``--board`` for boards on other machines, too; ``board`` is then a RemoteBoard."""
    return click.option(
        "--board",
        "-b",
        metavar="NAME",
        callback=_to_any_board,
        shell_complete=complete_board,
        help="Name of the board, its directory if it has a slash, or tcp://HOST:PORT of its relay. Default: "
        "HBRT_BOARD, else 'default'.",
    )(function)


def image_option(*names: str, help: str, metavar: str = "FILE", required: bool = False) -> Callable[[F], F]:
    """Add ``--image``, or the option in ``names``; the verb gets a Path or None."""
    return click.option(*(names or ("--image",)), metavar=metavar, type=ImageFile(), required=required, help=help)


def port_option(function: F) -> F:
    """Add ``--port``, for a page on loopback."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        show_default="a free one",
        help="Port on loopback at which the page is served.",
    )(function)


def timeout_option(default_s: float) -> Callable[[F], F]:
    """Add ``--timeout``; the verb gets ``timeout``, in seconds."""
    return click.option(
        "--timeout",
        metavar="SECONDS",
        type=Seconds(),
        default=default_s,
        show_default=True,
        help="Give up after this time, with exit code 124.",
    )


def _for_what_it_starts(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """Callback that makes an option's value a setting of this process, and so of those that the verb starts."""

    def set_it(_ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        try:
            with settings.set_to(name, value):
                settings.check(name)
        except settings.BadSettingError as error:
            raise click.BadParameter(str(error).removeprefix(f"Invalid {name} "), param=param) from None
        os.environ[name] = value

    return set_it


def check_option(function: F) -> F:
    """Add ``--check``, which sets HBRT_CHECK for what the verb starts."""
    set_it = _for_what_it_starts("HBRT_CHECK")

    def watch(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None and not checks_of(value.replace(" ", "").split(",")):
            why = f"Invalid checks {value!r}: expected at least one of memory, coherence, dma, layout, race, all."
            raise click.BadParameter(why, param=param)
        set_it(ctx, param, value)

    return click.option(
        "--check",
        metavar="WORDS",
        shell_complete=_complete_check,
        callback=watch,
        expose_value=False,
        help="What to watch: memory, coherence, dma, layout, race, or all; advice; and fail-fast, which ends an op "
        "at its first mistake; separated by commas. Default: HBRT_CHECK.",
    )(function)


def _setting_option(option: str, name: str, metavar: str, help_text: str) -> Callable[[F], F]:
    """Add an option that sets a setting for the boards that the verb starts."""
    callback = _for_what_it_starts(name)
    return click.option(option, metavar=metavar, callback=callback, expose_value=False, help=help_text)


aging_option = _setting_option(
    "--aging",
    "HBRT_AGING_MS",
    "MS",
    "A waiting task gains one level of priority every MS milliseconds, but never reaches 254, so that no task waits "
    "forever; 0 turns it off. Default: HBRT_AGING_MS, else 0.",
)
watchdog_option = _setting_option(
    "--watchdog",
    "HBRT_WATCHDOG_MS",
    "MS",
    "Time limit of an op without a latency budget, 0 for none; loading or running a model may take ten times that. "
    "Default: HBRT_WATCHDOG_MS, else 60000.",
)
dma_order_option = _setting_option(
    "--dma-order",
    "HBRT_DMA_ORDER",
    "ORDER",
    "When the bytes of iDMA copies move on a board started by this verb: strict, or relaxed:SEED. Default: "
    "HBRT_DMA_ORDER, else strict.",
)


def profile_option(function: F) -> F:
    """Add ``--profile``, which sets HBRT_PROFILE for what the verb starts."""

    def set_it(_ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        from hbrt.profiles.profile import find

        try:
            os.environ["HBRT_PROFILE"] = find(value).origin
        except settings.BadSettingError as error:
            raise click.BadParameter(str(error).replace("HBRT_PROFILE", "it", 1), param=param) from None

    return click.option(
        "--profile",
        metavar="FILE",
        shell_complete=_complete_profile,
        callback=set_it,
        expose_value=False,
        help="Constants of the modeled board: a file, or a name (j5, rk3588, ...; see docs/profiles.md). Default: "
        "HBRT_PROFILE, or j5.",
    )(function)


allow_option = click.option(
    "--allow",
    metavar="PERCENT",
    type=click.FloatRange(0),
    default=2.0,
    show_default=True,
    help="With --against: the allowed growth.",
)
boards_option = click.option(
    "--boards",
    metavar="N",
    type=click.IntRange(1, 10_000),
    default=2,
    show_default=True,
    help="Number of boards, each in its own process.",
)
address_option = click.option(
    "--address", metavar="HOST:PORT", help="Boards on the machines of a Ray cluster. Default: this machine."
)
