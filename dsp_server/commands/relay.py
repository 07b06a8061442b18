"""``hbrt relay`` and ``dsp_relay_server``: carry the tasks of many ARM programs to a board."""

from __future__ import annotations

from pathlib import Path

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import board_option
from hbrt.cli.tables import show_text

IDLE_SECONDS = 60.0
LISTEN_SECONDS = 40.0  # less than the time after which the daemon gives up on a relay


@click.command(
    epilog="Example: hbrt relay --listen tcp://127.0.0.1:5557 --detach",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@board_option
@click.option(
    "--idle",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=IDLE_SECONDS,
    show_default=True,
    help="Exit after this time without programs; 0 for never.",
)
@click.option(
    "--listen",
    metavar="tcp://HOST:PORT",
    help="Serve programs on other machines at this address, instead of local ones. HOST * is every address, PORT 0 "
    "any port.",
)
@click.option(
    "--keys",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --listen: directory of keys ('hbrt keys new'). Without it only loopback addresses are allowed.",
)
@click.option("--detach", is_flag=True, help="Return once it serves; it keeps running without this terminal.")
def command(board: BoardPaths, idle: float, listen: str | None, keys: Path | None, *, detach: bool) -> None:
    """Run a board's relay: programs with HB_DSP_RPC_MODE=relay hand their tasks to it.

    Programs start one themselves if none is running. It ends with its board, on Ctrl-C, or when no program needs it.

    With --listen it serves programs on other machines instead, which connect with HBRT_BOARD=tcp://HOST:PORT, and ends
    only with its board or on Ctrl-C.
    """
    from hbrt.cli.group import mapped_exits

    with mapped_exits():
        _be_relay(board, idle, listen, keys, detach=detach)


def _be_relay(board: BoardPaths, idle: float, listen: str | None, keys: Path | None, *, detach: bool) -> None:
    from dsp_server.relay.serve import serve, start_detached
    from hbrt.control.ask import why_not_running
    from hbrt.errors import NoDaemonError, NotRunningError

    if not board.path.is_dir():
        raise NotRunningError(why_not_running(board))
    try:
        if listen is not None:
            _listen(board, listen, keys, detach=detach)
        elif keys is not None:
            raise click.UsageError("--keys says who may connect over TCP: it needs --listen tcp://HOST:PORT.")
        elif detach:
            pid = start_detached(board, idle)
            show_text(f"The relay of board {board.name} is process {pid}.")
        else:
            serve(board, idle, lambda: show_text(f"The relay of board {board.name} is running; Ctrl-C ends it."))
    except NoDaemonError:
        raise NotRunningError(why_not_running(board)) from None


def _listen(board: BoardPaths, endpoint: str, keys: Path | None, *, detach: bool) -> None:
    from dsp_server.gateway.server import parse_endpoint

    place = parse_endpoint(endpoint, keys)
    if detach:
        from hbrt.control.ask import ask

        chosen = {} if keys is None else {"keys": str(keys.absolute())}
        relay = ask(board, "listen", LISTEN_SECONDS, endpoint=endpoint, **chosen)
        show_text(f"The relay of board {board.name} listens at {relay['endpoint']}: process {relay['pid']}.")
    else:
        from dsp_server.gateway.gateway import serve

        serve(
            board,
            place,
            lambda where: show_text(f"The relay of board {board.name} listens at {where}; Ctrl-C ends it."),
        )


def main() -> None:
    """Run the ``dsp_relay_server`` program once it is loaded (see hbrt.programs)."""
    from hbrt.cli.group import be_program

    be_program(command, "dsp_relay_server")
